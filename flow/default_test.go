package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
)

// A rule with nothing but a threshold is checked against an independent log: for a minute, at less
// than 1.5 times the limit, it never admits more than the limit in any real second. Of evenly spaced
// calls it admits at least 98 % of the limit; of random ones, 97 % of the calls that a sliding log
// admits, which admits each call as soon as there is room. The same holds for a rule that warms up
// once it is warm: its minute begins somewhere between two bursts.
func TestTheDefaultHoldsInEveryRealSecond(t *testing.T) {
	const limit, offered = 100, 150
	for _, tt := range []struct {
		name  string
		rule  flow.Rule
		idle  time.Duration // before the minute
		even  bool
		share float64
	}{
		{"reject, even", flow.Rule{Resource: "orders", Threshold: limit}, 0, true, 0.98},
		{"reject, random", flow.Rule{Resource: "orders", Threshold: limit}, 0, false, 0.97},
		{"warm-up, even", flow.Rule{Resource: "orders", Threshold: limit, Behavior: flow.WarmUp}, time.Minute, true, 0.97},
		{"warm-up, random", flow.Rule{Resource: "orders", Threshold: limit, Behavior: flow.WarmUp}, time.Minute, false, 0.97},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rnd := random(t)
			g := newGuard(t, tt.rule)
			g.clock.Advance(time.Duration(rnd.Int64N(int64(time.Second))))
			var admitted, best []time.Duration
			inMinute, bestInMinute := 0, 0
			for now := time.Duration(0); now < tt.idle+time.Minute; {
				pause := time.Second / offered
				if !tt.even {
					pause = time.Duration(rnd.ExpFloat64() * float64(pause))
				}
				g.clock.Advance(pause)
				now += pause
				if e, err := g.Enter(t.Context(), "orders", nil); err == nil {
					e.Exit()
					admitted = append(admitted, now)
					if n := len(admitted) - limit; n > 0 {
						require.Greater(t, now-admitted[n-1], time.Second, "the %d calls before %v", limit, now)
					}
					if now >= tt.idle {
						inMinute++
					}
				}
				if n := len(best); n < limit || now-best[n-limit] > time.Second {
					best = append(best, now)
					if now >= tt.idle {
						bestInMinute++
					}
				}
			}
			of := bestInMinute
			if tt.even {
				of = 60 * limit
			}
			t.Logf("%d of %d", inMinute, of)
			assert.GreaterOrEqual(t, float64(inMinute), tt.share*float64(of))
		})
	}
}

// A burst of the whole limit counts until the last unit of its bucket is a second old. So of bursts
// exactly a second apart every other one passes, and of bursts 20 ms farther apart all pass. A ring
// admits both.
func TestBurstsInStepWithTheInterval(t *testing.T) {
	const limit = 10
	for _, tt := range []struct {
		window flow.Window
		apart  time.Duration
		want   int // of ten bursts
	}{
		{flow.Strict, time.Second, 5},
		{flow.Strict, time.Second + 20*ms, 10},
		{flow.Ring, time.Second, 10},
	} {
		g := newGuard(t, flow.Rule{Resource: "orders", Threshold: limit, Window: tt.window})
		passed := 0
		for range 10 {
			passed += g.passes(limit, "orders")
			g.clock.Advance(tt.apart)
		}
		assert.Equal(t, tt.want*limit, passed, "%v, %v apart", tt.window, tt.apart)
	}
}
