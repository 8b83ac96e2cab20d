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

// of returns the lot of a bucket that is neither over nor closed, nil if there is none.
func (l *lots) of(bucket, epoch, now int64, borrowed bool) *lot {
	for i := range l.ring {
		if at := &l.ring[i]; at.number != 0 && at.bucket == bucket && at.epoch == epoch && at.borrowed == borrowed && !at.closed && at.ends > now {
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

// lotOf is the lot that a reply grants, if it is good for any time at all.
//
// The store read its clock between sent and received. So the time it says is left of a bucket,
// counted from sent, is over no later than the bucket itself, and by the time that a coming bucket
// has begun as counted from received, it has begun. Clocks run at rates that differ by a thousandth
// at most.
func (w *Window) lotOf(r *store.TakeReply, sent, received int64) lot {
	width := w.ring.Shape.Width()
	l := lot{bucket: r.Bucket, epoch: r.Epoch, starts: received, granted: r.Granted}
	left := r.Left
	if ahead := r.Bucket - r.Current; ahead > 0 {
		l.starts += longer(left+time.Duration(ahead-1)*width) + w.m.lag
		left += time.Duration(ahead) * width
		l.ends = min(sent+shorter(left), l.starts+longest)
	} else {
		l.ends = sent + shorter(min(left, time.Duration(longest)))
	}
	l.ends -= w.m.lag
	return l
}

// longest is the longest that a lease is good.
const longest = int64(time.Second)

func shorter(d time.Duration) int64 { return int64(d) - int64(d)/drift }
func longer(d time.Duration) int64  { return int64(d) + int64(d)/drift }

// account is what the member has admitted, bucket by bucket and in their order, for as long as it
// counts.
type account []admitted

type admitted struct {
	bucket  int64
	at      int64 // when, by the member's clock: the latest of these units
	counted int64 // units that the store has counted
	own     int64 // units that the store has yet to be told of
	told    int64 // units that the command under way reports
	shown   int64 // units of all these that windows of other shapes know of, see Window.succeed
}

func (e admitted) units() int64 { return e.counted + e.own + e.told }

// of returns the entry of a bucket, made if there is none.
func (a *account) of(bucket int64) *admitted {
	i := len(*a)
	for i > 0 && (*a)[i-1].bucket > bucket {
		i--
	}
	if i > 0 && (*a)[i-1].bucket == bucket {
		return &(*a)[i-1]
	}
	*a = append(*a, admitted{})
	copy((*a)[i+1:], (*a)[i:])
	(*a)[i] = admitted{bucket: bucket}
	return &(*a)[i]
}

// join counts what another entry does.
func (e *admitted) join(f admitted) {
	e.at = max(e.at, f.at)
	e.counted += f.counted
	e.own += f.own
	e.told += f.told
	e.shown += f.shown
}

// forget drops the buckets up to last.
func (a *account) forget(last int64) {
	n := 0
	for n < len(*a) && (*a)[n].bucket <= last {
		n++
	}
	*a = append((*a)[:0], (*a)[n:]...)
}

// anew marks everything as yet to be told: the store has forgotten all.
func (a account) anew() {
	for i := range a {
		a[i].own += a[i].counted + a[i].told
		a[i].counted, a[i].told = 0, 0
	}
}

// show notes that windows of other shapes know of all this.
func (a account) show() {
	for i := range a {
		a[i].shown = a[i].units()
	}
}

// owes reports whether there is something to tell of what was admitted since then.
func (a account) owes(since int64) bool {
	for i := range a {
		if a[i].own > 0 && a[i].at > since {
			return true
		}
	}
	return false
}

// tell returns what the store has yet to be told, and notes that it is under way.
func (a account) tell() (charges []store.Units) {
	for i := range a {
		if a[i].own > 0 {
			charges = append(charges, store.Units{Bucket: a[i].bucket, Units: a[i].own})
			a[i].told += a[i].own
			a[i].own = 0
		}
	}
	return charges
}

// heard notes whether the store got it.
func (a account) heard(ok bool) {
	for i := range a {
		if ok {
			a[i].counted += a[i].told
		} else {
			a[i].own += a[i].told
		}
		a[i].told = 0
	}
}
