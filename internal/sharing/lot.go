package sharing

import (
	"sort"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// lot is the units of one grant in one bucket, and when they may be spent, by the member's clock.
type lot struct {
	number       uint32 // from 1; 0 is none
	bucket       int64
	epoch        int64
	starts, ends int64
	granted      int64
	measured     int64 // spent units that the demand has counted
	owned        bool  // for a waiting call, not for the lease
	closed       bool  // its unspent units have gone back
}

// lots keeps the latest lots, so that a unit returns to the lot it was taken from. It knows longer
// in which bucket the units of a lot are counted: as long as that counts.
type lots struct {
	ring    []lot
	last    uint32
	origins []origin // in the order of first
}

// origin is the bucket that the units of some lots are counted in, and its epoch. It holds for the
// lots from number first to that of the next origin.
type origin struct {
	first         uint32
	bucket, epoch int64
}

// newLots returns room for the lots of several consecutive buckets, each possibly borrowed from.
func newLots(buckets int) lots { return lots{ring: make([]lot, max(16, buckets+6))} }

// find returns the lot with a number, nil if it is forgotten.
func (l *lots) find(number uint32) *lot {
	if at := &l.ring[number%uint32(len(l.ring))]; number != 0 && at.number == number {
		return at
	}
	return nil
}

// like returns a lot with the same bucket, epoch and owned flag as x that is neither over nor closed,
// and has room for x in a lease; nil if there is none.
func (l *lots) like(x lot, now int64) *lot {
	for i := range l.ring {
		at := &l.ring[i]
		same := at.bucket == x.bucket && at.epoch == x.epoch && at.owned == x.owned
		if at.number != 0 && same && !at.closed && at.ends > now && (x.owned || at.granted <= mostUnits-x.granted) {
			return at
		}
	}
	return nil
}

// end makes every lot unspendable from now on.
func (l *lots) end(now int64) {
	for i := range l.ring {
		l.ring[i].ends = min(l.ring[i].ends, now)
	}
}

// add stores a lot in place of the oldest one other than cur and next.
func (l *lots) add(x lot, cur, next uint32) *lot {
	for {
		if l.last++; l.last == 0 {
			l.last++
		}
		x.number = l.last
		at := &l.ring[x.number%uint32(len(l.ring))]
		if at.number == 0 || at.number != cur && at.number != next {
			*at = x
			l.place(x)
			return at
		}
	}
}

// place records where the units of a new lot are counted.
func (l *lots) place(x lot) {
	if n := len(l.origins); n == 0 || l.origins[n-1].bucket != x.bucket || l.origins[n-1].epoch != x.epoch {
		l.origins = append(l.origins, origin{x.number, x.bucket, x.epoch})
	}
}

// origin returns where the units of a lot are counted, or false if they no longer count.
func (l *lots) origin(number uint32) (o origin, ok bool) {
	if len(l.origins) == 0 {
		return o, false
	}
	oldest := l.origins[0].first
	since := number - oldest // numbers wrap around
	if since > l.last-oldest {
		return o, false
	}
	after := sort.Search(len(l.origins), func(i int) bool { return l.origins[i].first-oldest > since })
	return l.origins[after-1], true
}

// forget drops the oldest origins: those of buckets up to last, and of epochs other than epoch.
func (l *lots) forget(last, epoch int64) {
	n := 0
	for n < len(l.origins) && (l.origins[n].bucket <= last || l.origins[n].epoch != epoch) {
		n++
	}
	l.origins = append(l.origins[:0], l.origins[n:]...)
}

// newLot returns the lot that a reply grants, if it can be spent at all; width is the length of a
// bucket, lag the staleness of the member's clock.
//
// The store read its clock between sent and received. So the remaining time of a bucket, counted
// from sent, ends no later than the bucket does; and a coming bucket, counted from received, has
// begun once that time has passed. Clock rates differ by a thousandth at most.
func newLot(r *store.TakeReply, width time.Duration, sent, received, lag int64) lot {
	l := lot{bucket: r.Bucket, epoch: r.Epoch, starts: received, granted: r.Granted}
	left := r.Left
	if ahead := r.Bucket - r.Current; ahead > 0 {
		l.starts += atMost(left+time.Duration(ahead-1)*width) + lag
		left += time.Duration(ahead) * width
		l.ends = min(sent+atLeast(left), l.starts+longest)
	} else {
		l.ends = sent + atLeast(min(left, time.Duration(longest)))
	}
	l.ends -= lag
	return l
}

// edge is the current bucket, by the latest reply or the latest lease begun, and the earliest and
// latest time at which it ends, by the member's clock.
type edge struct {
	bucket    int64
	low, high int64
}

// newEdge returns the edge that a reply reports.
func newEdge(r *store.TakeReply, sent, received, lag int64) edge {
	return edge{r.Current, sent + atLeast(r.Left) - lag, received + atMost(r.Left) + lag}
}

// at returns the edge once a coming bucket is current.
func (e edge) at(bucket int64, width time.Duration) edge {
	ahead := time.Duration(bucket-e.bucket) * width
	return edge{bucket, e.low + atLeast(ahead), e.high + atMost(ahead)}
}

// longest is the maximum life of a lease.
const longest = int64(time.Second)

// atLeast and atMost bound a time that the store's clock measures, by the member's clock.
func atLeast(d time.Duration) int64 { return int64(d) - int64(d)/drift }
func atMost(d time.Duration) int64  { return int64(d) + int64(d)/drift }
