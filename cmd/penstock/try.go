package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func (c *command) try() *cobra.Command {
	who := new(callerFlags)
	var how together
	calls := rate{100, "100/s"}
	var priority, failures share
	var t traffic
	var svg string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "try RULES... RESOURCE",
		Short: "Play traffic through rules, and show what passes",
		Long: `Try loads rule files, or all files of a directory, and simulates calls of one
resource with the real engine, on a clock of its own: minutes take moments, and
the same command has the same result on every machine. It shows the calls passed
and refused each second, the rules that refused them, and how long calls waited.

Calls arrive evenly, or with --random like those of many independent callers.
Each takes the time --rt, so limits on concurrent calls fill up, and queues have
realistic lengths. The seed decides which calls are prioritized or fail. Repeat
--arg or --cost with one name, or --endpoint, to use several values in turn.
Calls use their whole cost.

Exit code: 0, or 1 for errors, whether calls pass or not.`,
		Example: `  penstock try rules.yaml "GET /orders" --rate 150/s --for 10s
  penstock try rules.yaml "POST /reports" --rate 20/s --rt 200ms --random
  penstock try rules.yaml "GET /search" --arg user=ann --arg user=bob
  penstock try rules.yaml "POST /payments" --errors 60% --svg payments.svg`,
		Args:              args(2, -1, "rule files or directories, and a resource"),
		ValidArgsFunction: c.rulesThenResource,
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, resource := rulesAndResource(args)
			t.resource = resource
			var err error
			if t.caller, t.busy, err = who.of(); err != nil {
				return usage(cmd, err)
			}
			t.rate, t.priority, t.failures = calls.perSecond, priority.of, failures.of
			if err := t.check(); err != nil {
				return usage(cmd, err)
			}
			set, err := c.load(paths, how)
			if err != nil {
				return err
			}
			p := c.progress("playing")
			t.progressed = p.at
			out, err := t.play(set)
			p.done()
			if err != nil {
				return err
			}
			if svg != "" {
				if err := os.WriteFile(svg, []byte(drawing(t, calls.text, out)), 0o644); err != nil {
					return err
				}
			}
			if asJSON {
				return writeJSON(c.out, jsonOutcome(out))
			}
			_, err = fmt.Fprint(c.out, c.table(t, calls.text, out))
			return err
		},
	}
	f := cmd.Flags()
	f.Var(&calls, "rate", "calls per time")
	f.DurationVar(&t.length, "for", 10*time.Second, "duration of the traffic")
	f.DurationVar(&t.responds, "rt", 20*time.Millisecond, "time that a running call takes")
	f.Var(&priority, "priority", "prioritized calls, as in 10%")
	f.Var(&failures, "errors", "share of calls that fail, such as 5%")
	f.BoolVar(&t.random, "random", false, "calls arrive at random times")
	f.Uint64Var(&t.seed, "seed", 1, "seed of the random numbers")
	f.DurationVar(&t.patience, "timeout", 0, "longest wait of a caller (default: the rules' limit)")
	who.add(cmd)
	how.add(cmd)
	f.StringVar(&svg, "svg", "", "also write a chart to this `file`")
	f.BoolVar(&asJSON, "json", false, "write JSON")
	f.SortFlags = false
	return cmd
}

func (t traffic) check() error {
	switch {
	case t.resource == "":
		return fmt.Errorf("the resource has no name")
	case t.length <= 0:
		return fmt.Errorf("--for is %v: use a positive duration such as 10s", t.length)
	case t.responds < 0:
		return fmt.Errorf("--rt is %v: use 0s or more", t.responds)
	case t.patience < 0:
		return fmt.Errorf("--timeout is %v: use a positive duration such as 1s", t.patience)
	}
	if calls := t.rate * t.length.Seconds(); calls > mostCalls {
		return fmt.Errorf("%.0f calls exceed the maximum of %d: lower --rate or --for", calls, mostCalls)
	}
	return nil
}

// rulesAndResource splits arguments into paths and the resource, which is last.
func rulesAndResource(args []string) (paths []string, resource string) {
	last := len(args) - 1
	return args[:last], args[last]
}

// rulesThenResource completes a rule file, then the resources that it names.
func (c *command) rulesThenResource(
	cmd *cobra.Command, args []string, part string,
) (words []string, then cobra.ShellCompDirective) {
	if len(args) == 0 {
		return ruleFiles(cmd, args, part)
	}
	if _, set, _, err := c.readAll(args, together{}); err == nil {
		words = resources(set)
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// tableRows is the maximum number of rows of a table: in a long run, a row stands for several
// seconds.
const tableRows = 60

// step returns the number of seconds in a row.
func step(seconds int) int {
	for _, n := range []int{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800} {
		if (seconds+n-1)/n <= tableRows {
			return n
		}
	}
	return 3600 * (1 + seconds/3600/tableRows)
}

// rows merges n seconds into each row.
func rows(seconds []second, n int) (all []second) {
	for part := range slices.Chunk(seconds, n) {
		var row second
		for _, s := range part {
			row.asked += s.asked
			row.passed += s.passed
			row.refused += s.refused
			row.waited += s.waited
			row.waits += s.waits
			row.longest = max(row.longest, s.longest)
			row.inFlight = max(row.inFlight, s.inFlight)
		}
		all = append(all, row)
	}
	return all
}

const barWidth = 24 // makes lines of 80 characters

// table returns the outcome as text.
func (c *command) table(t traffic, rate string, out outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s for %s, each takes %s%s\n\n",
		t.resource, rateOf(rate), short(t.length), short(t.responds), drawn(t))
	n := step(len(out.seconds))
	all := rows(out.seconds, n)
	most := 1
	for _, r := range all {
		most = max(most, r.passed+r.refused)
	}
	fmt.Fprintln(&b, c.paint(c.out, bold, "  second   asked  passed refused  mean wait  in flight"))
	for i, r := range all {
		wait := "-"
		if r.waited > 0 {
			wait = short(r.waits / time.Duration(r.waited))
		}
		passed, refused := bars(r.passed, r.refused, most)
		line := fmt.Sprintf("%8d %7d %7d %7d %10s %10d", i*n+1, r.asked, r.passed, r.refused, wait, r.inFlight)
		bar := c.paint(c.out, green, strings.Repeat("█", passed)) + c.paint(c.out, red, strings.Repeat("░", refused))
		fmt.Fprintln(&b, strings.TrimRight(line+"  "+bar, " "))
	}
	fmt.Fprintf(&b, "%8s %7d %7d %7d\n\n", "all", out.asked, out.passed, out.refused)
	for _, line := range summary(out) {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// bars returns the lengths of a row's bars; most is the length of the longest one.
func bars(passed, refused, most int) (p, r int) {
	length := func(n int) int {
		if n == 0 {
			return 0
		}
		return max(1, (n*barWidth+most/2)/most)
	}
	p = min(length(passed), barWidth-min(refused, 1))
	return p, min(length(refused), barWidth-p)
}

// rateOf adds a missing unit.
func rateOf(text string) string {
	if !strings.Contains(text, "/") {
		return text + "/s"
	}
	return text
}

// drawn describes the random parts of the traffic.
func drawn(t traffic) string {
	var what []string
	if t.random {
		what = append(what, "random times")
	}
	if t.priority > 0 {
		what = append(what, fmt.Sprintf("%s prioritized", percent(t.priority)))
	}
	if t.failures > 0 {
		what = append(what, fmt.Sprintf("%s fail", percent(t.failures)))
	}
	if len(what) == 0 {
		return ""
	}
	return fmt.Sprintf("\n(%s; seed %d)", strings.Join(what, ", "), t.seed)
}

func percent(share float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", 100*share), ".0") + " %"
}

// mostReported is the maximum number of reported rules, and of breaker changes.
const mostReported = 10

// summary returns the totals as text.
func summary(out outcome) (lines []string) {
	if out.asked == 0 {
		return []string{"No calls."}
	}
	line := fmt.Sprintf("%s of %d calls passed (%s)",
		amount(out.passed, out.asked), out.asked, percent(float64(out.passed)/float64(out.asked)))
	if waits := out.waits; len(waits) > 0 {
		line += fmt.Sprintf(", %d after a wait:\nhalf of those within %s, 99 of 100 within %s, all within %s", len(waits),
			short(quantile(waits, 0.5)), short(quantile(waits, 0.99)), short(waits[len(waits)-1]))
	}
	lines = append(lines, line+".")
	if !out.ruled {
		lines = append(lines, "No rule applies to these calls: is the name of the resource right?")
	}
	list := func(what string, all []refusals) {
		for i, r := range all {
			if i == mostReported {
				lines = append(lines, fmt.Sprintf("... and %s.", count(len(all)-i, "other rule")))
				break
			}
			family, id, _ := strings.Cut(r.Rule, " ")
			lines = append(lines, fmt.Sprintf("%s rule %s: "+what+".", family, id, count(r.Calls, "call")))
		}
	}
	list("refused %s", out.by)
	list("would have refused %s (shadow)", out.shadow)
	for i, turn := range out.breakers {
		if i == mostReported {
			lines = append(lines, fmt.Sprintf("... and %s.", count(len(out.breakers)-i, "other turn")))
			break
		}
		lines = append(lines, "breaker "+turn)
	}
	return lines
}

func amount(n, of int) string {
	switch n {
	case 0:
		return "None"
	case of:
		return "All"
	}
	return fmt.Sprint(n)
}

// quantile returns a quantile of sorted durations.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

type jsonSecond struct {
	Second      int     `json:"second"`
	Asked       int     `json:"asked"`
	Passed      int     `json:"passed"`
	Refused     int     `json:"refused"`
	Waited      int     `json:"waited"`
	MeanWait    float64 `json:"meanWaitSeconds"`
	LongestWait float64 `json:"longestWaitSeconds"`
	InFlight    int     `json:"inFlight"`
}

type jsonTry struct {
	Asked     int          `json:"asked"`
	Passed    int          `json:"passed"`
	Refused   int          `json:"refused"`
	RefusedBy []refusals   `json:"refusedBy"`
	Shadow    []refusals   `json:"shadow"`
	Breakers  []string     `json:"breakers"`
	Seconds   []jsonSecond `json:"seconds"`
}

func jsonOutcome(out outcome) jsonTry {
	j := jsonTry{out.asked, out.passed, out.refused, out.by, out.shadow, append([]string{}, out.breakers...), nil}
	for i, s := range out.seconds {
		row := jsonSecond{
			Second: i + 1, Asked: s.asked, Passed: s.passed, Refused: s.refused,
			Waited: s.waited, LongestWait: s.longest.Seconds(), InFlight: s.inFlight,
		}
		if s.waited > 0 {
			row.MeanWait = (s.waits / time.Duration(s.waited)).Seconds()
		}
		j.Seconds = append(j.Seconds, row)
	}
	return j
}
