package api_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/system"
)

// longLivedGuard returns a guard with a clock that the test moves.
func longLivedGuard(t *testing.T, set api.RuleSet) (*api.Guard, *api.ManualClock) {
	clock := api.NewManualClock(time.Unix(1_700_000_000, 0))
	g, err := api.New(api.Config{Clock: clock})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	books.Keep(t, g.Engine())
	require.NoError(t, g.LoadRules(set))
	return g, clock
}

// timedCall makes one call that takes so long, and returns its refusal, if any.
func timedCall(t *testing.T, g *api.Guard, clock *api.ManualClock, took time.Duration, err error, opts ...api.Option) error {
	e, refused := g.Entry(t.Context(), "stream", append(opts, api.Inbound())...)
	if refused != nil {
		return refused
	}
	clock.Advance(took)
	e.Fail(err)
	e.Exit()
	return nil
}

// A long-lived call is counted when it enters, is in flight until it exits, and has no response
// time. Without such calls the minute of a node needs no memory for them.
func TestLongLivedCallsHaveNoResponseTime(t *testing.T) {
	g, clock := longLivedGuard(t, api.RuleSet{})
	e, err := g.Entry(t.Context(), "stream", api.LongLived(), api.Units(3), api.Inbound())
	require.NoError(t, err)
	n, ok := g.Tree().Resource("stream")
	require.True(t, ok)
	assert.EqualValues(t, 1, n.InFlight)
	assert.EqualValues(t, 3, n.Second.Pass)

	clock.Advance(time.Hour)
	require.NoError(t, timedCall(t, g, clock, 10*time.Millisecond, nil))
	e.Fail(errors.New("reset"))
	e.Exit()
	n, _ = g.Tree().Resource("stream")
	for _, f := range []*struct {
		Name string
		Got  any
		Want any
	}{
		{"in flight", n.InFlight, int64(0)},
		{"exited", n.Lifetime.Exited, int64(2)},
		{"completed", n.Lifetime.Complete, int64(4)},
		{"failed", n.Lifetime.Exception, int64(3)},
		{"long-lived", n.Lifetime.LongLived, int64(1)},
		{"long-lived in the minute", n.Minute.LongLived, int64(1)},
		{"mean", n.Second.AvgRT(), 10 * time.Millisecond},
		{"mean of the minute", n.Minute.AvgRT(), 10 * time.Millisecond},
	} {
		assert.Equal(t, f.Want, f.Got, f.Name)
	}
	least, ok := n.Second.MinRT()
	assert.True(t, ok)
	assert.Equal(t, 10*time.Millisecond, least)
}

// If no other call completed there is no response time at all.
func TestOnlyLongLivedCallsHaveNoMean(t *testing.T) {
	g, clock := longLivedGuard(t, api.RuleSet{})
	require.NoError(t, timedCall(t, g, clock, time.Hour, nil, api.LongLived()))
	n, _ := g.Tree().Resource("stream")
	assert.Zero(t, n.Second.AvgRT())
	_, ok := n.Second.MinRT()
	assert.False(t, ok)
}

// Ten streams of an hour are ten calls to limits, and none to rules on response times.
func TestLongLivedCallsAndRules(t *testing.T) {
	slow := breaker.Rule{Resource: "stream", Strategy: breaker.SlowRatio, SlowRT: time.Second, Threshold: 0.1, MinCalls: 5,
		Interval: time.Minute, Recovery: time.Minute}
	for _, c := range []struct {
		name    string
		set     api.RuleSet
		err     error // that the calls end with
		refused bool  // whether the rules refuse the eleventh
		plain   bool  // the same of calls that are not long-lived
	}{
		{"slow calls", api.RuleSet{Breaker: []breaker.Rule{slow}}, nil, false, true},
		{"slow calls that fail", api.RuleSet{Breaker: []breaker.Rule{slow}}, errors.New("reset"), false, true},
		{"errors", api.RuleSet{Breaker: []breaker.Rule{{Resource: "stream", Strategy: breaker.ErrorRatio, Threshold: 0.1,
			MinCalls: 5, Interval: 24 * time.Hour, Recovery: time.Hour}}}, errors.New("reset"), true, true},
		{"system rt", api.RuleSet{System: []system.Rule{{Metric: system.RT, MaxRT: time.Second, Interval: time.Hour}}}, nil, false, true},
		{"flow", api.RuleSet{Flow: []flow.Rule{{Resource: "stream", Threshold: 10, Interval: 24 * time.Hour}}}, nil, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, opts := range [][]api.Option{{api.LongLived()}, nil} {
				g, clock := longLivedGuard(t, c.set)
				var refused error
				for range 11 {
					refused = timedCall(t, g, clock, 2*time.Second, c.err, opts...)
				}
				want := c.refused
				if opts == nil {
					want = c.plain
				}
				assert.Equal(t, want, refused != nil, "%v: %v", opts, refused)
			}
		})
	}
}

// A system rule that is loaded later starts with the response times that nodes recorded.
func TestLongLivedCallsBeforeASystemRule(t *testing.T) {
	g, clock := longLivedGuard(t, api.RuleSet{})
	for range 10 {
		require.NoError(t, timedCall(t, g, clock, 2*time.Second, nil, api.LongLived()))
	}
	require.NoError(t, g.LoadRules(api.RuleSet{System: []system.Rule{{Metric: system.RT, MaxRT: time.Millisecond, Interval: time.Minute}}}))
	require.NoError(t, timedCall(t, g, clock, 10*time.Millisecond, nil))
	assert.Error(t, timedCall(t, g, clock, 0, nil), "the mean is 10 ms, even if many streams ended as well")
}

// A permit is held until the stream ends.
func TestLongLivedCallsHoldTheirPermit(t *testing.T) {
	g, clock := longLivedGuard(t, api.RuleSet{Isolation: []isolation.Rule{{Resource: "stream", Threshold: 1}}})
	e, err := g.Entry(t.Context(), "stream", api.LongLived())
	require.NoError(t, err)
	clock.Advance(time.Hour)
	require.ErrorIs(t, timedCall(t, g, clock, 0, nil), api.ErrBlocked)
	e.Exit()
	require.NoError(t, timedCall(t, g, clock, 0, nil))
}

// A probe that is a stream keeps its slot until it ends, and then counts.
func TestLongLivedProbe(t *testing.T) {
	g, clock := longLivedGuard(t, api.RuleSet{Breaker: []breaker.Rule{{Resource: "stream", Strategy: breaker.SlowRatio,
		SlowRT: time.Second, Threshold: 0.5, MinCalls: 1, Interval: time.Minute, Recovery: time.Second, ProbeTimeout: time.Hour}}})
	require.NoError(t, timedCall(t, g, clock, 2*time.Second, nil))
	require.Equal(t, breaker.Open, g.Breakers()[0].State)
	clock.Advance(time.Second)
	e, err := g.Entry(t.Context(), "stream", api.LongLived())
	require.NoError(t, err)
	assert.Error(t, timedCall(t, g, clock, 0, nil), "one probe at a time")
	clock.Advance(time.Minute)
	e.Exit()
	assert.Equal(t, breaker.Closed, g.Breakers()[0].State)
}

// An adaptive limit learns the same with streams as without them.
func TestAdaptiveLimitsDoNotLearnFromLongLivedCalls(t *testing.T) {
	var learned []string
	for _, beside := range [][]api.Option{nil, {api.LongLived()}, {api.Units(1)}} {
		g, clock := longLivedGuard(t, api.RuleSet{Adaptive: []adaptive.Rule{{Resource: "stream", Floor: 1, Ceiling: 100, Start: 20,
			Window: 100 * time.Millisecond}}})
		for range 300 {
			require.NoError(t, timedCall(t, g, clock, 10*time.Millisecond, nil))
			if beside != nil {
				require.NoError(t, timedCall(t, g, clock, 0, nil, beside...))
			}
		}
		text, err := json.Marshal(g.Tree().Rules)
		require.NoError(t, err)
		learned = append(learned, string(text))
	}
	assert.Equal(t, learned[0], learned[1])
	assert.NotEqual(t, learned[0], learned[2], "of other calls it learns")
}
