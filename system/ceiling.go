package system

import (
	"time"

	"github.com/penstock-go/penstock/internal/sampler"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
)

// evidence is what the inbound calls of the last minute show about the process. By Little's law a
// throughput times a response time is a number of units in flight.
type evidence struct {
	least float64 // units in flight that certainly aren't queued: best throughput times least response time
	usual float64 // the same with the best second's mean response time, which fits calls of several kinds
}

// peakSeconds is how long a best throughput is remembered, as long as BBR, the congestion control
// of TCP, remembers response times.
const peakSeconds = 10

// gather looks at the whole seconds of the last minute, and at the second window, which is newer.
// known is false if no call completed.
func gather(n *node.StatisticNode, now int64, window time.Duration) (e evidence, known bool) {
	recent := n.Second(now)
	best := float64(recent.Complete) / window.Seconds()
	least, known := recent.MinRT()
	usual := recent.AvgRT()
	for _, second := range n.History(now) {
		c, age := &second.Value, now-second.Start
		rt, some := c.MinRT()
		if !some {
			continue
		}
		if !known {
			least, usual, known = rt, c.AvgRT(), true
		}
		least, usual = min(least, rt), min(usual, c.AvgRT())
		if age >= int64(time.Second) && age < (peakSeconds+1)*int64(time.Second) { // a whole one
			best = max(best, float64(c.Complete))
		}
	}
	return evidence{best * least.Seconds(), best * usual.Seconds()}, known
}

// ceiling is the number of units in flight beyond which a steady rule refuses. Its value is learned
// as the machine is sampled; calls only compare.
//
// While the reading is above the threshold, the level sinks from what the process usually serves at
// a time towards what it certainly can, and while the reading is below, the level rises: in steps
// that get smaller the closer the reading is, so that it settles. A rule that limits continues to
// do so although the reading has fallen, for it has fallen because the rule limits: a gate that
// opened then would let in all that it kept out, and so swing forever. The rule stops when it has
// refused no call for a while.
type ceiling struct {
	units   shared.Int64 // none while the rule doesn't limit
	refused shared.Bool  // since the last sample

	level float64 // the sampler's
	quiet int     // samples since a call was refused; used by the sampler only
}

const (
	none = -1
	// quietSamples without a refusal end the limiting.
	quietSamples = int(time.Second / sampler.Period)
	// The level changes in a sample by this share for each share by which the reading
	// is off. A CPU reading follows within two or three samples; a gain of a quarter of what would
	// make it swing allows for that. The load average is a minute late, and what corrects it must
	// be slower than it is.
	gainOfCPU  = 0.2
	gainOfLoad = 0.002
	// No reading counts as further off than this.
	farthest = 1.0
)

func newCeiling() *ceiling {
	c := new(ceiling)
	c.units.Store(none)
	return c
}

// admits reports whether a call may come in while that many units are in flight.
func (c *ceiling) admits(inFlight func() int64) bool {
	most := c.units.Load()
	if most == none || inFlight() <= most {
		return true
	}
	if !c.refused.Load() {
		c.refused.Store(true)
	}
	return false
}

// learn adjusts the ceiling to a sample. off is how far the reading is above the threshold, as a
// share of it, negative if it is below. Only one goroutine learns at a time.
func (c *ceiling) learn(off, gain float64, e evidence, known bool) {
	refused := c.refused.Swap(false)
	if c.units.Load() == none {
		if off <= 0 || !known {
			return
		}
		c.level, c.quiet = max(1, e.usual), 0
		c.units.Store(int64(c.level))
		return
	}
	switch c.quiet++; {
	case refused || off > 0:
		c.quiet = 0
	case c.quiet >= quietSamples:
		c.units.Store(none)
		return
	}
	if refused || off > 0 {
		c.level *= 1 - gain*min(max(off, -farthest), farthest)
	}
	if known {
		c.level = max(c.level, e.least)
	}
	c.level = max(c.level, 1)
	c.units.Store(int64(min(c.level, MaxThreshold)))
}

// inherit continues from the ceiling of the rule before it was changed.
func (c *ceiling) inherit(old *ceiling) {
	c.level, c.quiet = old.level, old.quiet
	c.units.Store(old.units.Load())
}
