package engine

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// Invocations are adjacent on the heap, one for each processor. If one ended in the middle of a
// cache line, the next would begin there.
func TestInvocationFillsCacheLines(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) == 8 {
		assert.Zero(t, unsafe.Sizeof(Invocation{})%64)
	}
}

// The ring of a resource's last rejections is as small as KeepRefusals promises.
func TestRecentRefusalsAreSmall(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(recent{}), uintptr(1152))
}
