package stat

import "time"

// Counts are the events of a span of time. The zero value counts nothing.
type Counts struct {
	Pass      int64         // units admitted
	Block     int64         // units rejected
	Exception int64         // units completed with an error
	Complete  int64         // units completed, with or without an error
	Occupied  int64         // units among Pass that were borrowed from a later bucket
	Entered   int64         // calls admitted
	Exited    int64         // calls completed
	LongLived int64         // calls among Exited that have no response time
	RT        time.Duration // sum of the response times of the other completed calls

	// minRT is the smallest response time plus one; 0 if no completed call has a response time.
	minRT int64
}

// Total returns the units admitted and rejected: Pass and Block.
func (c *Counts) Total() int64 { return c.Pass + c.Block }

// Timed returns the number of completed calls that have a response time.
func (c *Counts) Timed() int64 { return c.Exited - c.LongLived }

// AvgRT returns the mean response time of the completed calls, or 0 if none has a response time.
func (c *Counts) AvgRT() time.Duration {
	if c.Timed() <= 0 {
		return 0
	}
	return c.RT / time.Duration(c.Timed())
}

// MinRT returns the minimum response time, or false if no completed call has one.
func (c *Counts) MinRT() (time.Duration, bool) {
	return time.Duration(c.minRT - 1), c.minRT > 0
}

// empty reports whether nothing was counted.
func (c *Counts) empty() bool { return *c == Counts{} }

// Add adds the counts of d.
func (c *Counts) Add(d *Counts) {
	c.Pass += d.Pass
	c.Block += d.Block
	c.Exception += d.Exception
	c.Complete += d.Complete
	c.Occupied += d.Occupied
	c.Entered += d.Entered
	c.Exited += d.Exited
	c.LongLived += d.LongLived
	c.RT += d.RT
	if d.minRT > 0 && (c.minRT == 0 || d.minRT < c.minRT) {
		c.minRT = d.minRT
	}
}

// Rates are [Counts] per second.
type Rates struct {
	Pass, Block, Exception, Complete, Occupied float64
}

// Per divides the counts by window, the length of time over which they were counted.
func (c *Counts) Per(window time.Duration) Rates {
	s := window.Seconds()
	return Rates{
		Pass:      float64(c.Pass) / s,
		Block:     float64(c.Block) / s,
		Exception: float64(c.Exception) / s,
		Complete:  float64(c.Complete) / s,
		Occupied:  float64(c.Occupied) / s,
	}
}
