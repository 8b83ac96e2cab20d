package adaptive_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/proof/race"
)

func shadow(r adaptive.Rule) adaptive.Rule {
	r.Mode = spec.Shadow
	return r
}

// A shadow rule counts the calls that it would refuse or admit, and refuses none.
func TestShadowCountsWhatItWouldRefuse(t *testing.T) {
	g := newGuard(t, shadow(adaptive.Rule{ID: "try", Resource: "orders", Start: 1, Window: time.Minute}))
	a, b := g.enter(), g.enter()
	assert.EqualValues(t, 1, g.figures("try").ShadowBlocked)
	b.Exit()
	c := g.enter()
	assert.EqualValues(t, 2, g.figures("try").ShadowBlocked)
	a.Exit()
	c.Exit()
	d := g.enter()
	assert.EqualValues(t, 2, g.figures("try").ShadowBlocked)
	d.Exit()
	assert.Zero(t, g.figures("try").Refused)
	assert.Zero(t, g.limit().InForce)
}

// A shadow rule learns from the calls as they arrive, without holding any back: here from a load
// that varies around the service's capacity. Then it is enforced, and continues from there.
func TestShadowLearns(t *testing.T) {
	race.OneGoroutine(t)
	s := sixteen(t, shadow(learning(100)), lognormal(0.5))
	for range 20 {
		for _, load := range []float64{0.5, 1.3, 0.8, 1.1, 0.4} {
			v := s.watch(load, 1)
			assert.Zero(t, v.refused)
		}
	}
	learned := s.limit().Limit
	assert.InDelta(t, 16, learned, 4)
	assert.NotZero(t, s.figures("learn").ShadowBlocked)
	s.load(learning(100))
	assert.Equal(t, learned, s.limit().Limit)
	assert.LessOrEqual(t, s.watch(1.5, 6).off(16), 0.1)
}

// A shadow rule also learns that a service can do more, once there is enough load.
func TestShadowLearnsUpwards(t *testing.T) {
	race.OneGoroutine(t)
	s := sixteen(t, shadow(learning(2)), lognormal(0.5))
	for range 20 {
		for _, load := range []float64{0.3, 0.7, 1.2, 0.5} {
			s.settle(load, 5*time.Second)
		}
	}
	assert.InDelta(t, 16, s.limit().Limit, 4)
}
