package clocks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

// The ends of a clock's range.
var (
	firstTime = clocks.NewManual(time.Unix(0, math.MinInt64)).Now()
	lastTime  = clocks.NewManual(time.Unix(0, math.MaxInt64)).Now()
)

// everyKind returns rules of all families and behaviors, most of them on separate resources. If
// sampled is set, some look at the machine, which is then sampled a million times in a leap.
func everyKind(seed uint64, sampled bool) rules.Set {
	r := rand.New(rand.NewPCG(seed, 1))
	threshold := func() float64 { return float64(1 + r.IntN(4)) }
	set := rules.Set{
		Authority: []authority.Rule{{Resource: "authority", Origins: []string{"a"}, AllowAnonymous: true}},
		System: []system.Rule{
			{Metric: system.QPS, Threshold: 40}, {Metric: system.RT, MaxRT: 20 * time.Second},
		},
		Hotspot: []hotspot.Rule{
			{Resource: "hotspot", Param: "user", Threshold: threshold(), MaxValues: 2},
			{Resource: "hotspot, refilled", Param: "user", Threshold: threshold(), Window: hotspot.Refill, MaxValues: 2, Burst: 1},
			{Resource: "hotspot queue", Param: "user", Threshold: threshold(), Behavior: hotspot.Throttle, MaxWait: time.Second},
			{Resource: "hotspot slow", Param: "user", Threshold: 1e-6, Behavior: hotspot.Throttle, MaxWait: time.Second},
			{Resource: "hotspot bucket", Param: "user", Threshold: threshold(), Behavior: hotspot.TokenBucket, MaxValues: 2, Burst: 2},
			{Resource: "hotspot bucket, slow", Param: "user", Threshold: 1e-6, Behavior: hotspot.TokenBucket, Burst: 1},
		},
		Flow: []flow.Rule{
			{Resource: "reject", Threshold: threshold(), Interval: time.Duration(1+r.IntN(3)) * time.Second},
			{Resource: "strict", Threshold: threshold(), Window: flow.Strict},
			{Resource: "warm", Threshold: 20, Behavior: flow.WarmUp},
			{Resource: "warm, slow", Threshold: 30, Interval: time.Minute, Behavior: flow.WarmUp},
			{Resource: "queue", Threshold: threshold(), Behavior: flow.Throttle, MaxWait: time.Second},
			{Resource: "queue, slow", Threshold: 1e-6, Behavior: flow.Throttle, MaxWait: time.Second},
			{Resource: "warm queue", Threshold: 4, Behavior: flow.WarmUpThrottle, MaxWait: time.Second},
			{Resource: "bucket", Threshold: threshold(), Behavior: flow.TokenBucket, Burst: 2},
			{Resource: "bucket, slow", Threshold: 1e-6, Behavior: flow.TokenBucket, Burst: 1},
			{Resource: "at once", Threshold: threshold(), Metric: flow.Concurrency},
			{Resource: "a tenth", Threshold: 1, Interval: 100 * ms, Buckets: 7 - 2},
		},
		Isolation: []isolation.Rule{{Resource: "isolation", Threshold: 1 + r.IntN(3)}},
		Adaptive:  []adaptive.Rule{{Resource: "adaptive", Start: 1 + r.IntN(3)}},
		Breaker: []breaker.Rule{
			{Resource: "breaker", Strategy: breaker.ErrorRatio, Threshold: 0.5, MinCalls: 1, Recovery: 300 * ms},
			{Resource: "slow", Strategy: breaker.SlowRatio, SlowRT: 200 * ms, Threshold: 0.5, MinCalls: 1},
		},
		Outlier: []outlier.Rule{{Resource: "outlier", Threshold: 0.5, MinCalls: 1, Recovery: 300 * ms}},
	}
	if sampled {
		set.System = append(set.System, system.Rule{Metric: system.CPU, Threshold: 0.5}, system.Rule{Metric: system.Load, Threshold: 2})
		set.Flow = append(set.Flow, flow.Rule{Resource: "memory", Threshold: 10, MemoryThreshold: 2, LowMemory: flow.Share(0.1), HighMemory: flow.Share(0.9)})
	}
	return set
}

// played is one engine and the results of all its calls.
type played struct {
	set   rules.Set
	clock *clocks.Manual
	guard *api.Guard
	open  []api.Admitted
	heard strings.Builder
	begin int64
}

func begun(t testing.TB, seed uint64, sampled bool, begin int64) *played {
	p := &played{clock: clocks.NewManual(time.Unix(0, begin)), begin: begin, set: everyKind(seed, sampled)}
	p.clock.SetSleep(clocks.SleepAdvance)
	config := api.Config{
		Clock: p.clock, Logger: slog.New(slog.DiscardHandler), Host: overloaded{},
		Caps: node.Caps{Resources: 8, Contexts: 2, Calls: 30, Origins: 8},
	}
	if sampled {
		config.LeakAfter = time.Minute
	}
	var err error
	p.guard, err = api.New(config)
	require.NoError(t, err)
	require.NoError(t, p.guard.LoadRules(p.set))
	return p
}

// call enters, and records the result.
func (p *played) call(t testing.TB, r *rand.Rand) {
	var names []string
	for _, f := range p.set.Flow {
		names = append(names, f.Resource)
	}
	for _, h := range p.set.Hotspot {
		names = append(names, h.Resource)
	}
	names = append(names, "authority", "isolation", "adaptive", "breaker", "slow", "outlier", fmt.Sprint("other ", r.IntN(20)))
	opts := []engine.Option{api.Param("user", []string{"ann", "bob", "cid"}[r.IntN(3)]), api.Endpoint([]string{"one", "two", "three"}[r.IntN(3)])}
	if r.IntN(3) == 0 {
		opts = append(opts, api.Prioritized())
	}
	if r.IntN(2) == 0 {
		opts = append(opts, api.Inbound())
	}
	if r.IntN(4) == 0 {
		opts = append(opts, api.Units(1+r.IntN(3)))
	}
	name := names[r.IntN(len(names))]
	ctx := api.WithOrigin(t.Context(), []string{"", "a", "b"}[r.IntN(3)])
	if r.IntN(2) == 0 {
		ctx = api.WithContext(ctx, "batch")
	}
	e, err := p.guard.Entry(ctx, name, opts...)
	fmt.Fprintf(&p.heard, "%v %s: ", time.Duration(p.clock.Now()-p.begin), name)
	if err != nil {
		block, ok := errors.AsType[*core.BlockError](err)
		require.True(t, ok, err)
		wait, known := block.RetryAfter()
		assert.GreaterOrEqual(t, wait, time.Duration(0))
		fmt.Fprintf(&p.heard, "%v; again after %v, %t\n", err, wait, known)
		return
	}
	p.open = append(p.open, e)
	p.heard.WriteString("passes\n")
}

func (p *played) exit(r *rand.Rand) {
	if len(p.open) == 0 {
		return
	}
	i := r.IntN(len(p.open))
	if r.IntN(2) == 0 {
		p.open[i].Fail(errors.New("down"))
	}
	p.open[i].Exit()
	p.open = append(p.open[:i], p.open[i+1:]...)
}

func (p *played) tree(t testing.TB) {
	require.NoError(t, p.guard.Tree().WriteText(&p.heard))
	_, err := p.guard.Tree().MarshalJSON()
	require.NoError(t, err)
}

// close ends everything and returns the results.
func (p *played) close(t testing.TB) string {
	for _, e := range p.open {
		e.Exit()
	}
	p.tree(t)
	require.NoError(t, p.guard.Close())
	assert.Zero(t, p.guard.Engine().Failures(), "slots panicked")
	assert.Empty(t, books.Unsettled(p.guard.Engine()))
	return p.heard.String()
}

var gaps = []time.Duration{0, 0, 1, ms, 10 * ms, 99 * ms, 300 * ms, time.Second, 3 * time.Second, 61 * time.Second}

// story plays calls of every kind, starting at begin and with a leap in the middle, and returns the
// results and its duration without the leap.
func story(t testing.TB, seed uint64, sampled bool, begin int64, leap time.Duration) (heard string, took time.Duration) {
	r := rand.New(rand.NewPCG(seed, 0))
	p := begun(t, seed, sampled, begin)
	const steps = 400
	for i := range steps {
		switch r.IntN(5) {
		case 0:
			p.exit(r)
		case 1, 2:
			p.clock.Advance(gaps[r.IntN(len(gaps))])
		default:
			p.call(t, r)
		}
		if i == steps/2 {
			for len(p.open) > 0 { // nothing takes as long as the leap
				p.exit(r)
			}
			p.clock.Advance(leap)
			p.begin += int64(leap)
		}
	}
	p.tree(t)
	took = time.Duration(p.clock.Now() - p.begin)
	return p.close(t), took
}

// dated matches text that depends on the date: the mean throughput over a span that includes the
// leap, how long a breaker has been open, and the order of values, whose heat is halved at fixed
// dates.
var dated = regexp.MustCompile(`; hottest .*|; [-0-9.e]+/s\n| for [0-9]+m?s\b`)

// place is the start of a story, and the length of its leap.
type place struct {
	name  string
	begin int64
	leap  time.Duration
}

// The rules' verdicts depend neither on the position in a clock's range nor on the length of a
// leap. known bug 124
func TestStoriesAreTheSameAtTheEnds(t *testing.T) {
	rnd := random(t)
	const year2026, rest = 1_767_225_600_000_000_000, 50 * 24 * time.Hour // after that nothing is remembered
	for i := range figure.Size(2, 2, 200, 2000) {
		seed, sampled := rnd.Uint64(), i == 0 && !race.Enabled // one goroutine has no races
		want, took := story(t, seed, sampled, year2026, rest)
		took = took.Truncate(time.Minute) + time.Minute // later events are left out
		whole := func(at int64) int64 { return at - at%int64(time.Minute) }
		most := time.Duration(whole(lastTime/2) - whole(firstTime/2)) // half of the range
		places := []place{
			{"at the first", firstTime, rest},
			{"around 1970", -int64(took.Truncate(2*time.Minute)) / 2, rest},
			{"before 1970", -int64(3 * rest), rest},
			{"to the last", whole(lastTime) - int64(took+rest), rest},
			{"and far leaps", firstTime, most},
		}
		if sampled { // each takes a second, so an ordinary run plays one, a different one each time
			rnd.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
			places = places[:figure.Size(1, 1, len(places), len(places))]
		}
		for _, at := range places {
			got, _ := story(t, seed, sampled, at.begin, at.leap)
			if !assert.Equal(t, dated.ReplaceAllString(want, ""), dated.ReplaceAllString(got, ""), "%s, story %d", at.name, seed) {
				return
			}
		}
	}
}

// At any time, and after a leap of any length, calls return, the tree is shown and nothing panics;
// and a clock that stands at its end admits no more than a limit.
func TestEveryLeapWithinTheRange(t *testing.T) {
	rnd := random(t)
	places := []int64{math.MinInt64, firstTime, firstTime + 1, -1, 0, 1, lastTime - int64(time.Second), lastTime - 1, lastTime, math.MaxInt64}
	for i, from := range places {
		for _, to := range places[i:] {
			r := rand.New(rand.NewPCG(rnd.Uint64(), 0))
			p := begun(t, rnd.Uint64(), from == firstTime && to == lastTime && !race.Enabled, from)
			several := func() {
				for range 30 {
					p.call(t, r)
				}
				p.exit(r)
				p.tree(t)
			}
			several()
			p.clock.AdvanceTo(to)
			several()
			p.clock.Advance(math.MaxInt64)
			several()
			several()
			require.LessOrEqual(t, p.clock.Now(), lastTime)
			require.GreaterOrEqual(t, p.clock.Now(), firstTime)
			passed := 0
			for range 10 {
				if e, err := p.guard.Entry(t.Context(), "reject"); err == nil {
					passed++
					e.Exit()
				}
			}
			require.LessOrEqual(t, passed, 4, "from %d to %d", from, to)
			p.close(t)
		}
	}
}

// A call that waits beyond the end of a clock runs when the clock is moved there.
func TestWhoWaitsBeyondTheEnd(t *testing.T) {
	for _, before := range []time.Duration{0, 1, 600 * ms} {
		clock := clocks.NewManual(time.Unix(0, lastTime).Add(-before))
		g, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		books.Keep(t, g.Engine())
		require.NoError(t, g.LoadRules(rules.Set{Flow: []flow.Rule{{Resource: "queue", Threshold: 1, Behavior: flow.Throttle, MaxWait: 5 * time.Second}}}))
		done := make(chan error, 3)
		for range 3 {
			go func() {
				e, err := g.Entry(context.Background(), "queue")
				e.Exit()
				done <- err
			}()
		}
		require.NoError(t, <-done)
		if before > 0 {
			clock.AwaitParked(2)
		}
		clock.Advance(time.Hour)
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		assert.Equal(t, lastTime, clock.Now())
		require.NoError(t, g.Close())
	}
}

// A custom clock that shows an invalid time counts as standing at the nearer end.
func TestOwnClockBeyondTheEnds(t *testing.T) {
	rnd := random(t)
	shows := []int64{math.MinInt64, math.MinInt64 + 1, firstTime - 1, firstTime, -1, 0, lastTime, lastTime + 1, math.MaxInt64 - 1, math.MaxInt64}
	rounds := figure.Size(20, 40, 2000, 20_000)
	if race.Enabled {
		rounds = 10 // one goroutine has no races
	}
	for range rounds {
		clock := newSource()
		clock.begin = shows[rnd.IntN(len(shows))]
		g, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler), Host: overloaded{}})
		require.NoError(t, err)
		require.NoError(t, g.Close()) // no timers
		latest := g.Engine().Now()
		p := &played{clock: clocks.NewManual(time.Unix(0, 0)), guard: g, set: everyKind(rnd.Uint64(), true)}
		require.NoError(t, g.LoadRules(p.set))
		for range 8 {
			clock.begin = shows[rnd.IntN(len(shows))]
			now := g.Engine().Now()
			require.LessOrEqual(t, now, lastTime)
			require.GreaterOrEqual(t, now, max(firstTime, latest-int64(tolerance)))
			latest = max(latest, now)
			for range 10 {
				p.call(t, rnd)
			}
			p.exit(rnd)
			p.tree(t)
		}
		p.close(t)
	}
}
