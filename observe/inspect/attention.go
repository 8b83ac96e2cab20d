package inspect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/shown"
)

// attention yields a line for each problem that may need attention.
func (t *Tree) attention(yield func(string) bool) {
	stopped := false
	report := func(format string, args ...any) { stopped = stopped || !yield(fmt.Sprintf(format, args...)) }
	if t.Waiting > 0 {
		report("waiting calls: %d", t.Waiting)
	}
	if t.Failures > 0 {
		report("slot panics: %d; each call went on without that slot", t.Failures)
	}
	if t.Leaked > 0 {
		report("calls that did not exit in time: %d; the log says who made them", t.Leaked)
	}
	for _, c := range []struct {
		name string
		Usage
	}{
		{"resources", t.Caps.Resources},
		{"contexts", t.Caps.Contexts},
		{"call nodes", t.Caps.Calls},
		{"origins", t.Caps.Origins},
	} {
		if c.Overflows > 0 {
			report("%s: %d of %d; %d times a name found no place and went to (overflow)", c.name, c.Used, c.Cap, c.Overflows)
		}
	}
	for i := range t.Rules {
		r := &t.Rules[i]
		if r.Mode == spec.Shadow {
			report("%s: would have refused %d calls", ruleName{r}, r.ShadowBlocked)
		}
		if r.Details != nil {
			for _, line := range r.Details.Lines(t.At) {
				report("%s: %s", ruleName{r}, line)
			}
		}
	}
	t.refusals(report)
	unasked := 0
	for i := range t.Rules {
		r := &t.Rules[i]
		if r.Asked || r.Mode == spec.Off {
			continue
		}
		if unasked++; unasked > maxUnasked {
			continue
		}
		if r.Resource == "" {
			report("%s: not asked for yet, no call came in", ruleName{r})
		} else {
			report("%s: not asked for yet, no call came to %s", ruleName{r}, shown.Label(r.Resource))
		}
	}
	if unasked > maxUnasked {
		report("rules not asked for yet: %d more", unasked-maxUnasked)
	}
}

// refusals reports the rules with the most refusals.
func (t *Tree) refusals(report func(format string, args ...any)) {
	var all []*core.RuleStats
	for i := range t.Rules {
		if r := &t.Rules[i]; r.Refused > 0 {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b *core.RuleStats) int { return cmp.Compare(b.Refused, a.Refused) })
	for _, r := range all[:min(len(all), maxRefusing)] {
		calls := "calls"
		if r.Refused == 1 {
			calls = "call"
		}
		report("%s: refused %d %s", ruleName{r}, r.Refused, calls)
	}
	if more := len(all) - maxRefusing; more > 0 {
		report("rules that refused calls: %d more", more)
	}
}

// maxRefusing is the maximum number of named rules with refusals.
const maxRefusing = 10

// maxUnasked is the maximum number of named rules without calls.
const maxUnasked = 10

// ruleName is the start of a line about a rule.
type ruleName struct{ *core.RuleStats }

func (r ruleName) String() string {
	if r.Kind == core.KindCustom {
		return "slot: " + shown.Label(r.ID)
	}
	name := r.Kind.String() + " rule " + shown.Label(r.ID)
	if r.Mode == spec.Shadow {
		return "shadow " + name
	}
	return name
}
