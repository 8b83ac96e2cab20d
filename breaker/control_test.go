package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/node"
)

// A breaker forced by hand refuses or admits every call, until released.
func TestForce(t *testing.T) {
	g := newGuard(t, quick("b"))
	force := func(f breaker.Force) {
		t.Helper()
		require.NoError(t, g.table().Force("b", "orders", f))
	}
	force(breaker.ForceOpen)
	force(breaker.ForceOpen) // forcing again changes nothing
	g.at(48 * time.Hour)
	assert.Equal(t, "b x3", g.calls("ggg"))
	_, err := g.enter("orders")
	b, _ := errors.AsType[*core.BlockError](err)
	assertNobodyKnows(t, b)
	force(breaker.NotForced)
	assert.Equal(t, "pass", g.calls("f"), "the first call is a probe")
	assert.Equal(t, "b", g.calls("g"))
	assert.Equal(t, "closed-forcedOpen forcedOpen-open open-halfOpen halfOpen-open", g.changes())

	force(breaker.ForceClosed)
	assert.Equal(t, "pass x9", g.calls("fffffffff"))
	assert.Zero(t, g.status("b", "orders").Calls)
	late := g.open("orders")
	force(breaker.NotForced)
	late.Fail(errOwn)
	late.Exit()
	assert.Equal(t, "pass x2, b", g.calls("gfg"), "as new")
	assert.Equal(t, "open-forcedClosed forcedClosed-closed closed-open", g.changes())

	assert.ErrorContains(t, g.table().Force("c", "", breaker.ForceOpen), `rule "c" has no breaker on ""`)
	assert.ErrorContains(t, g.table().Force("b", "carts", breaker.ForceOpen), `no breaker on "carts"`)
	assert.ErrorContains(t, g.table().Force("b", "", 7), "force(7) is unknown")
}

// A breaker is forced while a probe is out: the probe's result belongs to an older state.
func TestForcedWhileHalfOpen(t *testing.T) {
	g := newGuard(t, quick("b"))
	g.calls("f")
	g.at(time.Second)
	probe := g.open("orders")
	require.NoError(t, g.table().Force("b", "", breaker.ForceOpen))
	probe.Exit()
	assert.Equal(t, breaker.ForcedOpen, g.state("b"))
}

// Listeners are called without locks: they may do anything that callers and operators can, and may
// be added and removed at any time.
// known bug 60, 75
func TestListenersMayDoAnything(t *testing.T) {
	rule := quick("b")
	g := newGuard(t, rule)
	depth, removed := 0, 0
	var remove func()
	remove = g.table().Listen(func(c breaker.Change) {
		if depth++; depth > 3 {
			return
		}
		defer func() { depth-- }()
		g.call("orders", 0, errOwn)
		g.call("carts", 0, errOwn)
		g.load(rule, breaker.Rule{Resource: "carts", Threshold: float64(c.Number%10) / 10})
		assert.NoError(t, g.table().Force("b", "orders", breaker.ForceOpen))
		assert.NoError(t, g.table().Force("b", "orders", breaker.NotForced))
		g.table().Listen(func(breaker.Change) {})()
		g.table().Status()
		remove()
		removed++
	})
	g.calls("f")
	g.at(time.Second)
	g.calls("g")
	assert.Positive(t, removed)
	assert.Zero(t, g.Failures())
}

// A panicking listener is counted; the verdict and the other listeners are unaffected.
func TestPanickingListener(t *testing.T) {
	g := newPanickyGuard(t, engine.Config{}, quick("b"))
	g.table().Listen(func(breaker.Change) { panic("x") })
	heard := 0
	g.table().Listen(func(breaker.Change) { heard++ })
	g.run([]step{
		{0, "fg", "pass, b", "closed-open"},
		{time.Second, "fg", "pass, b", "open-halfOpen halfOpen-open"},
	})
	assert.Equal(t, 3, heard)
	assert.Equal(t, int64(3), g.Failures())
}

// A change reports its rule, resource, states, value and time.
func TestChange(t *testing.T) {
	rule := quick("b")
	rule.MinCalls, rule.Threshold = 4, 0.5
	g := newGuard(t, rule)
	g.at(7 * ms)
	g.calls("gfgf")
	require.Len(t, g.seen, 1)
	c := g.seen[0]
	assert.Equal(t, []any{"b", "orders", breaker.Closed, breaker.Open, 0.5, start.Add(7 * ms)},
		[]any{c.Rule, c.Resource, c.From, c.To, c.Value, c.At})
}

// Only some errors count as failures.
func TestFailures(t *testing.T) {
	notFound := errors.New("not found")
	for _, tt := range []struct {
		err     error
		failure func(error) bool
		counts  bool
	}{
		{errOwn, nil, true},
		{engine.Ignore(errOwn), nil, false},
		{fmt.Errorf("more: %w", engine.Ignore(errOwn)), nil, false},
		{context.Canceled, nil, false},
		{fmt.Errorf("more: %w", context.Canceled), nil, false},
		{context.DeadlineExceeded, nil, true},
		{&core.BlockError{Kind: core.KindFlow, Resource: "other", Rule: "rule"}, nil, false},
		{notFound, func(err error) bool { return !errors.Is(err, notFound) }, false},
		{errOwn, func(err error) bool { return !errors.Is(err, notFound) }, true},
		{context.Canceled, func(error) bool { return true }, true},
		{engine.Ignore(errOwn), func(error) bool { return true }, false},
		{&core.BlockError{Kind: core.KindFlow, Resource: "other", Rule: "rule"}, func(error) bool { return true }, false},
	} {
		g := newGuardWith(t, engine.Config{Failure: tt.failure}, breaker.Rule{ID: "b", Resource: "orders", Threshold: 0.5})
		g.call("orders", 0, tt.err)
		assert.Equal(t, tt.counts, g.status("b", "orders").Bad == 1, "%v", tt.err)
	}
	g := newPanickyGuard(t, engine.Config{Failure: func(error) bool { panic("x") }}, quick("b"))
	g.call("orders", 0, errOwn)
	assert.Equal(t, breaker.Open, g.state("b"))
	assert.Equal(t, int64(1), g.Failures())
	g = newGuardWith(t, engine.Config{Failure: func(error) bool { return false }}, breaker.Rule{ID: "b", Resource: "orders", Threshold: 0.5})
	assert.Panics(t, func() {
		e := g.open("orders")
		defer e.ExitFailed()
		panic("the guarded code")
	})
	assert.Equal(t, int64(1), g.status("b", "orders").Bad, "a panic is a failure, whoever thinks what of errors")
}

// Every resource without a breaker rule gets the default breaker, each with its own state.
func TestDefaultBreaker(t *testing.T) {
	all := quick("all")
	all.Resource, all.Exclude = "*", []string{"health"}
	shadow := quick("shadowBlocked")
	shadow.Resource, shadow.Mode = "shadowBlocked", spec.Shadow
	off := quick("off")
	off.Resource, off.Mode = "off", spec.Off
	own := breaker.Rule{ID: "own", Resource: "own.*", Match: spec.MatchRegex, Threshold: 1, MinCalls: 100}
	g := newGuard(t, all, shadow, off, own)
	for resource, want := range map[string]string{
		"a": "all", "b": "all", "shadowBlocked": "all", "off": "all", "health": "pass", "own1": "pass", "*": "all",
	} {
		assert.Equal(t, "pass", g.call(resource, 0, errOwn), resource)
		assert.Equal(t, want, g.call(resource, 0, nil), resource)
	}
	assert.Equal(t, "pass", g.call("c", 0, nil), "others are closed")

	g.load(all) // a name excepted because of its own rule is no longer excepted
	assert.Equal(t, "all", g.call("a", 0, nil), "and the others are as they were")
	assert.Equal(t, "pass", g.call("own1", 0, errOwn))
	assert.Equal(t, "all", g.call("own1", 0, nil))
	g.load(all, own)
	assert.Equal(t, "pass", g.call("own1", 0, nil))
	all.Exclude = []string{"a"}
	g.load(all, own)
	assert.Equal(t, "pass", g.call("a", 0, nil))
	assert.Equal(t, "pass", g.call("health", 0, errOwn))
	assert.Equal(t, "all", g.call("health", 0, nil))
}

// Names beyond the cap on resources share one breaker if the rule applies to all resources.
// known bug 107
func TestDefaultBreakerBeyondTheCap(t *testing.T) {
	all := quick("all")
	all.Resource = "*"
	g := newGuardWith(t, engine.Config{Caps: node.Caps{Resources: 2}}, all)
	a, b := g.open("a"), g.open("b")
	assert.Equal(t, "pass", g.call("c", 0, errOwn))
	assert.Equal(t, "all", g.call("d", 0, nil))
	assert.Equal(t, node.OverflowName, g.table().Status()[0].Resource)
	a.Exit()
	b.Exit()
}

// A resource can be evicted if its breaker remembers nothing, or would admit the next call. One
// that is open or forced stays, even if callers invent names.
func TestIdle(t *testing.T) {
	all := quick("all")
	all.Resource, all.Recovery = "*", 10*time.Minute
	g := newGuard(t, all)
	g.call("a", 0, errOwn)
	g.call("b", 0, nil)
	g.call("forced", 0, nil)
	require.NoError(t, g.table().Force("all", "forced", breaker.ForceOpen))
	g.at(5 * time.Minute)
	g.Tree().Evict(g.clock.Now())
	assert.Equal(t, "all", g.call("a", 0, nil))
	_, there := g.FindResource("b")
	assert.False(t, there)
	g.at(12 * time.Minute)
	g.Tree().Evict(g.clock.Now())
	_, there = g.FindResource("a")
	assert.False(t, there)
	assert.Equal(t, "all", g.call("forced", 0, nil))
}

// A clock that is set back makes no call slow, and opens nothing early or late.
// known bug 25
func TestClockSteps(t *testing.T) {
	for _, d := range []time.Duration{-1000 * time.Hour, -time.Hour, -time.Second, -5 * ms, -1, 1, 5 * ms} {
		clock := &wallClock{now: start.UnixNano()}
		g := newGuardWith(t, engine.Config{Clock: clock, Chain: trial.Chain()},
			breaker.Rule{ID: "b", Resource: "orders", Strategy: breaker.SlowRatio, SlowRT: 100 * ms, Threshold: 0, MinCalls: 1, Recovery: time.Second})
		e := g.open("orders")
		clock.now += int64(d) // while the call runs
		e.Exit()
		assert.Equal(t, breaker.Closed, g.state("b"), "%v: it took no time", d)
		e = g.open("orders")
		clock.now += int64(101 * ms)
		e.Exit()
		if d == -5*ms { // within the skew between processors: time stood still for as long
			clock.now += int64(5 * ms)
			e = g.open("orders")
			clock.now += int64(101 * ms)
			e.Exit()
		}
		assert.Equal(t, breaker.Open, g.state("b"), "%v", d)
		clock.now += int64(d)
		_, err := g.enter("orders")
		assert.Error(t, err, "%v", d)
		for range 102 { // in one jump, a second could look like the correction of a step
			clock.now += int64(10 * ms)
			g.Now()
		}
		e, err = g.enter("orders")
		assert.NoError(t, err, "%v: it recovers in time", d)
		e.Exit()
	}
}

type wallClock struct{ now int64 }

func (c *wallClock) Now() int64                                 { return c.now }
func (c *wallClock) Sleep(context.Context, time.Duration) error { return nil }

// A shadow breaker does everything except refuse.
func TestShadow(t *testing.T) {
	rule := quick("b")
	rule.Mode = spec.Shadow
	g := newGuard(t, rule)
	shadowBlocked := func() int64 { return g.Rules().RuleStats()[0].ShadowBlocked }
	g.run([]step{
		{0, "fffgg", "pass x5", "closed-open"},
		{999 * ms, "g", "pass", ""},
		{time.Second, "g", "pass", "open-halfOpen halfOpen-closed"},
	})
	assert.Equal(t, int64(5), shadowBlocked())
	g.calls("f")
	rule.Mode = spec.Enforce
	g.load(rule)
	assert.Equal(t, "b", g.calls("g"), "what it saw is what happened")
	assert.Equal(t, int64(1), g.Rules().RuleStats()[0].Refused)
	rule.Mode = spec.Off
	g.load(rule)
	assert.Equal(t, "pass", g.calls("f"))
	assert.Empty(t, g.table().Status())
	rule.Mode = spec.Enforce
	g.load(rule)
	assert.Equal(t, "b", g.calls("g"), "and it goes on where it was")
}

// Loading the same rules changes nothing; a changed rule continues from its state.
// known bug 72
func TestReload(t *testing.T) {
	rule := quick("b")
	g := newGuard(t, rule)
	g.calls("f")
	for range 10 {
		g.load(rule)
	}
	g.at(999 * ms)
	assert.Equal(t, "b", g.calls("g"))
	rule.Recovery = 2 * time.Second
	g.load(rule)
	g.at(1999 * ms)
	assert.Equal(t, "b", g.calls("g"), "open for as long as the new rule says")
	g.at(2 * time.Second)
	probe := g.open("orders")
	rule.Probes = 2
	g.load(rule)
	second := g.open("orders")
	assert.Equal(t, "b", g.calls("g"))
	probe.Exit() // admitted under another revision
	second.Exit()
	assert.Equal(t, breaker.Closed, g.state("b"))
	assert.Equal(t, "closed-open open-halfOpen halfOpen-closed", g.changes())

	rule = breaker.Rule{ID: "b", Resource: "orders", Strategy: breaker.ErrorCount, Threshold: 3, MinCalls: 1}
	g.load(rule)
	g.calls("ff")
	rule.Interval, rule.Buckets = time.Minute, 6
	g.load(rule)
	assert.Equal(t, int64(2), g.status("b", "orders").Bad, "what was counted is still known")
	g.at(30 * time.Second)
	assert.Equal(t, "pass, b", g.calls("ff"))

	// A bad update leaves no trace.
	bad := rule
	bad.Recovery = time.Millisecond
	err := g.Update(func(b *engine.SnapshotBuilder) error {
		require.NoError(t, breaker.Compile(b, []breaker.Rule{bad}))
		return errors.New("another family's")
	})
	require.Error(t, err)
	g.at(31 * time.Second)
	assert.Equal(t, "b", g.calls("g"))
	g.load()
	assert.Equal(t, "pass", g.calls("g"))
}

// A resource is evicted and returns while a call is in flight; its rule still applies.
func TestResourceComesBack(t *testing.T) {
	g := newGuard(t, breaker.Rule{ID: "b", Resource: "o.*", Match: spec.MatchRegex, Threshold: 1, MinCalls: 2})
	e := g.open("orders")
	g.at(10 * time.Minute)
	g.Tree().Evict(g.clock.Now())
	e.Fail(errOwn)
	e.Exit()
	assert.Equal(t, int64(1), g.status("b", "orders").Bad)
	assert.Empty(t, books.Unsettled(g.Engine))
}
