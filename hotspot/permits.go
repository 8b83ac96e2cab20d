package hotspot

import "github.com/penstock-go/penstock/internal/engine"

// inFlightLocked returns an upper bound of the units that a cell's value has in flight: the cell's
// units, plus the units that values without a cell had in flight when the cell was created, until
// all of those have ended. Some of them may be this value's.
func (c *cell) inFlightLocked() int64 {
	if c.era != 0 && c.era == c.shard.era {
		return c.held + c.shard.rest.held
	}
	return c.held
}

// permitUnits are units in flight.
type permitUnits cell

// GiveBack returns the units: they are no longer in flight.
func (u *permitUnits) GiveBack(r *engine.Reservation, _ int64) {
	u.shard.mu.Lock()
	defer u.shard.mu.Unlock()
	(*cell)(u).releaseLocked(r.Units)
}

func (c *cell) releaseLocked(n int64) {
	if c.held -= n; c.held == 0 && c.isRest() {
		c.shard.era++
	}
}
