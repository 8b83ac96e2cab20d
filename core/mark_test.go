package core_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
)

// A slot that takes later knows whether the call will wait; nobody knows when asked.
func TestWaitsIsKnownToLaterSlots(t *testing.T) {
	var asked, before, after, again []bool
	wait := time.Duration(0)
	chain := core.NewChain(
		&fake{name: "before", ask: note(&asked), take: note(&before)},
		&fake{name: "queue", take: func(*core.Invocation) core.Verdict { return core.Verdict{Wait: wait} }},
		&fake{name: "other", take: func(*core.Invocation) core.Verdict { return core.Verdict{} }},
		&fake{name: "after", take: note(&after), recheck: note(&again)},
	)
	e, clock := newEngine(t, core.Config{Chain: chain})
	clock.SetSleep(core.SleepAdvance)
	for _, wait = range []time.Duration{0, time.Second, 0} {
		entry, err := e.Enter(t.Context(), "a", nil)
		require.NoError(t, err)
		entry.Exit()
	}
	assert.Equal(t, []bool{false, false, false}, asked)
	assert.Equal(t, []bool{false, false, false}, before)
	assert.Equal(t, []bool{false, true, false}, after)
	assert.Equal(t, []bool{true}, again)
}

func note(waits *[]bool) func(*core.Invocation) core.Verdict {
	return func(inv *core.Invocation) core.Verdict {
		*waits = append(*waits, inv.Waits())
		return core.Verdict{}
	}
}

// Marks are found when the call completes, after what was reserved is back. Those of a
// refused call are gone, and so are those of the call that the state served before.
func TestMarks(t *testing.T) {
	owner := new(int)
	refusal := core.NewBlockError(core.KindNone, "a", "r", nil)
	refuse := false
	var found [][]core.Mark
	chain := core.NewChain(&fake{
		name: "marker",
		take: func(inv *core.Invocation) core.Verdict {
			assert.Empty(t, inv.Marks())
			inv.Mark(owner, 1)
			inv.Mark(owner, 2)
			inv.Marks()[1].Token++
			if refuse {
				return core.Verdict{Block: refusal}
			}
			return core.Verdict{}
		},
		completed: func(inv *core.Invocation) { found = append(found, append([]core.Mark(nil), inv.Marks()...)) },
	})
	e, _ := newEngine(t, core.Config{Chain: chain})
	for _, refuse = range []bool{false, true, false} {
		entry, _ := e.Enter(t.Context(), "a", nil)
		entry.Exit()
	}
	want := []core.Mark{{Owner: owner, Token: 1}, {Owner: owner, Token: 3}}
	assert.Equal(t, [][]core.Mark{want, want}, found)
}

// What a user's function does wrong is counted, and stops nothing.
func TestShield(t *testing.T) {
	e, _ := newEngine(t, core.Config{})
	ran := 0
	e.Shield(func() { ran++ })
	e.Shield(func() { panic("x") })
	assert.Equal(t, 1, ran)
	assert.Equal(t, int64(1), e.Failures())
}

func TestIgnore(t *testing.T) {
	assert.NoError(t, core.Ignore(nil))
	err := errors.New("x")
	assert.ErrorIs(t, core.Ignore(err), err)
	assert.Equal(t, "x", core.Ignore(err).Error())
}

// To say that a call failed allocates nothing.
func TestFailDoesNotAllocate(t *testing.T) {
	failure := errors.New("x")
	e, _ := newEngine(t, core.Config{Failure: func(err error) bool { return errors.Is(err, failure) }})
	ctx := t.Context()
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		entry, _ := e.Enter(ctx, "a", nil)
		entry.Fail(failure)
		entry.Exit()
	}))
}

// A default rule is for what no other rule in force is about, and not for what it
// leaves out.
func TestTableDefaultRules(t *testing.T) {
	all := rule{id: "all", resource: "x,y", byDefault: true}
	tb := table(t, all,
		rule{id: "own", resource: "own"},
		rule{id: "pattern", resource: "p.*", regex: true},
		rule{id: "shadow", resource: "shadow", mode: core.Shadow},
		rule{id: "off", resource: "off", mode: core.Off},
		rule{id: "off by default", byDefault: true, mode: core.Off})
	for name, want := range map[string]string{
		"a": "all", "x": "", "y": "", "own": "own", "pay": "pattern", "shadow": "all shadow", "off": "all", "x,y": "all",
	} {
		assert.Equal(t, want, ids(tb.For(name)), name)
	}

	e, _ := newEngine(t, core.Config{})
	a, own := e.Resource("a", 0), e.Resource("own", 0)
	before := tb.Bind(a)
	next := table(t, all)
	next.Inherit(tb, e.FindResource)
	assert.Same(t, before[0], next.Bind(a)[0], "what is still there goes on")
	assert.Nil(t, next.Bind(own)[0].old)
	last := table(t, all, rule{id: "own", resource: "a"})
	last.Inherit(next, e.FindResource)
	assert.Equal(t, "own", ids(last.For("a")))
	assert.Len(t, last.Bind(a), 1)
}
