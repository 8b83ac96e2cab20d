package stat

import (
	"github.com/penstock-go/penstock/internal/lending"
	"github.com/penstock-go/penstock/internal/shared"
)

// credits are units that an exact counter has lent to lanes: it has counted them already, and a call
// that spends some writes to nothing but the cell of its lane. Far from the limit that is nearly
// all calls, so processors don't contend for the counter's word. The idea is McKenney's
// (exact limit counters: "Is Parallel Programming Hard", 5.4).
//
// The counter's owner guards what is lent by a mutex: units come and are collected under
// it, and spent without. Each change of a cell changes its version. So a call that loads a
// cell, then looks around, and then exchanges the word it loaded for another, knows that the
// units it spends were lent all that time. A version comes back after 2^32 changes: a call
// would have to be held up for that many, and find the same units then.
type credits struct {
	cells []credit // a power of two of them
}

// credit fills two cache lines: processors fetch lines in pairs.
type credit struct {
	word shared.Uint64 // version(32) | units(32)
	_    [120]byte
}

const (
	creditBits   = 32
	creditUnits  = 1<<creditBits - 1
	creditChange = 1 << creditBits
)

func newCredits() *credits {
	return &credits{make([]credit, lanesOf(lending.Procs()))}
}

func (c *credits) of(lane uint32) *credit { return &c.cells[lane&uint32(len(c.cells)-1)] }

// part is how many units a counter with so much room lends to one lane.
func (c *credits) part(room int64) int64 { return lending.Units(room, len(c.cells)) }

// spend takes n units if the cell still has the word that was loaded from it, which has so many.
func (c *credit) spend(word uint64, n int64) bool {
	return c.word.CompareAndSwap(word, word+creditChange-uint64(n))
}

// add lends n units more to the lane, or takes back units that were spent there.
func (c *credit) add(n int64) {
	for {
		if word := c.word.Load(); c.word.CompareAndSwap(word, word+creditChange+uint64(n)) {
			return
		}
	}
}

// collect takes from all lanes what they have not spent, and returns how much that was.
func (c *credits) collect() (units int64) {
	for i := range c.cells {
		for {
			word := c.cells[i].word.Load()
			if word&creditUnits == 0 { // it stays so until the owner lends again
				break
			}
			if c.cells[i].word.CompareAndSwap(word, (word|creditUnits)+1) {
				units += int64(word & creditUnits)
				break
			}
		}
	}
	return units
}
