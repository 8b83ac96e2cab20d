package stat

import "time"

// Counts is what happened in some span of time. The zero value is nothing.
type Counts struct {
	Pass      int64         // units admitted
	Block     int64         // units refused
	Exception int64         // units completed with an error
	Complete  int64         // units completed, with an error or without
	Occupied  int64         // units among Pass that were borrowed from a coming bucket
	Entered   int64         // calls admitted
	Exited    int64         // calls completed
	LongLived int64         // calls among Exited that have no response time
	RT        time.Duration // response times of the other calls completed, added up

	// minRT is the smallest response time plus one, so that zero means that
	// nothing completed that has one.
	minRT int64
}

// Total returns the units admitted and refused: Pass and Block.
func (c *Counts) Total() int64 { return c.Pass + c.Block }

// Timed returns the number of completed calls that have a response time.
func (c *Counts) Timed() int64 { return c.Exited - c.LongLived }

// AvgRT is the mean response time of a completed call, 0 if none completed that has one.
func (c *Counts) AvgRT() time.Duration {
	if c.Timed() <= 0 {
		return 0
	}
	return c.RT / time.Duration(c.Timed())
}

// MinRT returns the smallest response time; false if no completed call has one.
func (c *Counts) MinRT() (time.Duration, bool) {
	return time.Duration(c.minRT - 1), c.minRT > 0
}

// empty reports whether nothing was counted.
func (c *Counts) empty() bool { return *c == Counts{} }

// Add adds what d counted.
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

// Rates are [Counts] per second of a window.
type Rates struct {
	Pass, Block, Exception, Complete, Occupied float64
}

// Per divides the counts by the length of the window they were counted in.
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
