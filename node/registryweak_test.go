//go:build !sim

package node

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A name has one member as long as anything refers to it; after that it is forgotten. Schedules
// never forget, because garbage collection can't be part of a schedule; see shared.Weak.
func TestRegistryRemembersWhoIsHeld(t *testing.T) {
	registry, _ := newRegistry(newBudget(3))
	held, _ := registry.Obtain("held", 0)
	pinned, _ := registry.Obtain("pinned", 0)
	registry.Obtain("forgotten", 0)
	registry.Evict(0)
	require.Empty(t, names(registry))
	runtime.GC()
	again, _ := registry.Obtain("held", 0)
	require.Same(t, held, again)
	require.False(t, held.retired.Load())
	require.Same(t, pinned, registry.Pin("pinned"))
	registry.Evict(0)
	require.Len(t, registry.gone, 1, "only members that may be in use are remembered")
	registry.Evict(0)
	runtime.KeepAlive(held)
	runtime.KeepAlive(pinned)
}
