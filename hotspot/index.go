package hotspot

import (
	"github.com/penstock-go/penstock/core/argument"
)

// index finds the cells of a shard by value: a hash table with linear probing, at most three
// quarters full. A Go map keeps growing if keys are added and deleted for a long time, even if their
// number stays the same; this table grows only to fit the peak number of cells. It doesn't hash a
// value again either: it uses the hash that chose the shard.
type index struct {
	slots []place // length is a power of two
	n     int
}

type place struct {
	hash uint64
	cell *cell // nil if the slot is free
}

// home returns the first slot of a hash. Its lowest bits chose the shard.
func (x *index) home(hash uint64) int { return int(hash>>32) & (len(x.slots) - 1) }

func (x *index) find(v *argument.Value, hash uint64) *cell {
	mask := len(x.slots) - 1
	if mask < 0 {
		return nil
	}
	for i := int(hash>>32) & mask; ; i = (i + 1) & mask {
		switch p := &x.slots[i]; {
		case p.cell == nil:
			return nil
		case p.hash == hash && p.cell.value == *v:
			return p.cell
		}
	}
}

// findTuple is find for a value that has yet to be made of its parts.
func (x *index) findTuple(t argument.Tuple, hash uint64) *cell {
	mask := len(x.slots) - 1
	if mask < 0 {
		return nil
	}
	for i := int(hash>>32) & mask; ; i = (i + 1) & mask {
		switch p := &x.slots[i]; {
		case p.cell == nil:
			return nil
		case p.hash == hash && t.Is(p.cell.value):
			return p.cell
		}
	}
}

// add adds a cell whose value is not in the table.
func (x *index) add(c *cell) {
	if 4*(x.n+1) > 3*len(x.slots) {
		old := x.slots
		x.slots = make([]place, max(8, 2*len(old)))
		for _, p := range old {
			if p.cell != nil {
				x.put(p)
			}
		}
	}
	x.put(place{c.hash, c})
	x.n++
}

func (x *index) put(p place) {
	i := x.home(p.hash)
	for x.slots[i].cell != nil {
		i = (i + 1) & (len(x.slots) - 1)
	}
	x.slots[i] = p
}

// remove removes a cell that is in the table. Cells behind it that were displaced from their home
// shift back, so that none is behind a gap.
func (x *index) remove(c *cell) {
	mask := len(x.slots) - 1
	i := x.home(c.hash)
	for x.slots[i].cell != c {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; x.slots[j].cell != nil; j = (j + 1) & mask {
		home := x.home(x.slots[j].hash)
		if (j-home)&mask >= (j-i)&mask { // its home is not between the gap and here
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = place{}
	x.n--
}

// all calls f for every cell.
func (x *index) all(f func(*cell)) {
	for _, p := range x.slots {
		if p.cell != nil {
			f(p.cell)
		}
	}
}
