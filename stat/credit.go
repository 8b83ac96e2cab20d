package stat

import "github.com/penstock-go/penstock/internal/lending"

// credits are units that an exact counter has lent to lanes, see [lending.Credit].
type credits struct {
	cells []credit // a power of two of them
}

// credit fills two cache lines: processors fetch lines in pairs.
type credit struct {
	word lending.Credit
	_    [120]byte
}

const (
	creditUnits  = lending.CreditUnits
	creditChange = lending.CreditChange
)

func newCredits() *credits {
	return &credits{make([]credit, lending.Lanes(lending.Procs()))}
}

func (c *credits) of(lane uint32) *credit {
	cells := c.cells
	return &cells[int(lane)&(len(cells)-1)]
}

func (c *credit) spend(word uint64, n int64) bool { return c.word.Spend(word, n) }

func (c *credit) add(n int64) { c.word.Lend(n) }

// part is how many units a counter with so much room lends to one lane.
func (c *credits) part(room int64) int64 { return lending.Units(room, len(c.cells)) }

// collect takes from all lanes what they have not spent, and returns how much that was.
func (c *credits) collect() (units int64) {
	for i := range c.cells {
		units += c.cells[i].word.Collect()
	}
	return units
}
