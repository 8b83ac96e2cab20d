package lending

import "math/bits"

// MaxLanes is the maximum number of lanes of a striped structure.
const MaxLanes = 64

// Lanes returns the number of lanes for procs processors: a power of two, at least twice their
// number.
func Lanes(procs int) int { return 1 << bits.Len(uint(2*min(procs, MaxLanes/2)-1)) }
