package windows

import (
	"sync"
	"time"
)

// List keeps the non-empty buckets in a linked list. A bucket begins with its first call, not at a
// multiple of its width, and is dropped when the interval has passed since its end: so the limit
// holds in every real interval.
//
// Penstock uses a ring instead. A list decides as fast and admits as much, and is smaller while
// most buckets are empty: 24 bytes for each non-empty bucket, against 16 for every bucket of a
// ring. But each new bucket is an allocation, finding buckets is a search, future buckets, which
// prioritized calls borrow from, must be inserted in order, and bucket boundaries differ between
// windows, so one window can't be filled from another when a rule changes.
type List struct {
	mu     sync.Mutex // guards the fields below it
	limit  int64
	width  int64
	keep   int64 // from the beginning of a bucket until it is dropped
	total  int64
	oldest *bucket
	newest *bucket
}

type bucket struct {
	start, n int64
	next     *bucket
}

// NewList returns an empty list.
func NewList(limit int64, interval time.Duration, buckets int) *List {
	width := int64(interval) / int64(buckets)
	return &List{limit: limit, width: width, keep: int64(interval) + width}
}

// Allow counts a call at now if there is room for it.
func (l *List) Allow(now int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.oldest != nil && now-l.oldest.start >= l.keep {
		l.total -= l.oldest.n
		l.oldest = l.oldest.next
	}
	if l.total >= l.limit {
		return false
	}
	switch {
	case l.oldest == nil:
		l.oldest = &bucket{start: now}
		l.newest = l.oldest
	case now-l.newest.start >= l.width:
		l.newest.next = &bucket{start: now}
		l.newest = l.newest.next
	}
	l.newest.n++
	l.total++
	return true
}
