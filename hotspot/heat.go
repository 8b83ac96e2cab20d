package hotspot

// heat measures how much a value was requested lately: the weight of a unit halves every 8.6
// seconds. It is used only to sort values.
type heat struct {
	amount int64 // in 1/256, so that small amounts don't vanish at once
	tick   int64 // of the clock at the last update
}

const heatTick = 33 // 2^33 ns

func (h heat) at(now int64) int64 {
	return h.amount >> min(63, max(0, now>>heatTick-h.tick))
}

func (h *heat) add(now, units int64) {
	if now>>heatTick == h.tick {
		h.amount += units << 8
		return
	}
	h.turn(now, units)
}

func (h *heat) turn(now, units int64) {
	*h = heat{h.at(now) + units<<8, max(h.tick, now>>heatTick)}
}
