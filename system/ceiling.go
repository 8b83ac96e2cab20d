package system

import (
	"time"

	"github.com/penstock-go/penstock/internal/sampler"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
)

// evidence summarizes the inbound calls of the last minute. By Little's law a throughput times a
// response time is a number of units in flight.
type evidence struct {
	least float64 // units in flight that certainly aren't queued: best throughput times lowest response time
	usual float64 // the same with the best second's mean response time, which fits mixed calls
}

// peakSeconds is the time that a best throughput is remembered. BBR, the congestion control of TCP,
// remembers response times as long.
const peakSeconds = 10

// gather evaluates the whole seconds of the last minute, and the second window, which is newer.
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
		if age >= int64(time.Second) && age < (peakSeconds+1)*int64(time.Second) { // a whole second
			best = max(best, float64(c.Complete))
		}
	}
	return evidence{best * least.Seconds(), best * usual.Seconds()}, known
}

// ceiling is the number of units in flight above which a steady rule refuses. It is learned as the
// machine is sampled; calls only compare.
//
// While the reading is above the threshold, the level sinks from the units that the process usually
// serves at a time towards the number that it certainly can; while the reading is below, the level
// rises. The closer the reading is, the smaller the steps, so that the level settles. A rule that
// limits keeps limiting even after the reading has fallen, because its own limit made the reading
// fall: a gate that opened then would admit everything it kept out, and so oscillate forever. The
// rule stops when it has refused no call for a while.
type ceiling struct {
	units   shared.Int64 // none while the rule doesn't limit
	refused shared.Bool  // since the last sample

	level float64 // the sampler's
	quiet int     // samples since the last refusal; used by the sampler only
}

const (
	none = -1
	// quietSamples is the number of samples without a refusal that end the limiting.
	quietSamples = int(time.Second / sampler.Period)
	// The level changes per sample by this share of the reading's relative error. A CPU reading
	// follows within two or three samples; the gain is a quarter of one that would oscillate. The
	// load average lags by a minute, and its correction must be slower than that.
	gainOfCPU  = 0.2
	gainOfLoad = 0.002
	// Larger errors of a reading are cut to this.
	farthest = 1.0
)

func newCeiling() *ceiling {
	c := new(ceiling)
	c.units.Store(none)
	return c
}

// admits reports whether a call is admitted with that many units in flight.
func (c *ceiling) admits(inFlight func() int64) bool {
	most := c.units.Load()
	if most == none || inFlight() <= most {
		return true
	}
	c.refuse()
	return false
}

// refuse records that a call was refused.
func (c *ceiling) refuse() {
	if !c.refused.Load() {
		c.refused.Store(true)
	}
}

// learn adjusts the ceiling to a sample. off is the reading's relative error: positive above the
// threshold, negative below. Only one goroutine learns at a time.
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

// inherit continues from the ceiling of the rule's predecessor.
func (c *ceiling) inherit(old *ceiling) {
	c.level, c.quiet = old.level, old.quiet
	c.units.Store(old.units.Load())
}
