package hotspot_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/system"
)

func TestRejectLimitsEachValue(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 3})
	assert.Equal(t, "pass x3, block", g.outcomes(4, user("ann")))
	assert.Equal(t, "pass x3, block", g.outcomes(4, user("bob")))
	g.at(1100*ms - 1)
	assert.Equal(t, "block", g.outcome(user("ann")), "units expire after the interval and a tenth")
	g.at(1100 * ms)
	assert.Equal(t, "pass x3, block", g.outcomes(4, user("ann")))
	assert.Equal(t, "pass x5", g.outcomes(5), "a call without the attachment is not limited")
	assert.Equal(t, "pass x5", g.outcomes(5, user(nil)))
}

func TestRefill(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 2, Burst: 3, Window: hotspot.Refill, Interval: 100 * ms})
	assert.Equal(t, "pass x5, block", g.outcomes(6, user(1)))
	g.at(101 * ms)
	assert.Equal(t, "pass x2, block", g.outcomes(3, user(1)), "earned in one interval")
	g.at(302 * ms)
	assert.Equal(t, "pass x4, block", g.outcomes(5, user(1)), "in two")
	g.at(time.Hour)
	assert.Equal(t, "pass x5, block", g.outcomes(6, user(1)), "never more than a full bucket")
}

// A call of more units than the limit is refused in every state: unseen, idle, used.
// known bug 91
func TestMoreThanTheLimitNeverPasses(t *testing.T) {
	for _, rule := range []hotspot.Rule{
		{Param: "user", Threshold: 3},
		{Param: "user", Threshold: 3, Metric: hotspot.Concurrency},
	} {
		g := newGuard(t, rule)
		assert.Equal(t, "block", g.outcome(user("ann"), engine.Units(4)), "unseen")
		assert.Equal(t, "pass", g.outcome(user("ann")))
		assert.Equal(t, "block", g.outcome(user("ann"), engine.Units(4)), "used")
		g.at(time.Hour)
		assert.Equal(t, "block", g.outcome(user("ann"), engine.Units(4)), "idle")
		assert.Equal(t, "pass", g.outcome(user("ann"), engine.Units(3)))
	}
}

func TestThresholdZeroBlocks(t *testing.T) {
	for _, rule := range []hotspot.Rule{
		{}, {Burst: 5, Window: hotspot.Refill}, {Threshold: 0.9}, {Metric: hotspot.Concurrency}, {Behavior: hotspot.Throttle},
	} {
		rule.Index = hotspot.At(0)
		g := newGuard(t, rule)
		assert.Equal(t, "block x2", g.outcomes(2, engine.Args("x")), "%+v", rule)
		assert.Equal(t, "pass", g.outcome(), "%+v", rule)
	}
}

func TestIndexCountsFromBothEnds(t *testing.T) {
	g := newGuard(t,
		hotspot.Rule{ID: "second", Index: hotspot.At(1), Threshold: 1},
		hotspot.Rule{ID: "last", Index: hotspot.At(-1), Threshold: 2, Interval: time.Minute},
	)
	assert.Equal(t, "pass x2", g.outcomes(2), "no arguments at all")
	assert.Equal(t, "pass x2, block", g.outcomes(3, engine.Args("a")), "the last is also the first, and no second")
	assert.Equal(t, "block", g.outcome(engine.Args("b", "a")), "the last is a")
	assert.Equal(t, "pass, block", g.outcomes(2, engine.Args("b", "c")), "the second is c")
	assert.Equal(t, "block", g.outcome(engine.Args("b", "c", "d")), "of each call as it comes")
	assert.Equal(t, "pass", g.outcome(engine.Args("b", "e", "d")))
}

func TestExceptions(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 1, Exceptions: []hotspot.Exception{
		{Value: argument.Of("vip"), Threshold: 3},
		{Value: argument.Of("banned"), Threshold: 0},
		{Value: argument.Of(42), Threshold: 2},
		{Value: argument.Of(true), Threshold: 2},
		{Value: argument.Of(1.5), Threshold: 2},
	}})
	assert.Equal(t, "pass, block", g.outcomes(2, user("ann")))
	assert.Equal(t, "pass x3, block", g.outcomes(4, user("vip")))
	assert.Equal(t, "block", g.outcomes(1, user("banned")))
	assert.Equal(t, "pass x2, block", g.outcomes(3, user(uint8(42))))
	assert.Equal(t, "pass, block", g.outcomes(2, user("42")), "text is not a number")
	assert.Equal(t, "pass x2, block", g.outcomes(3, user(true)))
	assert.Equal(t, "pass x2, block", g.outcomes(3, user(float32(1.5))))
}

func TestListsTakeEveryElement(t *testing.T) {
	g := newGuard(t, hotspot.Rule{ID: "l", Param: "user", Threshold: 2})
	assert.Equal(t, "pass", g.outcome(user([]string{"a", "b"})))
	assert.Equal(t, "pass", g.outcome(user([]any{"b"})))
	assert.Equal(t, "block", g.outcome(user([]string{"a", "b"})), "b has none left")
	assert.Equal(t, "pass, block", g.outcomes(2, user("a")), "and a kept what it had")
	assert.Equal(t, "block", g.outcome(user([]string{"c", "c", "c"})), "one that is there three times takes three")
	assert.Equal(t, "pass, block", g.outcomes(2, user([]string{"c", "c"})))
	assert.Equal(t, "pass", g.outcome(user([]string{})))
	assert.Equal(t, "pass", g.outcome(user([]any{nil})))
	var many []int
	for i := range 100 {
		many = append(many, i%50)
	}
	assert.Equal(t, "pass, block", g.outcomes(2, user(many)))
	assert.Equal(t, "block", g.outcome(user(7)))
	assert.Equal(t, "pass x2, block", g.outcomes(3, engine.Param("user", "x"), engine.Param("user", "y")), "several attachments are like a list")
}

// Units taken under one rule are returned when another refuses.
func TestSeveralRulesGiveBack(t *testing.T) {
	g := newGuard(t,
		hotspot.Rule{ID: "user", Param: "user", Threshold: 3, Interval: time.Minute},
		hotspot.Rule{ID: "item", Param: "item", Threshold: 1, Interval: time.Minute},
	)
	item := func(v any) engine.Option { return engine.Param("item", v) }
	assert.Equal(t, "pass, block x9", g.outcomes(10, user("ann"), item(1)))
	assert.Equal(t, "pass", g.outcome(user("ann"), item(2)))
	assert.Equal(t, "pass", g.outcome(user("ann"), item(3)))
	_, err := g.enter(user("ann"), item(4))
	require.ErrorContains(t, err, `hotspot rule "user"`)
}

// A call that another family refuses refills no bucket: partly earned units keep being earned, and
// the interval of a value begins with its first admitted call.
// known bug 22
func TestWhoIsRefusedElsewhereFillsNothing(t *testing.T) {
	g := newGuard(t)
	require.NoError(t, g.Update(func(b *engine.SnapshotBuilder) error {
		return errors.Join(
			hotspot.Compile(b, []hotspot.Rule{{Resource: "orders", Param: "user", Threshold: 2, Burst: 2, Window: hotspot.Refill}}),
			flow.Compile(b, []flow.Rule{{Resource: "orders", Threshold: 1, Interval: 10 * ms, Buckets: 1, Window: flow.Ring}}),
		)
	}))
	tooMany := func(at time.Duration, v any) {
		g.at(at)
		_, err := g.enter(user(v), engine.Units(2))
		require.Equal(t, core.KindFlow, core.KindOf(err))
	}
	passes := func(from time.Duration, v any) (words []string) {
		for i := range 5 {
			g.at(from + time.Duration(i)*10*ms)
			words = append(words, g.outcome(user(v)))
		}
		return words
	}
	assert.Equal(t, "pass x4, block", trial.Runs(passes(0, "ann")))
	tooMany(1400*ms, "ann")
	assert.Equal(t, "pass x4, block", trial.Runs(passes(2010*ms, "ann")), "4 were earned in 2 s")
	tooMany(5000*ms, "bob")
	assert.Equal(t, "pass x4, block", trial.Runs(passes(5900*ms, "bob")))
	assert.Equal(t, "block x5", trial.Runs(passes(6010*ms, "bob")), "one second after he was refused, not after he was admitted")
}

// A rule in shadow mode, of any family, changes no verdict of an enforced rule, even if there is
// only one cell. Rules that decide at once take units before others refuse, so a call that is
// refused elsewhere may cost a value its cell; whether they decide at once must not depend on shadow
// rules.
// known bug 127
func TestShadowRulesChangeNoVerdict(t *testing.T) {
	play := func(watch func(*engine.SnapshotBuilder, []hotspot.Rule, []flow.Rule) error) (words []string) {
		g := newGuard(t)
		require.NoError(t, g.Update(func(b *engine.SnapshotBuilder) error {
			return watch(b,
				[]hotspot.Rule{{Resource: "orders", Param: "user", Threshold: 1, MaxValues: 1}},
				[]flow.Rule{{Resource: "orders", Threshold: 0, Origin: "eve"}})
		}))
		for _, call := range []struct {
			at            time.Duration
			value, origin string
		}{
			{0, "ann", ""}, {900 * ms, "bob", ""}, {1150 * ms, "cid", "eve"}, {1150 * ms, "ann", ""}, {1160 * ms, "bob", ""},
		} {
			g.at(call.at)
			entry, err := g.Enter(engine.WithOrigin(t.Context(), call.origin), "orders", []engine.Option{user(call.value)})
			entry.Exit()
			words = append(words, core.KindOf(err).String())
		}
		return words
	}
	alone := play(func(b *engine.SnapshotBuilder, h []hotspot.Rule, f []flow.Rule) error {
		return errors.Join(hotspot.Compile(b, h), flow.Compile(b, f))
	})
	assert.Contains(t, alone, "hotspot", "a value has lost its cell")
	for name, watch := range map[string]func(*engine.SnapshotBuilder, []hotspot.Rule, []flow.Rule) error{
		"hotspot": func(b *engine.SnapshotBuilder, h []hotspot.Rule, f []flow.Rule) error {
			return errors.Join(hotspot.Compile(b, append(h, hotspot.Rule{Resource: "orders", Param: "item", Mode: spec.Shadow})), flow.Compile(b, f))
		},
		"flow": func(b *engine.SnapshotBuilder, h []hotspot.Rule, f []flow.Rule) error {
			return errors.Join(hotspot.Compile(b, h), flow.Compile(b, append(f, flow.Rule{Resource: ".*", Match: spec.MatchRegex, Behavior: flow.Throttle, Mode: spec.Shadow})))
		},
		"authority": func(b *engine.SnapshotBuilder, h []hotspot.Rule, f []flow.Rule) error {
			return errors.Join(authority.Compile(b, []authority.Rule{{Resource: "orders", Origins: []string{"x"}, Mode: spec.Shadow}}),
				hotspot.Compile(b, h), flow.Compile(b, f))
		},
		"system": func(b *engine.SnapshotBuilder, h []hotspot.Rule, f []flow.Rule) error {
			return errors.Join(system.Compile(b, []system.Rule{{Metric: system.QPS, Mode: spec.Shadow}}), hotspot.Compile(b, h), flow.Compile(b, f))
		},
		"isolation": func(b *engine.SnapshotBuilder, h []hotspot.Rule, f []flow.Rule) error {
			return errors.Join(hotspot.Compile(b, h), flow.Compile(b, f), isolation.Compile(b, []isolation.Rule{{Resource: "orders", Mode: spec.Shadow}}))
		},
		"adaptive": func(b *engine.SnapshotBuilder, h []hotspot.Rule, f []flow.Rule) error {
			return errors.Join(hotspot.Compile(b, h), flow.Compile(b, f), adaptive.Compile(b, []adaptive.Rule{{Resource: "orders", Mode: spec.Shadow}}))
		},
		"breaker": func(b *engine.SnapshotBuilder, h []hotspot.Rule, f []flow.Rule) error {
			return errors.Join(hotspot.Compile(b, h), flow.Compile(b, f),
				breaker.Compile(b, []breaker.Rule{{Resource: "*", Mode: spec.Shadow}, {Resource: "orders", Mode: spec.Shadow}}))
		},
		"outlier": func(b *engine.SnapshotBuilder, h []hotspot.Rule, f []flow.Rule) error {
			return errors.Join(hotspot.Compile(b, h), flow.Compile(b, f), outlier.Compile(b, []outlier.Rule{{Resource: "orders", Mode: spec.Shadow}}))
		},
	} {
		assert.Equal(t, alone, play(watch), "with a shadow rule of %s", name)
	}
}

func TestShadowRefusesNobodyAndKeepsNothing(t *testing.T) {
	g := newGuard(t, hotspot.Rule{ID: "s", Param: "user", Threshold: 2, Mode: spec.Shadow})
	assert.Equal(t, "pass x5", g.outcomes(5, user("ann")))
	assert.EqualValues(t, 3, g.figures("s").ShadowBlocked)
	assert.Equal(t, "pass", g.outcome(user([]string{"bob", "ann"})))
	assert.EqualValues(t, 4, g.figures("s").ShadowBlocked)
	g.load(hotspot.Rule{ID: "s", Param: "user", Threshold: 2})
	assert.Equal(t, "pass x2, block", g.outcomes(3, user("bob")), "what the refused list took of bob is back")
}
