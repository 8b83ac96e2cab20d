package meter

import (
	"hash/maphash"

	"github.com/penstock-go/penstock/internal/shared"
)

// manyMeters is the number of meters at which a node gets an index.
const manyMeters = 16

// index finds the position of a key in a list that only grows at its end. It is a hash table with
// linear probing, at most half full. Adding takes the node's lock, lookups take none: a position is
// stored before the list that includes it is published, and a reader ignores positions beyond the
// end of its list.
type index[K comparable] struct {
	seed  maphash.Seed
	slots []shared.Uint32 // positions from 1; 0 is a free slot. A power of two
	used  int             // guarded by the node's lock
}

// newIndex returns an index for the n keys that key returns, with room for as many again.
func newIndex[K comparable](n int, key func(place int) K) *index[K] {
	size := 1
	for size < 4*n {
		size *= 2
	}
	x := &index[K]{seed: maphash.MakeSeed(), slots: make([]shared.Uint32, size)}
	for place := range n {
		x.add(key(place), place)
	}
	return x
}

func (x *index[K]) full() bool { return 2*(x.used+1) > len(x.slots) }

func (x *index[K]) add(key K, place int) {
	i := x.home(key)
	for x.slots[i].Load() != 0 {
		i = (i + 1) & (len(x.slots) - 1)
	}
	x.slots[i].Store(uint32(place) + 1)
	x.used++
}

// find returns the position of a key in a list of n, or -1 if it isn't there.
func (x *index[K]) find(key K, n int, at func(place int) K) int {
	for i := x.home(key); ; i = (i + 1) & (len(x.slots) - 1) {
		place := int(x.slots[i].Load()) - 1
		if place < 0 || place < n && at(place) == key {
			return place
		}
	}
}

func (x *index[K]) home(key K) int {
	return int(maphash.Comparable(x.seed, key) & uint64(len(x.slots)-1))
}
