package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/engine"
)

// The slot of a family without rules for the resource is skipped; a custom slot sees every call.
func TestFamilyWithoutRulesIsPassedOver(t *testing.T) {
	e, _, first, second, heard := twoQuick(t)
	entry, err := e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	entry.Exit()
	assert.Equal(t, []string{"first takes", "second takes"}, heard())
	require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error {
		b.Put(second.kind, second)
		return nil
	}))
	entry, err = e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	entry.Exit()
	assert.Equal(t, []string{"second takes"}, heard())
	assert.Zero(t, first.semaphore.Held())
}
