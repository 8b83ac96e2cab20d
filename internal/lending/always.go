//go:build lend && !sim

package lending

// As in other builds, with other values.
const (
	Always = true
	After  = 1
)

// Procs is one: two lanes.
func Procs() int { return 1 }

// Units is half of the room, as far as a cell has space.
func Units(room int64, _ int) int64 { return min(max(0, (room+1)/2), 1<<20) }
