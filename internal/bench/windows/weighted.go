package windows

import (
	"sync"
	"time"
)

// Weighted has a counter for the current interval and one for the previous one. It counts the
// fraction of the previous one that still overlaps the sliding window, as if its calls had been
// spread evenly.
type Weighted struct {
	mu     sync.Mutex // guards the fields below it
	limit  int64
	width  int64
	head   int64 // number of the current interval
	before int64
	used   int64
}

// NewWeighted returns an empty pair.
func NewWeighted(limit int64, interval time.Duration) *Weighted {
	return &Weighted{limit: limit, width: int64(interval)}
}

// Allow counts a call at now if there is room for it.
func (w *Weighted) Allow(now int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch to := now / w.width; {
	case to == w.head+1:
		w.head, w.before, w.used = to, w.used, 0
	case to > w.head:
		w.head, w.before, w.used = to, 0, 0
	}
	left := w.width - max(0, now-w.head*w.width)
	if w.before*left+(w.used+1)*w.width > w.limit*w.width {
		return false
	}
	w.used++
	return true
}
