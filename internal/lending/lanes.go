package lending

import "math/bits"

// MaxLanes is the most lanes that something is striped over.
const MaxLanes = 64

// Lanes is how many lanes there are for so many processors: a power of two, twice as many as they
// are or more.
func Lanes(procs int) int { return 1 << bits.Len(uint(2*min(procs, MaxLanes/2)-1)) }
