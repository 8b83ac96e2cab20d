package adaptive_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// pause runs a function in the middle of a call, after it has taken and before it is counted.
type pause struct{ do func() }

func (*pause) Name() string                              { return "pause" }
func (*pause) Ask(*engine.Invocation) engine.Verdict     { return engine.Verdict{} }
func (p *pause) Take(*engine.Invocation) engine.Verdict  { p.run(); return engine.Verdict{} }
func (*pause) Recheck(*engine.Invocation) engine.Verdict { return engine.Verdict{} }

func (p *pause) run() {
	if do := p.do; do != nil {
		p.do = nil
		do()
	}
}

// The rule gets another ID while a call is between taking and being counted: the call's units count
// under the new ID too. A later rule with the old ID is unaffected.
// known bug 72
func TestRenamedOnTheWay(t *testing.T) {
	renamed, stranger := at(2), at(2)
	renamed.ID = "renamed"
	stranger.Floor++
	stranger.Ceiling = 5
	for _, tt := range []struct {
		name  string
		loads [][]adaptive.Rule
	}{
		{"renamed", [][]adaptive.Rule{{renamed}}},
		{"and back", [][]adaptive.Rule{{renamed}, {at(2)}}},
		{"and another gets the ID", [][]adaptive.Rule{{renamed}, {renamed, stranger}}},
	} {
		for held := range 2 {
			t.Run(fmt.Sprintf("%s, %d in flight", tt.name, held), func(t *testing.T) {
				p := new(pause)
				g := newGuardWith(t, engine.Config{Chain: trial.Chain().With(p, engine.After("outlier"))}, at(2))
				var in []engine.Entry
				for range held {
					in = append(in, g.enter())
				}
				p.do = func() {
					for _, rules := range tt.loads {
						g.load(rules...)
					}
					for range 3 {
						if e, err := g.Enter(t.Context(), "orders", nil); err == nil {
							in = append(in, e)
						}
					}
				}
				in = append(in, g.enter())
				assert.Len(t, in, 2)
				g.refused()
				for _, e := range in {
					e.Exit()
				}
				a, b := g.enter(), g.enter()
				g.refused()
				a.Exit()
				b.Exit()
				resource, _ := g.FindResource("orders")
				assert.Len(t, resource.Meters().Semaphores(), len(tt.loads[len(tt.loads)-1]), "none is left of what the rules were called")
			})
		}
	}
}

// known bug 72
func TestRenamedBeyondTheCap(t *testing.T) {
	trial.BeyondTheCap(t, func(b *engine.SnapshotBuilder, limits []trial.Limit) error {
		var rules []adaptive.Rule
		for _, l := range limits {
			rule := at(l.Units)
			rule.ID, rule.Resource, rule.Match, rule.Mode = l.ID, l.Resource, spec.MatchRegex, l.Mode
			rules = append(rules, rule)
		}
		return adaptive.Compile(b, rules)
	})
}
