package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// scribe is a slot that records its calls, and reserves units.
func scribe(name string, transcript *[]string) *fake {
	write := func(phase string) { *transcript = append(*transcript, name+" "+phase) }
	s := bomb(write)
	s.name = name
	s.take = func(inv *engine.Invocation) engine.Verdict {
		write("Take")
		inv.Reserve(engine.Reservation{Holder: holder(write), UntilExit: name == "b"})
		return engine.Verdict{}
	}
	return s
}

type holder func(string)

func (h holder) GiveBack(*engine.Reservation, int64) { h("GiveBack") }

func TestOrderOfACall(t *testing.T) {
	var transcript []string
	for _, tt := range []struct {
		name string
		last *fake
		want []string
	}{
		{name: "passes", last: &fake{}, want: []string{
			"a Prepare", "b Prepare", "c Prepare",
			"a Ask", "b Ask", "c Ask",
			"a Take", "b Take", "c Take",
			"a Passed", "b Passed", "c Passed",
			"b GiveBack", "a Completed", "b Completed", "c Completed",
		}},
		{name: "refused when asked", last: &fake{ask: refuse}, want: []string{
			"a Prepare", "b Prepare", "c Prepare",
			"a Ask", "b Ask", "c Ask",
			"a Blocked", "b Blocked", "c Blocked",
		}},
		{name: "refused when it takes", last: &fake{take: refuse}, want: []string{
			"a Prepare", "b Prepare", "c Prepare",
			"a Ask", "b Ask", "c Ask",
			"a Take", "b Take", "c Take",
			"c GiveBack", "b GiveBack", "a GiveBack",
			"a Blocked", "b Blocked", "c Blocked",
		}},
		{name: "waits", last: &fake{take: wait}, want: []string{
			"a Prepare", "b Prepare", "c Prepare",
			"a Ask", "b Ask", "c Ask",
			"a Take", "b Take", "c Take",
			"a Recheck", "b Recheck", "c Recheck",
			"a Passed", "b Passed", "c Passed",
			"b GiveBack", "a Completed", "b Completed", "c Completed",
		}},
		{name: "refused after the wait", last: &fake{take: wait, recheck: refuse}, want: []string{
			"a Prepare", "b Prepare", "c Prepare",
			"a Ask", "b Ask", "c Ask",
			"a Take", "b Take", "c Take",
			"a Recheck", "b Recheck", "c Recheck",
			"c GiveBack", "b GiveBack", "a GiveBack",
			"a Blocked", "b Blocked", "c Blocked",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.last.name = "last"
			transcript = nil
			chain := engine.NewChain(scribe("a", &transcript), scribe("b", &transcript), scribe("c", &transcript), tt.last)
			e, clock := newEngine(t, engine.Config{Chain: chain})
			clock.SetSleep(clocks.SleepAdvance)
			entry, _ := e.Enter(t.Context(), "orders", nil)
			entry.Exit()
			assert.Equal(t, tt.want, transcript)
		})
	}
}

func refuse(*engine.Invocation) engine.Verdict { return engine.Verdict{Block: refusal("no")} }
func wait(*engine.Invocation) engine.Verdict {
	return engine.Verdict{Wait: time.Second, By: refusal("queue")}
}

// Slots behind a slot that rejects in Ask aren't asked; slots behind one that rejects in Take don't
// take.
func TestFirstRefusalWins(t *testing.T) {
	never := func(*engine.Invocation) engine.Verdict { t.Error("asked"); return engine.Verdict{} }
	for _, tt := range []struct {
		name  string
		first *fake
		then  *fake
	}{
		{name: "Ask", first: &fake{ask: refuse}, then: &fake{ask: never, take: never}},
		{name: "Take", first: &fake{take: refuse}, then: &fake{take: never}},
		{name: "Recheck", first: &fake{take: wait, recheck: refuse}, then: &fake{recheck: never}},
		{name: "a wait doesn't hide it", first: &fake{take: wait}, then: &fake{take: refuse, recheck: never}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.first.name, tt.then.name = "first", "then"
			e, clock := newEngine(t, engine.Config{Chain: engine.NewChain(tt.first, tt.then)})
			clock.SetSleep(clocks.SleepAdvance)
			_, err := e.Enter(t.Context(), "orders", nil)
			var b *core.BlockError
			require.ErrorAs(t, err, &b)
			assert.Equal(t, "no", b.Rule)
		})
	}
}

func TestChainWith(t *testing.T) {
	slot := func(name string) *fake { return &fake{name: name} }
	base := engine.NewChain(slot("a"), slot("b"), slot("c"))
	for _, tt := range []struct {
		where engine.Position
		want  []string
	}{
		{engine.Before("a"), []string{"new", "a", "b", "c"}},
		{engine.After("a"), []string{"a", "new", "b", "c"}},
		{engine.Before("b"), []string{"a", "new", "b", "c"}},
		{engine.Before("c"), []string{"a", "b", "new", "c"}},
		{engine.After("c"), []string{"a", "b", "c", "new"}},
	} {
		t.Run(fmt.Sprint(tt.want), func(t *testing.T) {
			longer := base.With(slot("new"), tt.where)
			assert.Equal(t, tt.want, longer.Names())
			assert.Equal(t, []string{"a", "b", "c"}, base.Names(), "the old chain stays as it is")
			// Two chains made from one share nothing.
			left, right := longer.With(slot("left"), engine.After("c")), longer.With(slot("right"), engine.After("c"))
			assert.Contains(t, left.Names(), "left")
			assert.NotContains(t, left.Names(), "right")
			assert.NotContains(t, right.Names(), "left")
		})
	}
}

func TestChainDoesNotChangeWithItsSource(t *testing.T) {
	slots := []engine.Slot{&fake{name: "a"}, &fake{name: "b"}}
	c := engine.NewChain(slots...)
	slots[0] = &fake{name: "z"}
	c.Names()[1] = "y"
	assert.Equal(t, []string{"a", "b"}, c.Names())
}

type nameOnly struct{}

func (nameOnly) Name() string { return "idle" }

func TestChainRefuses(t *testing.T) {
	a := &fake{name: "a"}
	for _, tt := range []struct {
		name  string
		build func()
		want  string
	}{
		{"two slots with one name", func() { engine.NewChain(a, &fake{name: "a"}) }, `penstock: two slots named "a" in one chain`},
		{"no role", func() { engine.NewChain(nameOnly{}) },
			`penstock: slot "idle" plays no role: give it a method of Preparer, Checker, Rechecker or one of the recorders`},
		{"nowhere", func() { engine.NewChain(a).With(&fake{name: "b"}, engine.After("x")) }, `penstock: no slot "x" in the chain: it has ["a"]`},
		{"a name taken", func() { engine.NewChain(a).With(&fake{name: "a"}, engine.After("a")) }, `penstock: two slots named "a" in one chain`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.PanicsWithValue(t, tt.want, tt.build)
		})
	}
}

// An empty chain lets everything through and counts nothing.
func TestEmptyChain(t *testing.T) {
	e, _ := newEngine(t, engine.Config{Chain: engine.NewChain()})
	entry := enter(t, e, t.Context(), engine.Inbound())
	assert.NotNil(t, entry.Context())
	entry.Exit()
	totals := resource(t, e, "orders").Totals()
	assert.Zero(t, totals.Pass)
}

type askOnly struct{ trial.AskOnly }

func (askOnly) Name() string { return "ask" }

func TestAskOnly(t *testing.T) {
	closed := false
	e, _ := newEngine(t, engine.Config{Chain: engine.NewChain(askOnly{func(*engine.Invocation) engine.Verdict {
		if closed {
			return engine.Verdict{Block: refusal("closed")}
		}
		return engine.Verdict{}
	}})})
	enter(t, e, t.Context()).Exit()
	closed = true
	_, err := e.Enter(t.Context(), "orders", nil)
	require.ErrorIs(t, err, core.ErrBlocked)
}
