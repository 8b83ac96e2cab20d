package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/books"
)

// distant is a store with a network delay in both directions.
type distant struct {
	*cluster.Memory
	way time.Duration
}

func (s distant) Start(ctx context.Context, batch []store.Command, done func()) {
	time.AfterFunc(s.way, func() {
		s.Memory.Start(ctx, batch, func() { time.AfterFunc(s.way, done) })
	})
}

type machineClock struct{}

func (machineClock) Now() int64 { return time.Now().UnixNano() }

// tried is a rule in shadow mode, and its callers.
type tried struct {
	set   func(api.Mode) api.RuleSet
	gap   time.Duration // between two calls, on average
	calls int
}

func triedFlow(r flow.Rule, calls int) tried {
	r.ID, r.Resource, r.Cluster = "tried", "orders", cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed}
	if r.Interval == 0 {
		r.Interval = time.Second
	}
	set := func(mode api.Mode) api.RuleSet {
		r.Mode = mode
		return api.RuleSet{Flow: []flow.Rule{r}}
	}
	return tried{set, time.Duration(float64(r.Interval) / r.Threshold / 2), calls}
}

func triedHotspot(r hotspot.Rule, calls int) tried {
	r.ID, r.Resource, r.Param, r.Cluster = "tried", "orders", "user", cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Local}
	r.Interval = time.Second
	set := func(mode api.Mode) api.RuleSet {
		r.Mode = mode
		return api.RuleSet{Hotspot: []hotspot.Rule{r}}
	}
	return tried{set, time.Duration(float64(time.Second) / r.Threshold / 2), calls}
}

// tries have limits so small that calls ask the store, and callers that make twice as many calls as
// the limit admits.
var tries = map[string]tried{
	"turns that nobody waits for":  triedFlow(flow.Rule{Threshold: 100, Behavior: flow.Throttle, MaxWait: 1}, 600),
	"turns, 3 of them waited for":  triedFlow(flow.Rule{Threshold: 100, Behavior: flow.Throttle, MaxWait: 30 * time.Millisecond}, 600),
	"turns, 50 of them waited for": triedFlow(flow.Rule{Threshold: 100, Behavior: flow.Throttle, MaxWait: 500 * time.Millisecond}, 600),
	"a window of 2 units":          triedFlow(flow.Rule{Threshold: 2, Buckets: 1}, 240),
	"a strict window of 10 units":  triedFlow(flow.Rule{Threshold: 10, Buckets: 10, Window: flow.Strict}, 400),
	"turns of two values":          triedHotspot(hotspot.Rule{Threshold: 50, Behavior: hotspot.Throttle, MaxWait: 60 * time.Millisecond}, 600),
	"windows of two values":        triedHotspot(hotspot.Rule{Threshold: 4}, 400),
}

// A rule in shadow mode counts the calls it would refuse if enforced, even if each call has to ask
// the store, near or far: no call waits for that.
// known bug 216
func TestSmallSharedLimitsInShadowMode(t *testing.T) {
	for name, x := range tries {
		for _, place := range []string{"near", "far", "away in between"} {
			t.Run(fmt.Sprintf("%s, a store that is %s", name, place), func(t *testing.T) {
				enforced, shadow := x.play(t, api.Enforce, place), x.play(t, api.Shadow, place)
				t.Logf("%d of %d calls are refused, in shadow mode %d", enforced, x.calls, shadow)
				assert.InEpsilon(t, enforced, shadow, 0.1)
			})
		}
	}
}

// play makes the calls at two Guards in turn, in a synctest bubble where sleeping takes no time, and
// returns how many are refused, or would be. A remote store takes 4 ms; the others reply at once,
// and no time passes while calls wait for their turns.
func (x tried) play(t *testing.T, mode api.Mode, place string) (refused int64) {
	synctest.Test(t, func(t *testing.T) {
		clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
		clock.SetSleep(clocks.SleepRecord)
		config, pass := api.Config{Clock: clock}, clock.Advance
		near := &outage{Memory: cluster.NewMemory(clock)}
		var store store.Store = near
		if place == "far" {
			config, pass, store = api.Config{}, time.Sleep, distant{cluster.NewMemory(machineClock{}), 2 * time.Millisecond}
		}
		var guards []*api.Guard
		for i := range 2 {
			config.Logger = slog.New(slog.DiscardHandler)
			config.Cluster = cluster.Config{Store: store, Members: 2, Seed: uint64(i + 1)}
			g, err := api.New(config)
			require.NoError(t, err)
			defer func() { assert.NoError(t, g.Close()) }()
			books.Keep(t, g.Engine())
			require.NoError(t, g.LoadRules(x.set(mode)))
			guards = append(guards, g)
		}
		random := rand.New(rand.NewPCG(1, 2))
		var blocked atomic.Int64
		for i := range x.calls {
			near.away.Store(place == "away in between" && i > x.calls/3 && i < x.calls*2/3)
			pass(time.Duration(random.ExpFloat64() * float64(x.gap)))
			users := [][]int{{1}, {2}, {1, 2}}[random.IntN(3)]
			began := time.Now()
			go func() {
				opts := []api.Option{api.Param("user", users)}
				if i%7 == 0 {
					opts = append(opts, api.Prioritized())
				}
				e, err := guards[i%len(guards)].Entry(t.Context(), "orders", opts...)
				if err != nil {
					blocked.Add(1)
				}
				if mode == api.Shadow && (err != nil || time.Since(began) > 0) {
					t.Errorf("a call waits for a rule in shadow mode, or is refused: %v", err)
				}
				e.Exit()
			}()
			synctest.Wait()
		}
		pass(2 * time.Second) // the last replies
		refused = blocked.Load()
		for _, g := range guards {
			refused += g.Engine().Rules().RuleStats()[0].ShadowBlocked
		}
		if mode == api.Shadow {
			assert.Empty(t, clock.Slept())
		}
	})
	return refused
}
