package hotspot

import "github.com/penstock-go/penstock/internal/engine"

// inFlightLocked returns an upper bound of the units that a cell's value has in flight: its own,
// plus those of all values without a cell when it got one, as long as any of them still are. Some
// of these may be its own.
func (c *cell) inFlightLocked() int64 {
	if c.era != 0 && c.era == c.shard.era {
		return c.held + c.shard.rest.held
	}
	return c.held
}

// permitUnits are units in flight.
type permitUnits cell

// GiveBack ends the units' flight.
func (u *permitUnits) GiveBack(r *engine.Reservation, _ int64) {
	u.shard.mu.Lock()
	defer u.shard.mu.Unlock()
	if u.held -= r.Units; u.held == 0 && (*cell)(u) == &u.shard.rest {
		u.shard.era++
	}
}
