package lending

import "math/bits"

// MaxLanes is the most lanes that something is striped over.
const MaxLanes = 64

// Lanes is how many lanes there are for that many processors: a power of two, at least twice their
// number.
func Lanes(procs int) int { return 1 << bits.Len(uint(2*min(procs, MaxLanes/2)-1)) }
