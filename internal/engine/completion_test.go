package engine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
)

// A slot that takes later sees whether the call will wait; it doesn't see that when it is asked.
func TestWaitsIsKnownToLaterSlots(t *testing.T) {
	var asked, before, after, again []bool
	wait := time.Duration(0)
	chain := engine.NewChain(
		&fake{name: "before", ask: note(&asked), take: note(&before)},
		&fake{name: "queue", take: func(*engine.Invocation) engine.Verdict { return engine.Verdict{Wait: wait} }},
		&fake{name: "other", take: func(*engine.Invocation) engine.Verdict { return engine.Verdict{} }},
		&fake{name: "after", take: note(&after), recheck: note(&again)},
	)
	e, clock := newEngine(t, engine.Config{Chain: chain})
	clock.SetSleep(clocks.SleepAdvance)
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

func note(waits *[]bool) func(*engine.Invocation) engine.Verdict {
	return func(inv *engine.Invocation) engine.Verdict {
		*waits = append(*waits, inv.Waits())
		return engine.Verdict{}
	}
}

// ender is a completer that records its tokens.
type ender struct{ heard *[]int64 }

func (e *ender) Complete(_ *engine.Invocation, token int64) { *e.heard = append(*e.heard, token) }

// Completers are notified of the end of a call, after its reservations are given back, in the order
// of registration. Completers of a rejected call aren't notified, nor are completers of the call
// that the state served before.
func TestCompleters(t *testing.T) {
	var heard []int64
	who := &ender{&heard}
	refusal := engine.NewCounted(core.BlockError{Resource: "a", Rule: "r"}, nil, nil, nil)
	refuse := false
	e, _ := newEngine(t, engine.Config{Chain: engine.NewChain(&fake{
		name: "one",
		take: func(inv *engine.Invocation) engine.Verdict {
			assert.Empty(t, inv.Completions())
			inv.OnComplete(who, 1)
			inv.OnComplete(who, 2)
			inv.Completions()[1].Token++
			if refuse {
				return engine.Verdict{Block: refusal}
			}
			return engine.Verdict{}
		},
	})})
	for _, refuse = range []bool{false, true, false} {
		entry, _ := e.Enter(t.Context(), "a", nil)
		entry.Exit()
	}
	assert.Equal(t, []int64{1, 3, 1, 3}, heard)
}

// stumbler is a completer that panics.
type stumbler struct{}

func (*stumbler) Complete(*engine.Invocation, int64) { panic("boom") }

// A completer that panics doesn't affect the others, whether registered by the call or by the rule
// set.
func TestCompleterStumbles(t *testing.T) {
	var heard []int64
	odd, last := new(stumbler), &ender{&heard}
	e, _ := newEngine(t, engine.Config{Chain: engine.NewChain(&fake{name: "one", take: func(inv *engine.Invocation) engine.Verdict {
		inv.OnComplete(odd, 1)
		inv.OnComplete(last, 7)
		return engine.Verdict{}
	}})})
	require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error {
		b.OnComplete(odd)
		b.OnComplete(last)
		return nil
	}))
	entry, err := e.Enter(t.Context(), "a", nil)
	require.NoError(t, err)
	entry.Exit()
	assert.Equal(t, []int64{0, 7}, heard)
}

// Errors of custom functions are counted, and stop nothing.
func TestShield(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	ran := 0
	e.Shield(func() { ran++ })
	e.Shield(func() { panic("x") })
	assert.Equal(t, 1, ran)
	assert.Equal(t, int64(1), e.Failures())
}

func TestIgnore(t *testing.T) {
	assert.NoError(t, engine.Ignore(nil))
	err := errors.New("x")
	assert.ErrorIs(t, engine.Ignore(err), err)
	assert.Equal(t, "x", engine.Ignore(err).Error())
}

// Marking a call failed allocates nothing.
func TestFailDoesNotAllocate(t *testing.T) {
	failure := errors.New("x")
	e, _ := newEngine(t, engine.Config{Failure: func(err error) bool { return errors.Is(err, failure) }})
	ctx := t.Context()
	race.AllocatesNothing(t, 1000, func() {
		entry, _ := e.Enter(ctx, "a", nil)
		entry.Fail(failure)
		entry.Exit()
	})
}
