package lending

// Credits are the credits of the lanes of one counter.
type Credits struct {
	Cells []Cell // a power of two
}

// Cell is the credit of one lane. It fills two cache lines: processors fetch lines in pairs.
type Cell struct {
	Credit
	_ [120]byte
}

// NewCredits returns empty cells for the lanes of [Procs] processors.
func NewCredits() *Credits {
	return &Credits{make([]Cell, Lanes(Procs()))}
}

// Of returns the cell of a lane.
func (c *Credits) Of(lane uint32) *Cell {
	cells := c.Cells
	return &cells[int(lane)&(len(cells)-1)]
}

// Part returns the number of units that a counter with that much room lends to one of the lanes; see
// [Units].
func (c *Credits) Part(room int64) int64 { return Units(room, len(c.Cells)) }

// Held returns the units that the lanes have not spent. While lanes spend, the result may be
// slightly old.
func (c *Credits) Held() (units int64) {
	for i := range c.Cells {
		units += Held(c.Cells[i].Load())
	}
	return units
}

// Collect takes and returns the units that the lanes have not spent.
func (c *Credits) Collect() (units int64) {
	for i := range c.Cells {
		units += c.Cells[i].Collect()
	}
	return units
}
