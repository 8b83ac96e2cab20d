package stat

import "github.com/penstock-go/penstock/internal/shared"

// Tally is a striped counter for many concurrent writers and few readers: callers on different
// lanes don't contend. The zero value is ready and allocates nothing until the first Add. It is
// safe for concurrent use.
type Tally struct {
	cells shared.Pointer[[tallyCells]tallyCell]
}

const tallyCells = 8 // enough to separate the processors of most machines, 512 bytes

// tallyCell fills a cache line, so that two lanes never share one.
type tallyCell struct {
	n shared.Int64
	_ [56]byte
}

// Add counts n on a lane without touching any other lane.
func (t *Tally) Add(lane uint32, n int64) {
	for {
		// If cells might be nil, indexing it checks for nil by reading the first cell, and so takes
		// the cache line from another lane.
		if cells := t.cells.Load(); cells != nil {
			cells[lane%tallyCells].n.Add(n)
			return
		}
		t.cells.CompareAndSwap(nil, new([tallyCells]tallyCell))
	}
}

// AddBoth adds n to two tallies, in hardly more instructions than one Add.
func AddBoth(t, u *Tally, lane uint32, n int64) {
	i := lane % tallyCells
	if a, b := t.cells.Load(), u.cells.Load(); a != nil && b != nil { // as in Add
		a[i].n.Add(n)
		b[i].n.Add(n)
		return
	}
	t.Add(lane, n)
	u.Add(lane, n)
}

// Load returns the count so far. It never decreases between two loads.
func (t *Tally) Load() int64 {
	cells := t.cells.Load()
	if cells == nil {
		return 0
	}
	var sum int64
	for i := range cells {
		sum += cells[i].n.Load()
	}
	return sum
}
