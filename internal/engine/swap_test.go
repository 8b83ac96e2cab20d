package engine_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// Rules that are replaced during a decision apply to the next call: a call that was asked under the
// old set also takes under it. known bug 66
func TestDecisionIsUnderOneSet(t *testing.T) {
	open := flow.Rule{ID: "r", Resource: "orders", Threshold: 1000}
	shut := flow.Rule{ID: "r", Resource: "orders", Threshold: 0}
	for _, phase := range []string{"prepare", "ask", "take"} {
		t.Run(phase, func(t *testing.T) {
			var next *flow.Rule
			var e *engine.Engine
			swap := func() {
				if next != nil {
					rule := *next
					next = nil
					load(t, e, rule)
				}
			}
			judge := func(*engine.Invocation) engine.Verdict { swap(); return engine.Verdict{} }
			slot := &fake{name: "swapper"}
			switch phase {
			case "prepare":
				slot.prepare = func(*engine.Invocation) { swap() }
			case "ask":
				slot.ask = judge
			case "take":
				slot.take = judge
			}
			e, _ = newEngine(t, engine.Config{Chain: trial.Chain().With(slot, engine.Before("flow"))}, open)
			enter(t, e, t.Context()).Exit()

			next = &shut
			enter(t, e, t.Context()).Exit()
			require.Nil(t, next, "they were replaced")

			next = &open
			_, err := e.Enter(t.Context(), "orders", nil)
			require.ErrorIs(t, err, core.ErrBlocked)
			if next == nil {
				enter(t, e, t.Context()).Exit()
			}
		})
	}
}

// While the next set is built, the old one is complete. known bug 69
func TestUpdateLeavesTheOldSetInForceUntilItIsDone(t *testing.T) {
	e, _ := newEngine(t, engine.Config{}, flow.Rule{Resource: "orders", Threshold: 0})
	blocked := func() {
		t.Helper()
		_, err := e.Enter(t.Context(), "orders", nil)
		assert.ErrorIs(t, err, core.ErrBlocked)
	}
	require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error {
		blocked()
		err := flow.Compile(b, []flow.Rule{{Resource: "orders", Threshold: 0}, {Resource: "other", Threshold: 1}})
		blocked()
		return err
	}))
	blocked()
}

// While rules are replaced, a call of a known resource waits for nothing: neither for the update,
// nor for the cleanup after it.
func TestCallsDoNotWaitForALoad(t *testing.T) {
	e, _ := newEngine(t, engine.Config{}, flow.Rule{Resource: "orders", Threshold: 0})
	_, err := e.Enter(t.Context(), "orders", nil)
	require.ErrorIs(t, err, core.ErrBlocked)

	var told []string
	require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error {
		if err := flow.Compile(b, []flow.Rule{{Resource: "orders", Threshold: 9}}); err != nil {
			return err
		}
		b.BeforePublishing(func(int64) {
			_, err := e.Enter(t.Context(), "orders", nil)
			require.ErrorIs(t, err, core.ErrBlocked)
			told = append(told, "before")
		})
		b.Put(core.KindFlow, tidied{b.Compiled(core.KindFlow), func() {
			enter(t, e, t.Context()).Exit()
			told = append(told, "after")
		}})
		return nil
	}))
	assert.Equal(t, []string{"before", "after"}, told)
}

// tidied is a family that runs a function when the state of earlier rules is dropped.
type tidied struct {
	engine.Family
	tell func()
}

func (f tidied) Needs(held any, known uint64, need func(engine.Need)) {
	f.tell()
	f.Family.Needs(held, known, need)
}

// With many concurrent updates, each continues from the previous one. known bug 70
func TestUpdatesComeOneAfterTheOther(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	first := e.Rules().Revision
	const goroutines, each = 8, 200
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range each {
				assert.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error {
					before := b.Previous(core.KindFlow)
					runtime.Gosched()
					assert.Same(t, before, e.Rules().Family(core.KindFlow))
					return flow.Compile(b, []flow.Rule{{Resource: "orders", Threshold: 1}})
				}))
			}
		})
	}
	wg.Wait()
	assert.Equal(t, first+goroutines*each, e.Rules().Revision)
}

// A listener for every rejection may make a call, which then needs rules, and may load rules. known
// bug 60
func TestRefusalsAreToldUnderNoLock(t *testing.T) {
	e, _ := newEngine(t, engine.Config{}, flow.Rule{Resource: "orders.*", Match: spec.MatchRegex, Threshold: 1000})
	enter(t, e, t.Context()).Exit()
	told := false
	e.Rules().Family(core.KindFlow).EachError(func(*core.BlockError) {
		told = true
		entry, err := e.Enter(t.Context(), "orders of another name", nil)
		assert.NoError(t, err)
		entry.Exit()
		assert.NoError(t, e.Update(func(*engine.SnapshotBuilder) error { return nil }))
	})
	assert.True(t, told)
}
