package stat

import (
	"os"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// A lane touches only its own cell: even a read of another cell, such as a nil check, fetches a
// cache line that other lanes write all the time. Here the cell of lane 0 lies in a page that can't
// be read. known bug 110
func TestTallyLaneTouchesItsOwnCell(t *testing.T) {
	page := os.Getpagesize()
	memory, err := syscall.Mmap(-1, 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(memory)) }()
	cells := (*[tallyCells]tallyCell)(unsafe.Pointer(&memory[page-int(unsafe.Sizeof(tallyCell{}))]))

	var tally Tally
	tally.cells.Store(cells)
	require.NoError(t, syscall.Mprotect(memory[:page], syscall.PROT_NONE))
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for lane := uint32(1); lane < tallyCells; lane++ {
		require.NotPanics(t, func() { tally.Add(lane, 2) }, "lane %d", lane)
	}
	require.Panics(t, func() { tally.Add(0, 2) }, "the test would detect nothing here")

	require.NoError(t, syscall.Mprotect(memory[:page], syscall.PROT_READ|syscall.PROT_WRITE))
	require.EqualValues(t, 2*(tallyCells-1), tally.Load())
}
