package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/isolation"
)

var (
	turns = flow.Rule{
		ID: "turns", Resource: "orders", Threshold: 10, Behavior: flow.Throttle, MaxWait: 10 * time.Second,
		Cluster: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed},
	}
	permits = flow.Rule{
		ID: "permits", Resource: "orders", Threshold: 10, Metric: flow.Concurrency,
		Cluster: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed},
	}
)

// permitSets returns a rule that shares n permits.
type permitSets func(n int, on cluster.OnFailure, mode api.Mode) api.RuleSet

// sharedPermits lists the families with shared permits.
var sharedPermits = map[string]permitSets{
	"flow": func(n int, on cluster.OnFailure, mode api.Mode) api.RuleSet {
		r := withFailure(permits, on)
		r.Threshold, r.Mode = float64(n), mode
		return api.RuleSet{Flow: []flow.Rule{r}}
	},
	"isolation": func(n int, on cluster.OnFailure, mode api.Mode) api.RuleSet {
		return api.RuleSet{Isolation: []isolation.Rule{{
			ID: "permits", Resource: "orders", Threshold: n, Cluster: cluster.Rule{Scope: cluster.Global, OnFailure: on}, Mode: mode,
		}}}
	},
}

// forPermits runs a test with each of them.
func forPermits(t *testing.T, test func(t *testing.T, set permitSets)) {
	for name, set := range sharedPermits {
		t.Run(name, func(t *testing.T) { test(t, set) })
	}
}

// withFailure returns the rule with another OnFailure.
func withFailure(r flow.Rule, on cluster.OnFailure) flow.Rule {
	r.Cluster.OnFailure = on
	return r
}

// open makes calls at a Guard until one is refused, or most run.
func (f *testCluster) open(g *api.Guard, most int, opts ...api.Option) (entries []api.Admitted) {
	for range most {
		entry, err := g.Entry(f.Context(), "orders", opts...)
		if err != nil {
			break
		}
		entries = append(entries, entry)
	}
	return entries
}

func exitAll(entries []api.Admitted) {
	for _, e := range entries {
		e.Exit()
	}
}

// The calls of all members run one after the other, at the spacing that the rule sets, and no turn
// is skipped.
func TestMembersShareAThrottle(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n, " members"), func(t *testing.T) {
			f := newCluster(t, n, turns)
			began, last := f.clock.Now(), int64(0)
			for i := range 30 {
				require.True(t, f.call(f.guards[i%n]))
				if i > 0 {
					require.GreaterOrEqual(t, time.Duration(f.clock.Now()-last), 100*time.Millisecond-100*time.Microsecond, "clocks may differ by a thousandth")
				}
				last = f.clock.Now()
			}
			assert.InDelta(t, 2.9, time.Duration(last-began).Seconds(), 0.1)
		})
	}
}

// A call whose turn is too far away is refused at once, with its RetryAfter. A turn that was
// assigned stays.
func TestASharedThrottleRefuses(t *testing.T) {
	rule := turns
	rule.MaxWait = 30 * time.Millisecond
	f := newCluster(t, 2, rule)
	require.True(t, f.call(f.guards[0]))
	_, err := f.guards[1].Entry(t.Context(), "orders")
	var block *api.BlockError
	require.ErrorAs(t, err, &block)
	assert.Equal(t, "turns", block.Rule)
	wait, known := block.RetryAfter()
	require.True(t, known)
	assert.InDelta(t, 0.07, wait.Seconds(), 0.01)
	f.clock.Advance(wait + time.Millisecond)
	began := f.clock.Now()
	require.True(t, f.call(f.guards[1]))
	assert.InDelta(t, 0.03, time.Duration(f.clock.Now()-began).Seconds(), 0.01)

	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, f.clock.Now()).Add(5*time.Millisecond))
	defer cancel()
	f.clock.Advance(90 * time.Millisecond)
	_, err = f.guards[0].Entry(ctx, "orders")
	require.Error(t, err, "its deadline comes first")
}

// With any number of members, no more units are in flight than the limit, and another member can use
// released units.
func TestMembersShareConcurrency(t *testing.T) { forPermits(t, testSharedPermits) }

func testSharedPermits(t *testing.T, set permitSets) {
	f := newClusterOf(t, 3, set(10, cluster.Closed, api.Enforce))
	var all []api.Admitted
	for range 20 { // units that a member holds in reserve are returned after a while
		for _, g := range f.guards {
			all = append(all, f.open(g, 2)...)
			require.LessOrEqual(t, len(all), 10)
		}
		f.clock.Advance(50 * time.Millisecond)
	}
	assert.Len(t, all, 10)
	_, err := f.guards[0].Entry(t.Context(), "orders")
	var block *api.BlockError
	require.ErrorAs(t, err, &block)
	_, known := block.RetryAfter()
	assert.False(t, known, "it depends on calls that exit")

	f.clock.Advance(10 * time.Second) // long calls keep their permits
	assert.Empty(t, f.open(f.guards[1], 1))
	exitAll(all)
	f.clock.Advance(time.Second)
	all = f.open(f.guards[2], 20)
	assert.Len(t, all, 10)
	exitAll(all)
}

// A call that another rule refuses releases its units.
func TestARefusedCallGivesSharedPermitsBack(t *testing.T) {
	forPermits(t, func(t *testing.T, set permitSets) {
		f := newCluster(t, 1)
		g := f.guards[0]
		both := set(10, cluster.Closed, api.Enforce)
		last := orders
		last.ID, last.Threshold = "last", 1
		both.Flow = append(both.Flow, last)
		require.NoError(t, g.LoadRules(both))
		exitAll(f.open(g, 1))
		for range 50 {
			require.Empty(t, f.open(g, 1))
		}
		require.NoError(t, g.LoadRules(set(10, cluster.Closed, api.Enforce)))
		all := f.open(g, 20)
		assert.Len(t, all, 10)
		exitAll(all)
	})
}

// Granted permits count under a new threshold: a running call loses none.
func TestSharedPermitsAreReloaded(t *testing.T) {
	forPermits(t, func(t *testing.T, set permitSets) {
		f := newClusterOf(t, 2, set(10, cluster.Closed, api.Enforce))
		load := func(set api.RuleSet) {
			for _, g := range f.guards {
				require.NoError(t, g.LoadRules(set))
			}
		}
		all := f.open(f.guards[0], 6)
		require.Len(t, all, 6)
		load(set(12, cluster.Closed, api.Enforce))
		f.clock.Advance(200 * time.Millisecond)
		rest := f.open(f.guards[1], 20)
		assert.Len(t, rest, 6)
		exitAll(all)
		exitAll(rest)
		f.clock.Advance(time.Second)
		load(set(10, cluster.Closed, api.Enforce))
		all = f.open(f.guards[1], 20)
		assert.Len(t, all, 10)
		exitAll(all)
	})
}

// The last shared rule is removed while calls hold its permits, and added again: those permits count
// as long as the calls run, and no longer.
// known bug 177
func TestSharedPermitsComeBack(t *testing.T) {
	forPermits(t, func(t *testing.T, set permitSets) {
		f := newCluster(t, 0)
		g, err := api.New(api.Config{Clock: f.clock, Logger: slog.New(slog.DiscardHandler), Cluster: cluster.Config{Store: f.store}})
		require.NoError(t, err)
		defer g.Close()
		load := func(set api.RuleSet) { require.NoError(t, g.LoadRules(set)) }
		shared := set(10, cluster.Closed, api.Enforce)

		load(shared)
		all := f.open(g, 10)
		require.Len(t, all, 10)
		load(api.RuleSet{})
		exitAll(all[:4])
		f.clock.Advance(5 * time.Second) // longer than the permits of a lost member are held
		load(shared)
		rest := f.open(g, 10)
		require.Len(t, rest, 4, "six run")
		exitAll(all[4:])
		f.clock.Advance(300 * time.Millisecond) // idle permits are returned after at most 200 ms
		rest = append(rest, f.open(g, 10)...)
		require.Len(t, rest, 10)

		exitAll(rest)
		load(api.RuleSet{}) // no call holds any: they are returned when the member leaves
		load(shared)
		rest = f.open(g, 20)
		assert.Len(t, rest, 10)
		load(api.RuleSet{})
		require.NoError(t, g.Close()) // waits for no call
		exitAll(rest)
	})
}

// The same holds for turns.
func TestSharedTurnsAreReloaded(t *testing.T) {
	f := newCluster(t, 2, turns)
	require.True(t, f.call(f.guards[0]))
	slower := turns
	slower.Threshold = 2
	for _, g := range f.guards {
		require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{slower}}))
	}
	began := f.clock.Now()
	require.True(t, f.call(f.guards[1]))
	assert.InDelta(t, 0.5, time.Duration(f.clock.Now()-began).Seconds(), 0.01)
}

// In shadow mode, such rules delay and refuse no call.
func TestSharedTurnsAndPermitsInShadowMode(t *testing.T) {
	sets := map[string]api.RuleSet{}
	for name, set := range sharedPermits {
		sets[name] = set(10, cluster.Closed, api.Shadow)
	}
	shadow := turns
	shadow.Mode, shadow.MaxWait = api.Shadow, time.Millisecond
	sets["turns"] = api.RuleSet{Flow: []flow.Rule{shadow}}
	for name, set := range sets {
		t.Run(name, func(t *testing.T) {
			f := newClusterOf(t, 2, set)
			var all []api.Admitted
			for range 3 {
				for _, g := range f.guards {
					all = append(all, f.open(g, 30)...)
				}
				f.clock.Advance(20 * time.Millisecond)
			}
			assert.Len(t, all, 180)
			exitAll(all)
			figures := f.guards[0].Engine().Rules().RuleStats()[0]
			assert.Zero(t, figures.Refused)
			assert.Positive(t, figures.ShadowBlocked)
			assert.Empty(t, f.clock.Slept())
		})
	}
}

// While the store is unreachable, throttles and limits of concurrency follow onFailure as well:
// with local, each of two members has half.
func TestStoreOfSharedTurnsAndPermitsIsAway(t *testing.T) {
	for on, want := range map[cluster.OnFailure]struct{ permits, turns int }{
		cluster.Closed: {0, 0}, cluster.Open: {40, 40}, cluster.Local: {5, 5},
	} {
		away := func(t *testing.T, set api.RuleSet) *testCluster {
			f := newCluster(t, 0)
			store := &outage{Memory: cluster.NewMemory(f.clock)}
			f.store, f.members = store, 2
			store.away.Store(true)
			f.joinWith(set)
			f.pour(20)
			f.clock.Advance(3 * time.Second)
			return f
		}
		for name, set := range sharedPermits {
			t.Run(fmt.Sprint(name, " ", on), func(t *testing.T) {
				f := away(t, set(10, on, api.Enforce))
				slept := len(f.clock.Slept())
				all := f.open(f.guards[0], 40)
				assert.Len(t, all, want.permits)
				assert.Len(t, f.clock.Slept(), slept, "nobody waits for it")
				assert.Contains(t, f.line("permits"), "store away")
				exitAll(all)
			})
		}
		t.Run(fmt.Sprint("turns ", on), func(t *testing.T) {
			rule := withFailure(turns, on)
			rule.MaxWait = 10 * time.Millisecond
			f := away(t, api.RuleSet{Flow: []flow.Rule{rule}})
			slept, ran := len(f.clock.Slept()), 0
			for range 40 {
				if f.call(f.guards[0]) {
					ran++
				}
				f.clock.Advance(25 * time.Millisecond)
			}
			assert.InDelta(t, want.turns, ran, 1)
			if on != cluster.Local {
				assert.Len(t, f.clock.Slept(), slept, "nobody waits for it")
			}
		})
	}
}

// slow is a store that never replies in time.
type slow struct{ store.Store }

func (slow) Start(context.Context, []store.Command, func()) {}

// A call that needs units of several shared limits waits for the store for at most one timeout; and
// after a few calls no call waits.
func TestACallUnderThreeSharedRulesWaitsForOneTimeout(t *testing.T) {
	for _, on := range []cluster.OnFailure{cluster.Local, cluster.Open, cluster.Closed} {
		t.Run(on.String(), func(t *testing.T) {
			f := newCluster(t, 0)
			f.store = slow{cluster.NewMemory(f.clock)}
			set := sharedPermits["isolation"](10, on, api.Enforce)
			set.Flow = []flow.Rule{withFailure(orders, on), withFailure(turns, on), withFailure(permits, on)}
			f.joinWith(set)
			waited := 0
			for range 30 {
				before := len(f.clock.Slept())
				_ = f.call(f.guards[0])
				total := time.Duration(0)
				for _, d := range f.clock.Slept()[before:] {
					if total += d; d > 0 {
						waited++
					}
				}
				require.LessOrEqual(t, total, cluster.DefaultTimeout)
				f.clock.Advance(500 * time.Millisecond) // turns of the throttle must be available
			}
			assert.LessOrEqual(t, waited, 20)
		})
	}
}

// counted is a store that counts its round trips.
type counted struct {
	*cluster.Memory
	trips atomic.Int64
}

func (s *counted) Start(ctx context.Context, batch []store.Command, done func()) {
	s.trips.Add(1)
	s.Memory.Start(ctx, batch, done)
}

// A call fetches the units it needs from several limits in one round trip.
func TestSharedLimitsAreFetchedInOneRound(t *testing.T) {
	f := newCluster(t, 0)
	store := &counted{Memory: cluster.NewMemory(f.clock)}
	f.store = store
	set := sharedPermits["isolation"](10, cluster.Closed, api.Enforce)
	set.Flow = []flow.Rule{orders, turns, permits}
	f.joinWith(set)
	f.clock.Advance(150 * time.Millisecond)
	before := store.trips.Load()
	require.True(t, f.call(f.guards[0]))
	assert.EqualValues(t, 1, store.trips.Load()-before)
}

// A call with its turn or permits at hand doesn't allocate, nor does one that is refused without
// asking the store.
func TestSharedTurnsAndPermitsAllocateNothing(t *testing.T) {
	fast := turns
	fast.Threshold, fast.MaxWait = 1e6, time.Millisecond
	f := newCluster(t, 1, fast)
	next := func() {
		f.clock.Advance(time.Microsecond)
		f.call(f.guards[0])
	}
	for range 50_000 { // until leases match the demand
		next()
	}
	race.AllocatesNothing(t, 1000, next)

	forPermits(t, func(t *testing.T, set permitSets) {
		f := newClusterOf(t, 1, set(10, cluster.Closed, api.Enforce))
		exitAll(f.open(f.guards[0], 5))
		race.AllocatesNothing(t, 100, func() { f.call(f.guards[0]) })
		all := f.open(f.guards[0], 10)
		race.AllocatesNothing(t, 100, func() { f.call(f.guards[0]) })
		exitAll(all)
	})
}

// Explain reports the turns and permits at hand, without side effects.
func TestExplainSharedTurnsAndPermits(t *testing.T) {
	f := newCluster(t, 1, turns)
	explain := func() api.Explanation {
		before := f.line("turns") + f.line("permits")
		x, err := f.guards[0].Explain(t.Context(), "orders")
		require.NoError(t, err)
		require.Equal(t, before, f.line("turns")+f.line("permits"))
		return x
	}
	assert.Equal(t, "the cluster store would decide", explain().Rules[0].Why)
	brief := turns
	brief.MaxWait = 10 * time.Millisecond
	require.NoError(t, f.guards[0].LoadRules(api.RuleSet{Flow: []flow.Rule{brief}}))
	require.True(t, f.call(f.guards[0]))
	x := explain()
	assert.Equal(t, core.Refused, x.Outcome)
	assert.False(t, x.Next.IsZero())

	for name, set := range sharedPermits {
		require.NoError(t, f.guards[0].LoadRules(set(10, cluster.Closed, api.Enforce)))
		assert.Equal(t, core.Passes, explain().Outcome, name)
		all := f.open(f.guards[0], 20)
		x = explain()
		assert.Equal(t, core.Refused, x.Outcome, name)
		assert.Equal(t, core.Measure{Of: "units in flight, held by all members", Measured: 10, Limit: 10}, x.Rules[0].Measures[0], name)
		exitAll(all)
	}
}

// Without the store, a call whose turn is too far away is refused for that reason; with closed,
// because the store is unreachable.
func TestExplainSharedTurnsWithoutTheStore(t *testing.T) {
	for on, want := range map[cluster.OnFailure]core.Judgement{
		cluster.Local:  {Outcome: core.Refused, About: true, Why: "cluster store unreachable: this member enforces its share of the limit"},
		cluster.Closed: {Outcome: core.Refused, Why: "cluster store unreachable: only leased units can be spent"},
		cluster.Open:   {Outcome: core.Passes, Why: "cluster store unreachable: all calls pass"},
	} {
		f := newCluster(t, 0)
		store := &outage{Memory: cluster.NewMemory(f.clock)}
		f.store, f.members = store, 2
		store.away.Store(true)
		rule := withFailure(turns, on)
		rule.MaxWait = 10 * time.Millisecond
		f.join(rule)
		f.pour(20)
		x, err := f.guards[0].Explain(t.Context(), "orders")
		require.NoError(t, err)
		got := x.Rules[0].Judgement
		assert.Equal(t, want.Outcome, got.Outcome, on)
		assert.Equal(t, want.Why, got.Why, on)
		assert.Equal(t, want.About, got.About, on)
		assert.Equal(t, on == cluster.Local, !got.Next.IsZero(), on)
	}
}

// The measure of a rule shows how full its limit is, to this member's knowledge; while the store is
// unreachable, how full its own share is. Units on a lease are not part of it.
func TestMeasuresOfSharedLimits(t *testing.T) {
	slow := turns
	slow.MaxWait = time.Second
	for _, c := range []struct {
		rule                        flow.Rule
		shared, local, open, closed string
	}{
		{
			orders, "units in 1s, on a lease: 2 of 100, full 0 false", "units in 1s, of this member: 30 of 50, full 0.6 true",
			"units in 1s, on a lease: 0 of 100, full 0 false", "units in 1s, on a lease: 0 of 100, full 0 false",
		},
		{
			slow, "wait for a turn: 99.8002 of 1000ms, full 0.0998 true", "wait for a turn: 200 of 1000ms, full 0.2 true",
			"wait for a turn: 0 of 1000ms, full 0 true", "wait for a turn: 0 of 1000ms, full 0 true",
		},
		{
			permits, "units in flight, held by all members: 7 of 10, full 0.7 true", "units in flight, of this member: 5 of 5, full 1 true",
			"units in flight, of this member: 5 of 10, full 0.5 true", "units in flight, of this member: 5 of 0, full 1 true",
		},
	} {
		for on, want := range map[cluster.OnFailure]string{cluster.Local: c.local, cluster.Open: c.open, cluster.Closed: c.closed} {
			f := newCluster(t, 0)
			store := &outage{Memory: cluster.NewMemory(f.clock)}
			f.store, f.members = store, 2
			f.join(withFailure(c.rule, on))
			measure := func() string {
				x, err := f.guards[0].Explain(t.Context(), "orders")
				require.NoError(t, err)
				m := x.Rules[0].Measures[0]
				full, known := m.Full()
				return fmt.Sprintf("%s: %v of %v%s, full %v %t", m.Of, m.Measured, m.Limit, m.Unit, full, known)
			}
			all := f.open(f.guards[0], 5)
			assert.Equal(t, c.shared, measure(), "%s %v", c.rule.ID, on)
			store.away.Store(true)
			for range 50 {
				f.call(f.guards[0])
				f.clock.Advance(100 * time.Millisecond)
			}
			f.pour(20)
			assert.Equal(t, want, measure(), "%s %v", c.rule.ID, on)
			exitAll(all)
		}
	}
}

// The tree shows the same details for turns and permits as for windows.
func TestFiguresOfSharedTurnsAndPermits(t *testing.T) {
	f := newClusterOf(t, 1, api.RuleSet{
		Flow:      []flow.Rule{turns, permits},
		Isolation: sharedPermits["isolation"](10, cluster.Closed, api.Enforce).Isolation,
	})
	f.pour(5)
	for _, r := range f.guards[0].Engine().Rules().RuleStats() {
		figures := r.Details.(core.SharedStats)
		assert.Positive(t, figures.Requests, r.Kind)
		assert.Positive(t, figures.Waited, r.Kind)
		assert.Equal(t, "up", figures.Store, r.Kind)
	}
}

// A rule that members can't share is refused with an explanation.
func TestSharedTurnsThatCannotBeCounted(t *testing.T) {
	for want, change := range map[string]func(*flow.Rule){
		"in a cluster calls must be at least 1µs apart":                       func(r *flow.Rule) { r.Threshold = 2e6 },
		"in a cluster calls must be at most 24h0m0s apart":                    func(r *flow.Rule) { r.Threshold, r.Interval = 0.5, 24*time.Hour },
		"flow[0].burst: is 0, but in a cluster must be at least 1":            func(r *flow.Rule) { r.Behavior, r.MaxWait = flow.TokenBucket, 0 },
		"flow[0].burst: is 1, but in a cluster must be at least 2":            func(r *flow.Rule) { r.Behavior, r.MaxWait, r.Threshold, r.Burst = flow.TokenBucket, 0, 100, 1 },
		"flow[0].burst: is 7000000, which the bucket gains in more than 240h": func(r *flow.Rule) { r.Behavior, r.MaxWait, r.Threshold, r.Burst = flow.TokenBucket, 0, 7, 7_000_000 },
		"flow[0].cluster: has no meaning for behavior warmUpT":                func(r *flow.Rule) { r.Behavior = flow.WarmUpThrottle },
		"in a cluster must be at most":                                        func(r *flow.Rule) { r.Threshold, r.Interval = 2e9, 24*time.Hour },
	} {
		rule := turns
		change(&rule)
		assert.ErrorContains(t, newGuard(t, api.Config{}).LoadRules(api.RuleSet{Flow: []flow.Rule{rule}}), want)
	}
	queue := isolation.Rule{ID: "queue", Resource: "orders", Threshold: 5, MaxQueue: 3, MaxWait: time.Second, Cluster: cluster.Rule{Scope: cluster.Global}}
	assert.ErrorContains(t, newGuard(t, api.Config{}).LoadRules(api.RuleSet{Isolation: []isolation.Rule{queue}}), "isolation[0].cluster: has no meaning for maxQueue")
}
