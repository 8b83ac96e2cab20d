package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/bench/report"
	"github.com/penstock-go/penstock/internal/proof/tables"
)

// The page shows the current results, and shares keep what it promises.
func TestPageIsCurrent(t *testing.T) {
	o := play(overload(), true)
	assert.GreaterOrEqual(t, o.jain(), 0.99)
	assert.Zero(t, o.inversions)
	assert.Zero(t, o.tenants[0].turnedAway)
	assert.LessOrEqual(t, o.tenants[0].p99(), 10*time.Millisecond)
	assert.InDelta(t, 0.2, play(longCalls(), true).tenants[0].permits(longCalls().length), 0.02)

	turns := playTurns(turnsOverload(), 500*time.Millisecond, true)
	assert.GreaterOrEqual(t, turns.jain(), 0.99)
	assert.Zero(t, turns.tenants[0].turnedAway)

	kept, err := tables.Kept("../../../"+page, "fairness")
	require.NoError(t, err)
	assert.Equal(t, report.Framed(table()), kept, "go run ./fairness -write")
}
