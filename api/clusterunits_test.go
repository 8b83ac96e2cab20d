package api_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/bandwidth"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
)

// tokens is a shared rule that counts what calls cost.
var tokens = flow.Rule{
	ID: "tokens", Resource: "orders", Unit: "tokens", Threshold: 1000, Interval: 10 * time.Second, Buckets: 10,
	Cluster: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed},
}

// unitSets are the rules with which members share windows of units.
var unitSets = map[string]func(api.Mode, float64) api.RuleSet{
	"flow": func(mode api.Mode, limit float64) api.RuleSet {
		r := tokens
		r.Mode, r.Threshold = mode, limit
		return api.RuleSet{Flow: []flow.Rule{r}}
	},
	"hotspot": func(mode api.Mode, limit float64) api.RuleSet {
		return api.RuleSet{Hotspot: []hotspot.Rule{{
			ID: "tokens", Resource: "orders", Param: "tenant", Unit: "tokens", Threshold: limit, Interval: tokens.Interval,
			Cluster: tokens.Cluster, Mode: mode,
		}}}
	},
}

// costlyCall is a call in flight at a member.
type costlyCall struct {
	api.Admitted
	at             int64         // in a call: the position of its reservation
	reserved, more int64         // and not given back
	grants         []*costlyCall // the latest first
	settled        bool
}

// Members share what calls cost: the interval before each admission holds no more than the limit of
// units that calls have reserved, and not given back. Calls settle late, twice, below and beyond their
// reservation, or never; rules are loaded again, with other limits; members leave.
func TestMembersShareUnits(t *testing.T) {
	for name, set := range unitSets {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(30) {
				playUnits(t, set, rand.New(rand.NewPCG(seed, 0)))
			}
		})
	}
}

func playUnits(t *testing.T, set func(api.Mode, float64) api.RuleSet, r *rand.Rand) {
	f := newClusterOf(t, 3, set(api.Enforce, 1000))
	var calls, open []*costlyCall
	reserve := func(c *costlyCall, n int64) *costlyCall {
		// A grant counts when it is decided, like a call of its own.
		x := &costlyCall{Admitted: c.Admitted, at: f.clock.Now(), reserved: n}
		calls = append(calls, x)
		sum := int64(0)
		for _, c := range calls {
			if c.at > f.clock.Now()-int64(tokens.Interval) {
				sum += c.reserved
			}
		}
		require.LessOrEqual(t, sum, int64(1000))
		return x
	}
	for range 300 {
		f.clock.Advance(time.Duration(r.Int64N(int64(300 * time.Millisecond))))
		switch k := r.IntN(10); {
		case k < 5 && len(open) < 64:
			n := 1 + r.Int64N(200)
			e, err := f.guards[r.IntN(3)].Entry(t.Context(), "orders", api.Cost("tokens", n), api.Param("tenant", "gold"))
			if err != nil {
				require.ErrorIs(t, err, api.ErrBlocked)
				continue
			}
			c := &costlyCall{Admitted: e}
			reserve(c, n)
			c.at = int64(len(calls) - 1)
			open = append(open, c)
		case len(open) == 0:
		case k < 7:
			c := open[r.IntN(len(open))]
			n := 1 + r.Int64N(50)
			if err := c.More(t.Context(), "tokens", n); err == nil {
				require.False(t, c.settled)
				c.more += n
				c.grants = append([]*costlyCall{reserve(c, n)}, c.grants...)
			}
		case k < 9:
			c := open[r.IntN(len(open))]
			entry := calls[c.at]
			used := r.Int64N(300)
			c.Settle("tokens", used)
			back := max(0, entry.reserved+c.more-used)
			for _, x := range append(c.grants, entry) { // at most that
				if !c.settled {
					n := min(back, x.reserved)
					x.reserved -= n
					back -= n
				}
			}
			c.settled = true
		default:
			i := r.IntN(len(open))
			open[i].Exit()
			open = append(open[:i], open[i+1:]...)
		}
		if r.IntN(40) == 0 { // the same limit, loaded again
			require.NoError(t, f.guards[r.IntN(3)].LoadRules(set(api.Enforce, 1000)))
		}
	}
	for _, c := range open {
		c.Exit()
	}
}

// Units that a call doesn't use are free for other members, and no call passes while units beyond an
// estimate count.
func TestMembersSettle(t *testing.T) {
	for name, set := range unitSets {
		t.Run(name, func(t *testing.T) {
			f := newClusterOf(t, 2, set(api.Enforce, 1000))
			enter := func(i int, n int64) (api.Admitted, error) {
				return f.guards[i].Entry(t.Context(), "orders", api.Cost("tokens", n), api.Param("tenant", "gold"))
			}
			e, err := enter(0, 1000)
			require.NoError(t, err)
			_, err = enter(1, 600)
			require.ErrorIs(t, err, api.ErrBlocked)
			f.clock.Advance(5 * time.Second)
			e.Settle("tokens", 300)
			f.clock.Advance(4 * time.Second) // leased units go back, too
			other, err := enter(1, 400)
			require.NoError(t, err)
			f.clock.Advance(time.Second) // shares have been shared out
			require.NoError(t, other.More(t.Context(), "tokens", 90))
			require.ErrorIs(t, other.More(t.Context(), "tokens", 300), api.ErrBlocked)
			other.Settle("tokens", 1500)
			f.clock.Advance(7 * time.Second) // the first call's bucket has gone
			for i := range f.guards {
				_, err = enter(i, 1)
				require.ErrorIs(t, err, api.ErrBlocked)
				var b *api.BlockError
				require.ErrorAs(t, err, &b)
				_, known := b.RetryAfter()
				assert.True(t, known)
			}
			_, err = enter(0, 1001)
			var b *api.BlockError
			require.ErrorAs(t, err, &b)
			_, known := b.RetryAfter()
			assert.False(t, known, "more than the limit")
			f.clock.Advance(5 * time.Second) // and the debit's
			last, err := enter(0, 800)
			require.NoError(t, err)
			for _, e := range []api.Admitted{e, other, last} {
				e.Exit()
			}
		})
	}
}

// A rule in shadow mode counts at the store what calls cost, and what they settle, even where it is
// decided only after the call has been settled. It sleeps on the virtual time of synctest.
func TestShadowRulesSettleInACluster(t *testing.T) {
	for name, set := range unitSets {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := machineClock{}
				slow := distant{cluster.NewMemory(clock), 2 * time.Millisecond}
				f := &testCluster{T: t, store: slow}
				var guards []*api.Guard
				for i := range 2 {
					g, err := api.New(api.Config{Clock: nil, Cluster: cluster.Config{Store: f.store, Namespace: "test", Seed: uint64(i + 1)}})
					require.NoError(t, err)
					defer g.Close()
					require.NoError(t, g.LoadRules(set(api.Shadow, 1000)))
					guards = append(guards, g)
				}
				enter := func(i int, n int64) api.Admitted {
					e, err := guards[i].Entry(t.Context(), "orders", api.Cost("tokens", n), api.Param("tenant", "gold"))
					require.NoError(t, err)
					return e
				}
				e := enter(0, 900)
				e.Settle("tokens", 100) // before the store has replied
				e.Exit()
				time.Sleep(4 * time.Second) // leased units go back, on virtual time
				e = enter(1, 800)
				time.Sleep(time.Second)
				e.Settle("tokens", 2000)
				e.Exit()
				time.Sleep(time.Second)
				refused := func() (n int64) {
					for _, g := range guards {
						for _, s := range g.RuleStats() {
							n += s.ShadowBlocked
						}
					}
					return n
				}
				assert.Zero(t, refused())
				e = enter(0, 1)
				time.Sleep(time.Second)
				assert.EqualValues(t, 1, refused())
				e.Exit()
			})
		})
	}
}

// Streams of two processes share a limit of 10 MB/s, within 5 % of it each second.
func TestMembersShareBandwidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, streams = 10e6, 4
		clock := machineClock{}
		slow := distant{cluster.NewMemory(clock), 300 * time.Microsecond}
		rule := flow.Rule{
			ID: "bytes", Resource: "GET /file", Unit: "bytes", Threshold: limit, Behavior: flow.Throttle, Cluster: tokens.Cluster,
		}
		var mu sync.Mutex
		perSecond := map[int64]float64{}
		began, until := time.Now(), time.Now().Add(6*time.Second)
		ctx, cancel := context.WithDeadline(t.Context(), until)
		defer cancel()
		var all sync.WaitGroup
		for i := range 2 {
			g, err := api.New(api.Config{Cluster: cluster.Config{Store: slow, Namespace: "test", Seed: uint64(i + 1)}})
			require.NoError(t, err)
			defer g.Close()
			require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{rule}}))
			for range streams {
				e, err := g.Entry(ctx, "GET /file")
				require.NoError(t, err)
				all.Go(func() {
					defer e.Exit()
					w := bandwidth.Writer(ctx, tally(func(n int) {
						mu.Lock()
						defer mu.Unlock()
						perSecond[int64(time.Since(began)/time.Second)] += float64(n)
					}), e)
					for err == nil {
						_, err = w.Write(make([]byte, 64<<10))
					}
				})
			}
		}
		all.Wait()
		for second := range int64(5) {
			assert.InEpsilon(t, limit, perSecond[second], 0.05, fmt.Sprint("second ", second))
		}
	})
}

// tally is a writer that counts bytes.
type tally func(n int)

func (c tally) Write(p []byte) (int, error) {
	c(len(p))
	return len(p), nil
}

var _ io.Writer = tally(nil)

// Permits of units are shared, and settled.
func TestMembersShareUnitsInFlight(t *testing.T) {
	rule := tokens
	rule.Metric, rule.Interval, rule.Buckets, rule.Unit = flow.Concurrency, 0, 0, "bytes"
	f := newCluster(t, 2, rule)
	enter := func(i int, n int64) (api.Admitted, error) {
		f.clock.Advance(300 * time.Millisecond) // units that nobody uses go back
		return f.guards[i].Entry(t.Context(), "orders", api.Cost("bytes", n))
	}
	a, err := enter(0, 900)
	require.NoError(t, err)
	_, err = enter(1, 200)
	require.Error(t, err)
	a.Settle("bytes", 300)
	b, err := enter(1, 500)
	require.NoError(t, err)
	require.NoError(t, b.More(t.Context(), "bytes", 100))
	f.clock.Advance(300 * time.Millisecond)
	require.NoError(t, b.More(t.Context(), "bytes", 50))
	b.Settle("bytes", 1200)
	a.Exit()
	_, err = enter(0, 1)
	require.Error(t, err)
	b.Exit()
	c, err := enter(0, 1000)
	require.NoError(t, err)
	c.Exit()
}

// A call of a value is charged by the rule in force. If that has come to share its limits meanwhile, the
// units that the call used beyond its reservation are forgiven, and counted as that.
func TestChargeOfAValueWhoseLimitCameToBeShared(t *testing.T) {
	clock := api.NewManualClock(time.Unix(1_800_000_000, 0))
	g := newGuard(t, api.Config{Clock: clock, Cluster: cluster.Config{Store: cluster.NewMemory(clock)}})
	for _, behavior := range []hotspot.Behavior{hotspot.Reject, hotspot.Throttle} {
		rule := hotspot.Rule{ID: "r", Resource: behavior.String(), Param: "tenant", Unit: "tokens", Threshold: 1000, Behavior: behavior}
		require.NoError(t, g.LoadRules(api.RuleSet{Hotspot: []hotspot.Rule{rule}}))
		e, err := g.Entry(t.Context(), rule.Resource, api.Cost("tokens", 10), api.Param("tenant", "gold"))
		require.NoError(t, err)
		rule.Cluster = tokens.Cluster
		require.NoError(t, g.LoadRules(api.RuleSet{Hotspot: []hotspot.Rule{rule}}))
		e.Settle("tokens", 25)
		e.Exit()
		assert.EqualValues(t, 15, g.UnitStats(rule.Resource)[0].Total.Forgiven)
	}
}
