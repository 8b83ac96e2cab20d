//go:build sim

package schedules

import (
	"testing"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/sim"
	"github.com/penstock-go/penstock/node"
)

// revision is the rules of a family: nothing but the number of the revision that
// they belong to.
type revision int

func (r revision) Bind(*core.Resource, string) any        { return r }
func (revision) Names(n *core.Names)                      { n.Resource("a") }
func (revision) Keeps(string, core.Role, node.Meter) bool { return true }
func (revision) KeepsGauge(string, core.Role, any) bool   { return true }
func (revision) Figures() []core.RuleFigures              { return nil }
func (revision) EachError(func(*core.BlockError))         {}
func (revision) Forget(string)                            {}
func (revision) Adopt(*core.Resource, any)                {}

// witness is a slot that looks at the rules of two families at every step.
type witness struct {
	saw func(*core.Invocation, core.Verdict) core.Verdict
}

func (witness) Name() string                                { return "witness" }
func (w witness) Ask(inv *core.Invocation) core.Verdict     { return w.saw(inv, core.Verdict{}) }
func (w witness) Take(inv *core.Invocation) core.Verdict    { return w.saw(inv, core.Verdict{Wait: 1000}) }
func (w witness) Recheck(inv *core.Invocation) core.Verdict { return w.saw(inv, core.Verdict{}) }

// museum 66, 69, 70: rules are replaced by two loaders while calls decide. Each
// decision sees one revision of all families, from its first question to the last
// after a wait; never an older one than the call before it saw; and never none.
func TestSimRuleSwap(t *testing.T) {
	sim.Random(t, func(s *sim.Schedule) {
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
					entry, ok := enter(e, "a", core.Count(units))
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
