package sketch

import (
	"maps"
	"math/bits"
	"slices"
)

// Histogram counts values from 0. Values below 2048 are exact, larger ones within 0.1 %, and the
// maximum is exact. The zero value is ready for use.
type Histogram struct {
	buckets map[int64]bucket // by their least value
	n, max  int64
}

type bucket struct{ n, sum int64 }

// precise is the number of bits of a value that its bucket keeps. A histogram of any values has at
// most 2048 + 53 * 1024 buckets.
const precise = 11

// Add counts n values v.
func (h *Histogram) Add(v, n int64) {
	if n <= 0 {
		return
	}
	v = max(v, 0)
	least := v
	if drop := bits.Len64(uint64(v)) - precise; drop > 0 {
		least = v >> drop << drop
	}
	if h.buckets == nil {
		h.buckets = make(map[int64]bucket)
	}
	b := h.buckets[least]
	h.buckets[least] = bucket{b.n + n, b.sum + v*n}
	h.n += n
	h.max = max(h.max, v)
}

// Count returns the number of values.
func (h *Histogram) Count() int64 { return h.n }

// Max returns the largest value, or 0.
func (h *Histogram) Max() int64 { return h.max }

// Quantile returns the least value that a share q of all values doesn't exceed, or 0 if there are no
// values.
func (h *Histogram) Quantile(q float64) int64 {
	rank := int64(q * float64(h.n)) // of the value, from 0
	seen := int64(0)
	for _, least := range slices.Sorted(maps.Keys(h.buckets)) {
		b := h.buckets[least]
		if seen += b.n; seen > rank {
			return b.sum / b.n
		}
	}
	return h.max
}

// Beyond returns the sum of the parts of values that exceed a limit.
func (h *Histogram) Beyond(limit int64) (sum int64) {
	for _, b := range h.buckets {
		sum += max(0, b.sum-b.n*limit)
	}
	return sum
}

// Limit returns the least limit from 1 that the values exceed by at most that much together.
func (h *Histogram) Limit(beyond int64) int64 {
	low, high := int64(1), max(h.max, 1)
	for low < high {
		if mid := low + (high-low)/2; h.Beyond(mid) <= beyond {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}
