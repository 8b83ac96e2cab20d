package main

import (
	"fmt"
	"strings"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/observe/inspect"
)

// result is the outcome of the load.
type result struct {
	seconds int
	streams []*stream
	counts  []counts // of each stream
	tree    inspect.Tree
	rules   api.RuleSet
	edited  bool // the rules changed during the run
}

// report prints the measured rates next to the limits, and the tree. It returns an error if a limit
// did not hold.
func (c *console) report(r result) error {
	if r.seconds == 0 {
		return nil // Ctrl-C came early
	}
	seconds := float64(r.seconds)
	c.printf("\n%-22s %9s %8s %9s %7s  %s\n", "a second, on average", "offered", "passed", "blocked", "limit", "beyond")
	var all counts
	var allowed float64
	var broken []string
	for i, s := range r.streams {
		n := r.counts[i]
		all = all.plus(n)
		limit, beyond := "-", ""
		if rule, ok := r.ruleOf(s); ok {
			perSecond := rule.Threshold / rule.Interval.Seconds()
			allowed += perSecond
			limit, beyond = fmt.Sprintf("%.4g", perSecond), rule.Behavior.String()
			if !r.edited && float64(n.passed) > mostIn(seconds, rule) {
				broken = append(broken, s.name)
			}
		}
		c.printf("%-22s %9.1f %8.1f %9.1f %7s  %s\n", s.name, float64(n.offered)/seconds,
			float64(n.passed)/seconds, float64(n.blocked)/seconds, limit, beyond)
	}
	if all.failed+all.unsent > 0 {
		c.printf("Also, %d requests failed, and %d were not sent: this machine is busy.\n", all.failed, all.unsent)
	}

	var tree strings.Builder
	if err := r.tree.WriteText(&tree); err != nil {
		return err
	}
	c.printf("\nThe tree of calls:\n\n%s\n", tree.String())

	switch {
	case broken != nil:
		return fmt.Errorf("more passed than the limit of %s allows", strings.Join(broken, ", "))
	case r.edited:
		c.printf("The rules changed during the run, so the averages cover several limits.\n")
	default:
		c.printf("Every limit held: of %.0f requests a second %.0f passed, where the rules allow\nat most %.0f.\n",
			float64(all.offered)/seconds, float64(all.passed)/seconds, allowed)
	}
	return nil
}

// ruleOf returns the rule that limits the rate of a stream, unless an edit removed it or changed
// its kind.
func (r result) ruleOf(s *stream) (flow.Rule, bool) {
	for _, rule := range r.rules.Flow {
		if rule.ID == s.rule {
			return rule, rule.Metric == flow.QPS && rule.Mode == api.Enforce
		}
	}
	return flow.Rule{}, false
}

// mostIn returns the maximum number of calls that a rule admits in that many seconds: its threshold
// for each interval, and once more, since the seconds need not start with an interval.
func mostIn(seconds float64, rule flow.Rule) float64 {
	return rule.Threshold * (seconds/rule.Interval.Seconds() + 1)
}
