package windows

import (
	"sync"
	"time"
)

// Ring divides the interval into buckets. When a new one begins, the oldest is dropped as a whole.
// With one bucket it is the fixed counter.
type Ring struct {
	mu     sync.Mutex // guards the fields below it
	limit  int64
	width  int64 // of a bucket
	head   int64 // number of the newest bucket
	total  int64
	counts []int64
}

// NewRing returns an empty ring.
func NewRing(limit int64, interval time.Duration, buckets int) *Ring {
	return &Ring{limit: limit, width: int64(interval) / int64(buckets), counts: make([]int64, buckets)}
}

// Allow counts a call at now if there is room for it.
func (r *Ring) Allow(now int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := int64(len(r.counts))
	to := now / r.width
	if to-r.head >= size {
		clear(r.counts)
		r.head, r.total = to, 0
	}
	for r.head < to {
		r.head++
		oldest := &r.counts[r.head%size]
		r.total -= *oldest
		*oldest = 0
	}
	if r.total >= r.limit {
		return false
	}
	r.counts[r.head%size]++
	r.total++
	return true
}
