//go:build sim

package engines

import (
	"testing"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/node"
)

// revision stands for a family's rules: only the number of their revision.
type revision int

func (r revision) Bind(*engine.Binding) engine.Checker            { return r }
func (revision) Ask(*engine.Invocation) engine.Verdict            { return engine.Verdict{} }
func (revision) Take(*engine.Invocation) engine.Verdict           { return engine.Verdict{} }
func (revision) Match(string, any, uint64) (none pattern.Matched) { return none }
func (revision) Known(any, uint64) (none pattern.Matched)         { return none }
func (revision) Latest() uint64                                   { return 0 }
func (revision) Choices(string, string) []core.Choice             { return nil }
func (revision) Names(n *engine.Names)                            { n.Resource("a") }
func (revision) Needs(any, uint64, func(engine.Need))             {}
func (revision) Looks(func(string, engine.Need))                  {}
func (revision) Stats() []core.RuleStats                          { return nil }
func (revision) EachError(func(*core.BlockError))                 {}

// witness is a slot that looks at the rules of two families at every step.
type witness struct {
	saw func(*engine.Invocation, engine.Verdict) engine.Verdict
}

func (witness) Name() string                                { return "witness" }
func (w witness) Ask(inv *engine.Invocation) engine.Verdict { return w.saw(inv, engine.Verdict{}) }
func (w witness) Take(inv *engine.Invocation) engine.Verdict {
	return w.saw(inv, engine.Verdict{Wait: 1000})
}
func (w witness) Recheck(inv *engine.Invocation) engine.Verdict { return w.saw(inv, engine.Verdict{}) }

// known bug 66, 69, 70: two loaders replace rules while calls are decided. Each decision sees one
// revision of all families, from its first check to the last one after a wait, and never an older
// revision than the previous call saw, or none.
func TestSimRuleSwap(t *testing.T) {
	schedules.Sample(t, func(s *schedules.Schedule) {
		seen := make(map[int64]revision) // by the units of the call, which are unique
		w := witness{func(inv *engine.Invocation, v engine.Verdict) engine.Verdict {
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
		e := newEngine(s, engine.NewChain(w), node.Caps{})
		var next, stands revision
		update := func() {
			var mine revision
			if err := e.Update(func(b *engine.SnapshotBuilder) error {
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
					entry, ok := enter(e, "a", engine.Units(units))
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
