package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/internal/bench/report"
	"github.com/penstock-go/penstock/internal/proof/tables"
)

// The page shows the current results, and the order keeps what it promises.
func TestPageIsCurrent(t *testing.T) {
	with, without := play(64, api.ShedLevels), play(64, api.ShedNone)
	assert.GreaterOrEqual(t, with.admitted[0], 0.95)
	assert.GreaterOrEqual(t, with.work, 0.8*without.work)

	kept, err := tables.Kept("../../../"+page, "criticality")
	require.NoError(t, err)
	assert.Equal(t, report.Framed(table()), kept, "go run ./criticality -write")
}
