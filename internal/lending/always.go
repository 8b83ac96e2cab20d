//go:build lend && !sim

package lending

// These constants have other values in other builds.
const (
	Always = true
	After  = 1
)

// Procs returns one: two lanes.
func Procs() int { return 1 }

// Units returns half of the room, within the space of a cell.
func Units(room int64, _ int) int64 { return min(max(0, (room+1)/2), 1<<20) }
