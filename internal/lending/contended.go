//go:build !lend && !sim

package lending

import "runtime"

const (
	// Always says that every counter lends from the beginning.
	Always = false

	// After is how many exchanges of a counter's word must fail, within one bucket of a window,
	// before it lends.
	After = 32
)

// Procs is for how many processors a counter has lanes.
func Procs() int { return runtime.GOMAXPROCS(0) }

// Units is how many units a counter with that much room lends to one of its lanes; 0 if it isn't
// worth the lock. What all lanes hold stays below a fourth of the room; otherwise calls near the
// limit would cause it to be collected again and again.
func Units(room int64, lanes int) int64 {
	if n := min(room/(4*int64(lanes)), 16*int64(lanes)); n >= 8 {
		return n
	}
	return 0
}
