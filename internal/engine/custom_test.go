package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// gate is a custom slot.
type gate struct{ trial.AskOnly }

func (gate) Name() string { return "gate" }

func closed(reason *string) gate {
	return gate{func(inv *engine.Invocation) engine.Verdict {
		if *reason == "" {
			return engine.Verdict{}
		}
		return inv.Refuse(*reason)
	}}
}

// A custom slot rejects under its own name. The rejection is counted and logged like a rule's, and
// one error serves all calls of the resource.
func TestRefuse(t *testing.T) {
	var log lines
	reason := "maintenance"
	e, _ := newEngine(t, engine.Config{Logger: log.logger(), Chain: trial.Chain().With(closed(&reason), engine.Before("flow"))})
	_, err := e.Enter(t.Context(), "orders", nil)
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.Equal(t, core.KindCustom, core.KindOf(err))
	assert.EqualError(t, err, `penstock: blocked "orders": maintenance`)
	_, again := e.Enter(t.Context(), "orders", nil)
	assert.Same(t, err, again)
	assert.EqualValues(t, 2, resource(t, e, "orders").Totals().Block)
	require.NoError(t, e.Close())
	require.Len(t, log.all(), 2, "one at once, the others at the end")
	assert.Contains(t, log.all()[0], "kind=custom resource=orders rule=maintenance count=1")
	assert.Contains(t, log.all()[1], "count=1")
	assert.Zero(t, e.Failures())

	reason = ""
	entry, err := e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	entry.Exit()
}

func TestRefuseAllocatesNothing(t *testing.T) {
	reason := "maintenance"
	e, _ := newEngine(t, engine.Config{Chain: trial.Chain().With(closed(&reason), engine.After("outlier"))})
	ctx := t.Context()
	race.AllocatesNothing(t, 1000, func() { _, _ = e.Enter(ctx, "orders", nil) })
}

// Reasons made up call by call don't fill the memory.
func TestReasonsAreBounded(t *testing.T) {
	reason := ""
	e, _ := newEngine(t, engine.Config{Chain: engine.NewChain(closed(&reason))})
	seen := map[error]bool{}
	for i := range 1000 {
		reason = fmt.Sprint("user ", i)
		_, err := e.Enter(t.Context(), "orders", nil)
		seen[err] = true
		if i >= 64 {
			assert.EqualError(t, err, `penstock: blocked "orders": other reasons`)
		}
	}
	assert.Len(t, seen, 65)
}

// An error made by hand in a slot rejects the call too, and nothing panics.
func TestRefusalMadeByHand(t *testing.T) {
	var log lines
	b := &core.BlockError{Kind: core.KindCustom, Resource: "orders", Rule: "mine"}
	e, _ := newEngine(t, engine.Config{Logger: log.logger(), Chain: trial.Chain().With(
		gate{func(*engine.Invocation) engine.Verdict { return engine.Verdict{Block: b} }}, engine.After("flow"))})
	_, err := e.Enter(t.Context(), "orders", nil)
	assert.Equal(t, b, err)
	assert.EqualValues(t, 1, resource(t, e, "orders").Totals().Block)
	assert.Zero(t, e.Failures())
	_, known := b.RetryAfter()
	assert.False(t, known)
	assert.Empty(t, log.all())
}

// A slot chooses the HTTP status of its rejection, and each reason is counted across all resources,
// including forgotten ones.
func TestRefuseWith(t *testing.T) {
	statuses := map[string]int{"orders": 403, "carts": 401, "users": 0}
	e, _ := newEngine(t, engine.Config{Chain: trial.Chain().With(gate{func(inv *engine.Invocation) engine.Verdict {
		return inv.RefuseWith("suspended", statuses[inv.Resource().Name()])
	}}, engine.After("authority"))})
	for name, status := range statuses {
		for range 2 {
			_, err := e.Enter(t.Context(), name, nil)
			b, ok := errors.AsType[*core.BlockError](err)
			require.True(t, ok)
			assert.Equal(t, status, b.Status, name)
			assert.Equal(t, "suspended", b.Rule)
		}
	}
	assert.Equal(t, []core.RuleStats{{Kind: core.KindCustom, ID: "suspended", Asked: true, Refused: 6}}, e.CustomStats())
}

// The reasons of a whole engine are bounded as well.
func TestCustomFiguresAreBounded(t *testing.T) {
	reason := ""
	e, _ := newEngine(t, engine.Config{Chain: trial.Chain().With(closed(&reason), engine.Before("flow"))})
	for i := range 1000 {
		reason = fmt.Sprint("user ", i)
		_, err := e.Enter(t.Context(), fmt.Sprint("resource ", i%10), nil)
		require.ErrorIs(t, err, core.ErrBlocked)
	}
	all, refused := e.CustomStats(), int64(0)
	for _, f := range all {
		refused += f.Refused
	}
	assert.Len(t, all, 65)
	assert.EqualValues(t, 1000, refused)
}
