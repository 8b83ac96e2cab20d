//go:build sim

package engines

import (
	"testing"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/node"
)

// revision is the rules of a family: nothing but the number of the revision that
// they belong to.
type revision int

func (r revision) Bind(*core.Site) core.Checker                   { return r }
func (revision) Ask(*core.Invocation) core.Verdict                { return core.Verdict{} }
func (revision) Take(*core.Invocation) core.Verdict               { return core.Verdict{} }
func (revision) Match(string, any, uint64) (none pattern.Matched) { return none }
func (revision) Known(any, uint64) (none pattern.Matched)         { return none }
func (revision) Latest() uint64                                   { return 0 }
func (revision) Choices(string, string) []core.Choice             { return nil }
func (revision) Names(n *core.Names)                              { n.Resource("a") }
func (revision) Needs(any, uint64, func(core.Need))               {}
func (revision) Looks(func(string, core.Need))                    {}
func (revision) Figures() []core.RuleFigures                      { return nil }
func (revision) EachError(func(*core.BlockError))                 {}

// witness is a slot that looks at the rules of two families at every step.
type witness struct {
	saw func(*core.Invocation, core.Verdict) core.Verdict
}

func (witness) Name() string                                { return "witness" }
func (w witness) Ask(inv *core.Invocation) core.Verdict     { return w.saw(inv, core.Verdict{}) }
func (w witness) Take(inv *core.Invocation) core.Verdict    { return w.saw(inv, core.Verdict{Wait: 1000}) }
func (w witness) Recheck(inv *core.Invocation) core.Verdict { return w.saw(inv, core.Verdict{}) }

// known bug 66, 69, 70: rules are replaced by two loaders while calls decide. Each
// decision sees one revision of all families, from its first question to the last
// after a wait; never an older one than the call before it saw; and never none.
func TestSimRuleSwap(t *testing.T) {
	schedules.Sample(t, func(s *schedules.Schedule) {
		seen := make(map[int64]revision) // by the units of the call, which each has its own number of
		w := witness{func(inv *core.Invocation, v core.Verdict) core.Verdict {
			one, ok := inv.Rules(core.KindFlow).(revision)
			two, _ := inv.Rules(core.KindBreaker).(revision)
			if !ok || one != two {
				s.Failf("a call sees revision %d of one family and %d of the other", one, two)
			}
			if first, ok := seen[inv.Units()]; ok && first != one {
				s.Failf("a call saw revision %d first and %d now", first, one)
			}
			seen[inv.Units()] = one
			return v
		}}
		e := newEngine(s, core.NewChain(w), node.Caps{})
		var next, stands revision
		update := func() {
			var mine revision
			if err := e.Update(func(b *core.RulesetBuilder) error {
				next++
				mine = next
				b.Put(core.KindFlow, mine)
				b.Put(core.KindBreaker, mine)
				return nil
			}); err != nil {
				s.Failf("%v", err)
			}
			stands = max(stands, mine)
		}
		update()
		for i := range 2 {
			s.Go(func() {
				var last revision
				for k := range 2 {
					units, least := 1+2*i+k, stands
					entry, ok := enter(e, "a", core.Units(units))
					if !ok {
						s.Failf("refused")
						return
					}
					r := seen[int64(units)]
					if r < least || r < last {
						s.Failf("decided under revision %d, when %d stood and %d had been seen", r, least, last)
					}
					last = r
					entry.Exit()
				}
			})
		}
		for range 1 + s.Rand.IntN(2) {
			s.Named("loader", update)
		}
	})
}
