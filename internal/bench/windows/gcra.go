package windows

import (
	"sync/atomic"
	"time"
)

// GCRA is the leaky bucket as a single word: the time of the next call if all were evenly spaced. A
// call may be early by the burst.
type GCRA struct {
	next  atomic.Int64
	cost  int64 // the time from one call to the next at an even rate
	ahead int64 // how early calls may be
}

// NewGCRA returns a bucket that has leaked dry.
func NewGCRA(limit int64, interval time.Duration, burst int64) *GCRA {
	cost := int64(interval) / limit
	return &GCRA{cost: cost, ahead: burst * cost}
}

// Allow takes the next slot if it is near enough.
func (g *GCRA) Allow(now int64) bool {
	for {
		next := g.next.Load()
		after := max(next, now) + g.cost
		if after-now > g.ahead {
			return false
		}
		if g.next.CompareAndSwap(next, after) {
			return true
		}
	}
}
