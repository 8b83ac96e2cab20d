package windows

import (
	"sync"
	"time"
)

// Tokens is a token bucket. It fills at an even rate, up to the burst, and each call takes a token.
type Tokens struct {
	mu    sync.Mutex // guards the fields below it
	cost  int64      // of a call: the time in which a token is added
	most  int64
	level int64 // in the same unit
	last  int64
}

// NewTokens returns a full bucket.
func NewTokens(limit int64, interval time.Duration, burst int64) *Tokens {
	cost := int64(interval) / limit
	return &Tokens{cost: cost, most: burst * cost, level: burst * cost}
}

// Allow takes a token if there is one.
func (t *Tokens) Allow(now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.level = min(t.most, t.level+max(0, now-t.last))
	t.last = now // even if the clock was set back
	if t.level < t.cost {
		return false
	}
	t.level -= t.cost
	return true
}
