package sharing

import (
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// lot is units granted in one bucket, and when, by the member's clock, they may be spent.
type lot struct {
	number       uint32 // from 1 on; 0 is none
	bucket       int64
	epoch        int64
	starts, ends int64
	granted      int64
	measured     int64 // units of the lot that the demand has counted as spent
	borrowed     bool  // for calls that wait for it, not for the lease
	closed       bool  // what was unspent has gone back
}

// lots are the latest lots, kept so that a unit is given back to the lot it was taken from.
type lots struct {
	ring []lot
	last uint32
}

// newLots has room for the lots of some buckets in a row, each of which may have been borrowed from.
func newLots(buckets int) lots { return lots{ring: make([]lot, max(16, buckets+6))} }

// find returns the lot of a number, nil if it is forgotten.
func (l *lots) find(number uint32) *lot {
	if at := &l.ring[number%uint32(len(l.ring))]; number != 0 && at.number == number {
		return at
	}
	return nil
}

// like returns the lot of the same bucket and epoch as another one, borrowed like it, that is neither over
// nor closed; nil if there is none.
func (l *lots) like(x lot, now int64) *lot {
	for i := range l.ring {
		at := &l.ring[i]
		same := at.bucket == x.bucket && at.epoch == x.epoch && at.borrowed == x.borrowed
		if at.number != 0 && same && !at.closed && at.ends > now {
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

// add makes a lot, and forgets the oldest one but for the lease and the next.
func (l *lots) add(x lot, cur, next uint32) *lot {
	for {
		if l.last++; l.last == 0 {
			l.last++
		}
		x.number = l.last
		at := &l.ring[x.number%uint32(len(l.ring))]
		if at.number == 0 || at.number != cur && at.number != next {
			*at = x
			return at
		}
	}
}

// newLot is the lot that a reply grants, if it is good for any time at all; width is that of a bucket, and
// lag how stale the member's clock may be.
//
// The store read its clock between sent and received. So the time it says is left of a bucket,
// counted from sent, is over no later than the bucket itself, and by the time that a coming bucket
// has begun as counted from received, it has begun. Clocks run at rates that differ by a thousandth
// at most.
func newLot(r *store.TakeReply, width time.Duration, sent, received, lag int64) lot {
	l := lot{bucket: r.Bucket, epoch: r.Epoch, starts: received, granted: r.Granted}
	left := r.Left
	if ahead := r.Bucket - r.Current; ahead > 0 {
		l.starts += longer(left+time.Duration(ahead-1)*width) + lag
		left += time.Duration(ahead) * width
		l.ends = min(sent+shorter(left), l.starts+longest)
	} else {
		l.ends = sent + shorter(min(left, time.Duration(longest)))
	}
	l.ends -= lag
	return l
}

// edge is the bucket that is current, by the last reply or as a lease of it has begun, and when it ends: at
// the earliest and at the latest, by the member's clock.
type edge struct {
	bucket    int64
	low, high int64
}

// newEdge is the edge that a reply tells.
func newEdge(r *store.TakeReply, sent, received, lag int64) edge {
	return edge{r.Current, sent + shorter(r.Left) - lag, received + longer(r.Left) + lag}
}

// at is the edge once a coming bucket is current.
func (e edge) at(bucket int64, width time.Duration) edge {
	ahead := time.Duration(bucket-e.bucket) * width
	return edge{bucket, e.low + shorter(ahead), e.high + longer(ahead)}
}

// longest is the longest that a lease is good.
const longest = int64(time.Second)

func shorter(d time.Duration) int64 { return int64(d) - int64(d)/drift }
func longer(d time.Duration) int64  { return int64(d) + int64(d)/drift }
