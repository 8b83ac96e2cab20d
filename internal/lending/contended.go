//go:build !lend && !sim

package lending

import "runtime"

const (
	// Always makes every counter lend from the beginning.
	Always = false

	// After is the number of exchanges of a counter's word that must fail, within one bucket of a
	// window, before it lends.
	After = 32
)

// Procs returns the number of processors that a counter has lanes for.
func Procs() int { return runtime.GOMAXPROCS(0) }

// Units returns the number of units that a counter with that much room lends to one of its lanes;
// it is 0 if lending isn't worth the lock. All lanes together hold less than a fourth of the room;
// otherwise calls near the limit would make the counter collect again and again.
func Units(room int64, lanes int) int64 {
	if n := min(room/(4*int64(lanes)), 16*int64(lanes)); n >= 8 {
		return n
	}
	return 0
}
