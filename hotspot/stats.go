package hotspot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/shown"
)

// Stats holds the details of a rule, by value.
type Stats struct {
	Values   int   `json:"values"`   // tracked by the rule now
	InFlight int64 `json:"inFlight"` // units of all values, if the rule limits those
	// Overflowed counts the calls whose value found no room in the table and shared a limit with
	// others.
	Overflowed int64 `json:"overflowed"`
	// UnknownPlans counts the calls that named a plan that the rule doesn't list.
	UnknownPlans int64 `json:"unknownPlans,omitempty"`
	// LimitsFromCode counts the questions about limits, or is nil if the rule asks none.
	LimitsFromCode *LimitStats `json:"limitsFromCode,omitempty"`
	// Locked is the number of values that are locked out, Lockouts the number of lockouts so far, and
	// LockoutsMissed counts the intervals in which another value would have been locked out, had not half
	// of the values been. LockedValues are values that are locked out, at most ten.
	Locked         int           `json:"locked,omitempty"`
	Lockouts       int64         `json:"lockouts,omitempty"`
	LockoutsMissed int64         `json:"lockoutsMissed,omitempty"`
	LockedValues   []LockedValue `json:"lockedValues,omitempty"`
	// Top lists the hottest values, at most ten, hottest first.
	Top []ValueStats `json:"top,omitempty"`
	// Cluster holds the stats of the shared limits, or nil if the limits are local.
	Cluster *core.SharedStats `json:"cluster,omitempty"`

	missing string // the missing argument, if there were calls but none had a value
}

// ValueStats holds the counts of one value of a resource since the rule first saw that value.
type ValueStats struct {
	Resource string `json:"resource"`
	Value    string `json:"value"`  // formatted by [argument.Value.String]
	Passed   int64  `json:"passed"` // calls
	Refused  int64  `json:"refused"`
	InFlight int64  `json:"inFlight"` // units, if the rule limits those
	// Measure compares the value's use with its limit.
	Measure core.Measure `json:"measure"`
}

// Stats returns the counters of each rule, summed over all resources, and the state of its values.
func (t *table) Stats() []core.RuleStats {
	figures := t.StatsWith(func(r Rule, controllers []*controller) core.Details {
		if len(controllers) == 0 {
			return nil
		}
		var f Stats
		var hottest top
		if r.leases() {
			shared := family.NewSharedStats(t.Member)
			f.Cluster = &shared
		}
		if r.LimitsFromCode {
			f.LimitsFromCode = new(LimitStats)
		}
		for _, c := range controllers {
			c.report(&f, &hottest)
		}
		f.Top = hottest.figures()
		return f
	})
	for i, r := range t.All() {
		if f, ok := figures[i].Details.(Stats); ok && f.Values == 0 && figures[i].Asked {
			f.missing = r.what()
			figures[i].Details = f
		}
	}
	return figures
}

// what describes the argument that the rule limits.
func (r *Rule) what() string {
	switch {
	case len(r.Keys) == 1:
		return shown.Label(r.Keys[0])
	case len(r.Keys) > 1:
		return "all of " + shown.Label(strings.Join(r.Keys, ", "))
	case r.Param != "":
		return "param " + shown.Label(r.Param)
	}
	return fmt.Sprintf("the argument at index %d", r.Index.at)
}

// StoreAway reports whether a cluster shares the limits and its store is unreachable.
func (f Stats) StoreAway() bool { return f.Cluster != nil && f.Cluster.StoreAway() }

// Lines returns how many values there are, and the hottest of them.
func (f Stats) Lines(at time.Time) []string {
	if f.Cluster != nil {
		alone := f
		alone.Cluster = nil
		return append(alone.Lines(at), f.Cluster.Lines(at)...)
	}
	switch {
	case f.missing != "":
		return []string{"no values: no recent call had " + f.missing}
	case f.Values == 0:
		return nil
	}
	const most = 3
	var b strings.Builder
	many := "s"
	if f.Values == 1 {
		many = ""
	}
	fmt.Fprintf(&b, "%d value%s", f.Values, many)
	for i, v := range f.Top[:min(len(f.Top), most)] {
		b.WriteString([]string{"; hottest ", ", "}[min(i, 1)])
		fmt.Fprintf(&b, "%s (%d passed, %d refused)", shown.Label(v.Value), v.Passed, v.Refused)
	}
	if f.Overflowed > 0 {
		fmt.Fprintf(&b, "; %d times the table was full and a value shared a limit", f.Overflowed)
	}
	if f.UnknownPlans > 0 {
		fmt.Fprintf(&b, "; %d calls named a plan that the rule doesn't list", f.UnknownPlans)
	}
	lines := []string{b.String()}
	if f.LimitsFromCode != nil {
		lines = append(lines, f.LimitsFromCode.line())
	}
	if f.Locked > 0 {
		lines = append(lines, f.lockedLine(at))
	}
	return lines
}

// Measures returns the measures of the values in Top.
func (f Stats) Measures() []core.Measure {
	all := make([]core.Measure, len(f.Top))
	for i, v := range f.Top {
		all[i] = v.Measure
	}
	return all
}

// Resources returns nil: values are reported over all resources.
func (f Stats) Resources() []core.ResourceDetails { return nil }

// topValues is the number of values shown for each rule.
const topValues = 10

// top holds the hottest values of a rule, the hottest first.
type top []hot

type hot struct {
	heat  int64
	value argument.Value
	ValueStats
}

// add adds a value if it is among the hottest, and returns its entry, valid until the next add;
// otherwise nil.
func (t *top) add(h hot) *hot {
	i, _ := slices.BinarySearchFunc(*t, h, func(a, b hot) int {
		return cmp.Or(cmp.Compare(b.heat, a.heat), cmp.Compare(b.Passed+b.Refused, a.Passed+a.Refused),
			strings.Compare(a.value.String(), b.value.String()), strings.Compare(a.Resource, b.Resource))
	})
	if i == topValues {
		return nil
	}
	*t = slices.Insert(*t, i, h)
	*t = (*t)[:min(len(*t), topValues)]
	return &(*t)[i]
}

func (t top) figures() []ValueStats {
	var figures []ValueStats
	for _, h := range t {
		h.Value = h.value.String()
		figures = append(figures, h.ValueStats)
	}
	return figures
}

// report adds the values of a controller to the stats, and to the hottest.
func (c *controller) report(f *Stats, hottest *top) {
	now := c.engine.Now()
	f.UnknownPlans += c.values.unknownPlans.Load()
	f.Lockouts += c.values.lockouts.Load()
	f.LockoutsMissed += c.values.lockoutsMissed.Load()
	if f.LimitsFromCode != nil {
		f.LimitsFromCode.add(&c.values.questions)
	}
	c.values.each(now, func(x *cell) {
		f.InFlight += x.held
		if f.Cluster != nil && x.lease != nil {
			family.AddShared(f.Cluster, x.lease.Shared)
		}
		if x.isRest() {
			f.Overflowed += x.shard.overflowed
			return
		}
		f.Values++
		f.addLocked(c, x, now)
		if f.LimitsFromCode != nil && x.plan.isAnswer() {
			f.LimitsFromCode.Values++
		}
		if x.passed+x.refused == 0 {
			return
		}
		if h := hottest.add(hot{x.heat.at(now), x.value, ValueStats{
			Resource: c.refusal.Resource, Passed: x.passed, Refused: x.refused, InFlight: x.held,
		}}); h != nil {
			if x.lease != nil && x.lease.rule == c {
				h.Measure = x.lease.Measure(now)
			} else {
				h.Measure = c.measureLocked(x, now, 1, c.quotaOf(x.value, x.plan), false)
			}
		}
	})
}
