package lending

// Credits are the credits of the lanes of one counter.
type Credits struct {
	Cells []Cell // a power of two of them
}

// Cell is the credit of one lane. It fills two cache lines: processors fetch lines in pairs.
type Cell struct {
	Credit
	_ [120]byte
}

// NewCredits returns as many cells as [Procs] processors have lanes, with nothing in them.
func NewCredits() *Credits {
	return &Credits{make([]Cell, Lanes(Procs()))}
}

// Of returns the cell of a lane.
func (c *Credits) Of(lane uint32) *Cell {
	cells := c.Cells
	return &cells[int(lane)&(len(cells)-1)]
}

// Part is how many units a counter with so much room lends to one of the lanes; see [Units].
func (c *Credits) Part(room int64) int64 { return Units(room, len(c.Cells)) }

// Held is how many units the lanes have not spent. While they spend it is what they had lately.
func (c *Credits) Held() (units int64) {
	for i := range c.Cells {
		units += Held(c.Cells[i].Load())
	}
	return units
}

// Collect takes what the lanes have not spent, and returns how much that was.
func (c *Credits) Collect() (units int64) {
	for i := range c.Cells {
		units += c.Cells[i].Collect()
	}
	return units
}
