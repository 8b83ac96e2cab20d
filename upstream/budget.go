package upstream

import "github.com/penstock-go/penstock/internal/shared"

// budget is a semaphore for the retries of a resource, whose limit is a share of its calls in flight.
//
// Both counts are in one word: the calls in flight, retries included, in the upper half, the retries
// among them in the lower one. A retry is admitted by a compare-and-swap of the word, which fails if
// either count has changed. So at the instant at which a retry is admitted, the retries in flight are
// within the limit that the calls in flight at that instant give. The limit falls when other calls
// exit; then no retry is admitted until enough have ended.
type budget struct{ word shared.Uint64 }

const (
	oneCall  = 1 << 32
	oneRetry = oneCall + 1
)

// limit returns the retries that may be in flight among that many calls.
func (r Retries) limit(calls int64) int64 { return max(int64(r.Least), int64(r.Share*float64(calls))) }

// fits reports whether a retry would be admitted as of now.
func (b *budget) fits(r Retries) bool {
	calls, retries := b.inFlight()
	return retries < r.limit(calls+1)
}

// take counts a call, which may be refused if it is a retry. It returns the units to release.
func (b *budget) take(r Retries, retry bool) (held int64, ok bool) {
	if !retry {
		b.word.Add(oneCall)
		return oneCall, true
	}
	for {
		w := b.word.Load()
		calls, retries := split(w)
		if retries >= r.limit(calls+1) {
			return 0, false
		}
		if b.word.CompareAndSwap(w, w+oneRetry) {
			return oneRetry, true
		}
	}
}

// release ends a call that holds these units.
func (b *budget) release(held int64) { b.word.Add(-uint64(held)) }

func (b *budget) inFlight() (calls, retries int64) { return split(b.word.Load()) }

func split(w uint64) (calls, retries int64) { return int64(w >> 32), int64(uint32(w)) }
