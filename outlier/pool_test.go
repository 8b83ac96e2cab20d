package outlier

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
)

var seed = chance.Seed

// twinRule returns a rule that a twin can follow.
func twinRule(share float64, probes int) Rule {
	r, err := Rule{
		Resource: "orders", MaxEjected: share, MinCalls: 1, Interval: 100 * time.Millisecond, Buckets: 1, ForgetAfter: 100 * time.Millisecond,
		Recovery: 50 * time.Millisecond, Probes: probes, ProbeTimeout: 20 * time.Millisecond,
	}.Normalized()
	if err != nil {
		panic(err)
	}
	return r
}

// alone returns the pool of a rule that is alone on its resource.
func alone(r Rule) *pool {
	p := newPool(new(site), r, breaker.NewTerms(r.breaker()))
	if r.Mode == spec.Enforce {
		p.site.enforce([]*pool{p})
	}
	return p
}

// flight is a call under way, at a pool and at its twin.
type flight struct {
	caller int
	addr   string
	who    *endpoint
	number uint64
	probe  bool
	twin   ticket
}

// Under random calls at times that jump about, the pool behaves like its twin, which is written
// without regard to cost, and at every step the share holds.
// known bug 1, 20
func TestPoolDoesWhatItsTwinDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 0))
	steps, over := 0, 0
	for range figure.Size(20, 50, 2_000, 100_000) {
		tenths := []int{2, 3, 5, 10}[r.IntN(4)]
		rule := twinRule(float64(tenths)/10, 1+r.IntN(2))
		p, w := alone(rule), newTwin(rule)
		now, endpoints, fails := int64(time.Hour), 1+r.IntN(8), r.Float64()
		var flying []flight
		for step := range 200 {
			steps++
			now += []int64{0, 0, 1, int64(time.Millisecond), int64(r.IntN(50)) * int64(time.Millisecond), int64(200 * time.Millisecond)}[r.IntN(6)]
			at := now - []int64{0, 0, 0, int64(30 * time.Millisecond)}[r.IntN(4)] // some are late
			addr := fmt.Sprint("c", r.IntN(endpoints))
			what := fmt.Sprintf("step %d, -seed=%d", step, *seed)
			if r.IntN(40) == 0 { // the rule changes
				tenths = []int{2, 3, 5, 10}[r.IntN(4)]
				rule.MaxEjected, rule.ForgetAfter = float64(tenths)/10, time.Duration(1+2*r.IntN(2))*100*time.Millisecond
				p.adopt(rule, breaker.NewTerms(rule.breaker()), now)
				p.site.enforce(p.site.pools)
				w.rule, w.latest = rule, max(w.latest, now)
				require.Equal(t, w.tidy(at), p.tidy(at), what)
			}
			switch i := r.IntN(len(flying) + 4); {
			case i >= len(flying)+3:
				require.Equal(t, !w.refuses(addr, at), p.asks(addr, at), what)
			case i >= len(flying):
				f := flight{caller: steps, addr: addr}
				var ok, want bool
				f.who, f.number, f.probe, ok = p.admit(addr, at)
				f.twin, want = w.admit(steps, addr, at)
				require.Equal(t, want, ok, "%s: %s is let in", what, addr)
				if ok {
					flying = append(flying, f)
				}
			default:
				f := flying[i]
				flying[i] = flying[len(flying)-1]
				flying = flying[:len(flying)-1]
				switch {
				case r.IntN(8) == 0: // the call is lost
				case f.probe && r.IntN(4) == 0:
					f.who.breaker.GiveBack(f.number)
					w.giveBack(f.caller, f.addr, f.twin)
				case r.IntN(6) == 0:
					p.complete(f.who, f.number, at, breaker.End{Took: time.Millisecond, Neutral: true})
					w.leave(f.caller, f.addr, f.twin, at)
				default:
					bad := r.Float64() < fails
					p.complete(f.who, f.number, at, breaker.End{Took: time.Millisecond, Failed: bad})
					w.complete(f.caller, f.addr, f.twin, at, bad)
				}
			}
			requireSame(t, w, p, what)
			if e, n := p.outside.n, len(p.known); e > 0 && (10*e > tenths*n || e == n) {
				over++
			}
		}
	}
	figure.Report(t, figure.Figure{Name: "steps with more endpoints ejected than the share", Value: float64(over), N: int64(steps), Seed: *seed})
}

// The twin's order doesn't depend on map iteration.
func TestTwinKnowsWhoGoesNext(t *testing.T) {
	for range 100 {
		w := newTwin(Rule{ForgetAfter: 2, Recovery: 1})
		w.known["open"] = &twinEndpoint{state: "open", touched: 5, step: 1}
		w.known["probing"] = &twinEndpoint{state: "probing", touched: 5, step: 2}
		addr, _ := w.nextToGo()
		require.Equal(t, "open", addr)
		w.known["serving"] = &twinEndpoint{touched: 6, step: 3}
		addr, _ = w.nextToGo()
		require.Equal(t, "serving", addr)
	}
}

// requireSame checks that both know the same endpoints, in the same states, in the order in which
// they expire.
func requireSame(t *testing.T, w *twin, p *pool, what string) {
	t.Helper()
	require.Len(t, p.known, len(w.known), what)
	outside := 0
	for addr, x := range w.known {
		c := p.known[addr]
		require.NotNil(t, c, "%s: %s", what, addr)
		state := map[breaker.State]string{breaker.Open: "open", breaker.HalfOpen: "probing"}[c.breaker.State()]
		require.Equal(t, x.state, state, "%s: %s", what, addr)
		require.Equal(t, x.touched, c.touched, "%s: %s", what, addr)
		if x.state != "" {
			outside++
			require.Same(t, &p.outside, c.in, "%s: %s", what, addr)
		} else {
			require.Same(t, &p.serving, c.in, "%s: %s", what, addr)
		}
	}
	require.Equal(t, outside, p.outside.n, what)
	require.EqualValues(t, outside, p.site.ejected.Load(), what)
	for _, l := range []*list{&p.serving, &p.outside} {
		n := 0
		for c := range l.all() {
			n++
			require.True(t, c.next == nil || c.next.touched <= c.touched, what)
		}
		require.Equal(t, l.n, n, what)
	}
}
