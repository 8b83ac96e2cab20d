package windows

import (
	"sync"
	"time"
)

// Log keeps the time of every call that it admitted in the interval. A call fits if the call
// admitted limit calls ago has left the interval.
type Log struct {
	mu       sync.Mutex // guards the fields below it
	limit    int
	interval int64
	newest   int64
	next     int     // position of the oldest once times is full
	times    []int64 // grows to limit, then is a ring
}

// NewLog returns an empty log.
func NewLog(limit int64, interval time.Duration) *Log {
	return &Log{limit: int(limit), interval: int64(interval)}
}

// Allow counts a call at now if there is room for it.
func (l *Log) Allow(now int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = max(now, l.newest) // callers may be late
	if len(l.times) < l.limit {
		l.times = append(l.times, now)
		l.newest = now
		return true
	}
	if l.limit == 0 || now-l.times[l.next] < l.interval {
		return false
	}
	l.times[l.next] = now
	l.newest = now
	if l.next++; l.next == l.limit {
		l.next = 0
	}
	return true
}
