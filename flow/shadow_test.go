package flow_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// A shadow rule refuses and delays no call, and counts the calls it would have refused: exactly
// the calls that the same rule refuses when enforced.
func TestShadowOnlyCounts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rule   flow.Rule
		others []string // calls in between
	}{
		{"reject", flow.Rule{Threshold: 3}, nil},
		{"nothing at all", flow.Rule{Threshold: 0}, nil},
		{"strict", flow.Rule{Threshold: 3, Window: flow.Strict}, nil},
		{"throttle", flow.Rule{Threshold: 10, Behavior: flow.Throttle, MaxWait: 200 * ms}, nil},
		{"warm-up", flow.Rule{Threshold: 9, Behavior: flow.WarmUp}, nil},
		{"a caller", flow.Rule{Threshold: 2, Origin: "app"}, []string{"orders"}},
		{"other callers", flow.Rule{Threshold: 2, Origin: "other"}, []string{"orders from web", "orders"}},
		{"a path", flow.Rule{Threshold: 2, Relation: flow.Chain, Ref: "web"}, []string{"orders"}},
		{"another resource", flow.Rule{Threshold: 2, Relation: flow.Associated, Ref: "sql"}, []string{"sql", "sql"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.rule.ID, tt.rule.Resource = "r", "orders"
			holds := newGuard(t, tt.rule)
			tt.rule.Mode = spec.Shadow
			shadow := newGuard(t, tt.rule)
			refused := int64(0)
			for range 60 {
				for _, call := range append(tt.others, "orders from app in web") {
					if holds.outcome(call) == "block" {
						refused++
					}
					assert.Equal(t, "pass", shadow.outcome(call))
				}
				holds.clock.Advance(77 * ms)
				shadow.clock.Advance(77 * ms)
			}
			assert.Positive(t, refused)
			if tt.rule.Behavior != flow.WarmUp { // a warm-up learns from the calls that really pass
				assert.Equal(t, refused, shadow.shadowBlocked("r"))
			} else {
				assert.Positive(t, shadow.shadowBlocked("r"))
			}
			assert.Zero(t, holds.shadowBlocked("r"))
			assert.Empty(t, shadow.clock.Slept())
		})
	}
}

func TestShadowConcurrency(t *testing.T) {
	rule := permits(2)
	rule.Mode = spec.Shadow
	g := newGuard(t, rule)
	exit := g.open(5, "orders")
	assert.Equal(t, int64(3), g.shadowBlocked("permits"))
	exit()
	exit = g.open(2, "orders")
	assert.Equal(t, int64(3), g.shadowBlocked("permits"), "what it would have admitted has left")
	exit()
}

func TestShadowAssociatedConcurrency(t *testing.T) {
	g := newGuard(t, flow.Rule{ID: "r", Resource: "orders", Threshold: 1, Metric: flow.Concurrency, Relation: flow.Associated, Ref: "sql", Mode: spec.Shadow})
	exit := g.open(1, "sql")
	assert.Equal(t, 3, g.passes(3, "orders"))
	assert.Equal(t, int64(3), g.shadowBlocked("r"))
	exit()
}

// A shadow rule has its own meters: an enforced rule next to it counts as if the shadow rule were
// absent, and vice versa.
func TestShadowMetersOnItsOwn(t *testing.T) {
	g := newGuard(t,
		flow.Rule{ID: "shadow", Resource: "orders", Threshold: 2, Mode: spec.Shadow, Window: flow.Ring},
		flow.Rule{ID: "other shadow", Resource: "orders", Threshold: 3, Mode: spec.Shadow, Window: flow.Ring},
		flow.Rule{ID: "holds", Resource: "orders", Threshold: 5, Window: flow.Ring})
	assert.Equal(t, 5, g.passes(7, "orders"))
	assert.Equal(t, int64(3), g.shadowBlocked("shadow"))
	assert.Equal(t, int64(2), g.shadowBlocked("other shadow"))
	assert.Equal(t, int64(0), g.shadowBlocked("holds"))
	g.clock.Advance(time.Second)
	assert.Equal(t, 5, g.passes(7, "orders"))
}

// A rule in shadow mode must not change which calls the enforced rules apply to.
func TestShadowNamesNobodyForRulesThatHold(t *testing.T) {
	g := newGuard(t,
		flow.Rule{ID: "others", Resource: "orders", Threshold: 2, Origin: "other"},
		flow.Rule{ID: "shadow others", Resource: "orders", Threshold: 1, Origin: "other", Mode: spec.Shadow},
		flow.Rule{ID: "app", Resource: "orders", Threshold: 100, Origin: "app", Mode: spec.Shadow})
	assert.Equal(t, 2, g.passes(5, "orders from app"))
	assert.Equal(t, int64(0), g.shadowBlocked("shadow others"), "in shadow mode the caller has its own rule")
	assert.Equal(t, 2, g.passes(5, "orders from web"))
	assert.Equal(t, int64(1), g.shadowBlocked("shadow others"))
}

// A call that a shadow rule would let borrow or queue runs at once.
func TestShadowDelaysNobody(t *testing.T) {
	g := newGuard(t, flow.Rule{ID: "r", Resource: "orders", Threshold: 4, Mode: spec.Shadow},
		flow.Rule{ID: "s", Resource: "orders", Threshold: 10, Behavior: flow.Throttle, Mode: spec.Shadow})
	for range 20 {
		g.clock.Advance(130 * ms)
		assert.Equal(t, "pass", g.outcome("orders first"))
		assert.Equal(t, "pass", g.outcome("orders x3 first"))
	}
	assert.Empty(t, g.clock.Slept())
}

// A call refused by another rule leaves nothing in a shadow rule's meter.
func TestShadowGivesBack(t *testing.T) {
	g := newGuard(t,
		flow.Rule{ID: "shadow", Resource: "orders", Threshold: 3, Mode: spec.Shadow},
		throttle(1, 1500*ms))
	g.run([]step{
		{0, "orders", 4, "pass, 1s, block x2"},
		{0, "orders", 1, "block"},
	})
	assert.Equal(t, int64(0), g.shadowBlocked("shadow"))
}

// lastly runs a function once a call has taken its units, including those under shadow rules, and
// then refuses the call: it makes it wait, and is asked again.
type lastly struct{ do func() }

func (*lastly) Name() string                          { return "lastly" }
func (*lastly) Ask(*engine.Invocation) engine.Verdict { return engine.Verdict{} }
func (l *lastly) Take(inv *engine.Invocation) engine.Verdict {
	if l.do == nil {
		return engine.Verdict{}
	}
	return engine.Verdict{Wait: 1, By: l.refusal(inv)}
}

func (l *lastly) Recheck(inv *engine.Invocation) engine.Verdict {
	do := l.do
	if do == nil {
		return engine.Verdict{}
	}
	l.do = nil
	do()
	return engine.Verdict{Block: l.refusal(inv)}
}

func (*lastly) refusal(inv *engine.Invocation) *core.BlockError {
	return engine.NewCounted(core.BlockError{Resource: inv.Resource().Name(), Rule: "lastly"}, nil, nil, nil)
}

// A rule in shadow mode changes its shape while two calls are being decided. The first fits under
// the old shape and not under the new: it leaves nothing under the old, where the second must still
// fit.
func TestShadowOnTheWay(t *testing.T) {
	rule := flow.Rule{ID: "r", Resource: "orders", Threshold: 3, Mode: spec.Shadow}
	on, last := new(hook), new(lastly)
	g := newGuardWith(t, engine.Config{Chain: trial.Chain().With(on, engine.Before("flow")).With(last, engine.After("flow"))}, rule)
	call := func(meanwhile func()) {
		on.asked = func() {
			on.asked = nil
			meanwhile()
		}
		g.outcome("orders")
	}
	call(func() {})
	call(func() {})
	call(func() {
		var refused sync.WaitGroup
		taken, back := make(chan struct{}), make(chan struct{})
		call(func() {
			rule.Buckets = 5
			g.load(rule)
			last.do = func() {
				close(taken)
				<-back
			}
			refused.Go(func() { g.outcome("orders") })
			<-taken // the last unit
		})
		assert.EqualValues(t, 1, g.shadowBlocked("r"))
		close(back)
		refused.Wait()
	})
	assert.EqualValues(t, 1, g.shadowBlocked("r"))
}
