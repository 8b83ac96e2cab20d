package cluster

import (
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// memoryWindow is the window of a [store.Take] in a [Memory]. The ring has a slot for each bucket
// that counts and each that can be borrowed from:
//
//	head-span+1 ... head (the newest that was current) | head+1 ... head+ahead | head+ahead+1; see fold
type memoryWindow struct {
	ring   store.Ring
	span   int64
	ahead  int64
	counts []int64
	head   int64
	last   int64 // no later bucket holds units; at least head
	epoch  int64

	members, before    int64 // members that took in head, and in the bucket before
	short, shortBefore int64 // members that got less than they wanted there
	seen               map[int64]sighting
}

// sighting is the latest command of a member, and head at that time.
type sighting struct{ seq, head int64 }

func (w *memoryWindow) do(c store.Command, clock int64) (keep time.Duration, ok bool) {
	t, ok := c.(*store.Take)
	if !ok || w.counts != nil && w.ring != t.Ring {
		return 0, false
	}
	w.roll(t, clock)
	w.settle(t)
	t.Reply = store.TakeReply{
		Bucket: w.head, Current: w.head, Left: time.Duration(w.ring.Begins(w.head+1) - clock),
		Now: clock, Epoch: w.epoch,
	}
	w.grant(t, clock)
	t.Reply.Active = w.active()
	t.Reply.Free = w.free(t.Limit, clock)
	return w.life(), true
}

func (w *memoryWindow) life() time.Duration {
	return time.Duration(w.last-w.head+int64(w.ring.Shape.Buckets)+3) * w.ring.Shape.Width()
}

// roll advances the ring to the clock. If the clock was set back a little, head stays until the
// clock has caught up.
func (w *memoryWindow) roll(t *store.Take, clock int64) {
	to := t.Bucket(clock)
	switch {
	case w.counts == nil:
		*w = memoryWindow{ring: t.Ring, span: t.Span(), ahead: int64(t.Shape.Buckets), seen: map[int64]sighting{}}
		w.counts = make([]int64, w.span+w.ahead+1)
		w.head, w.last, w.epoch = to, to, t.NewEpoch
	case to <= w.head-w.span:
		w.fold(to, t.NextEpoch(w.epoch))
	case to > w.head:
		w.advance(to)
	}
}

// fold moves all units to a bucket, under a new epoch, since returned units name buckets that no
// longer exist. Units of head and of later buckets count twice: members that haven't noticed spend
// them until their buckets end by the old clock, at most a bucket later by the new one.
func (w *memoryWindow) fold(to, epoch int64) {
	var total, unspent, far int64
	for _, n := range w.counts {
		total = min(total+n, store.MostNumber)
	}
	for b := w.head; b <= w.last; b++ {
		if n := *w.at(b); n > 0 {
			unspent = min(unspent+n, store.MostNumber)
			far = min(b-w.head+1, reach(w.ring))
		}
	}
	clear(w.counts)
	for member, s := range w.seen {
		w.seen[member] = sighting{s.seq, to}
	}
	w.head, w.last, w.epoch = to, to, epoch
	w.members, w.before, w.short, w.shortBefore = 0, 0, 0, 0
	*w.at(to) = total
	if unspent > 0 {
		w.put(to+far, unspent)
	}
}

// reach returns how far ahead units are counted at most: one bucket beyond any that can be borrowed
// from, but near enough that every window up to there holds some of them.
func reach(r store.Ring) int64 { return min(int64(r.Shape.Buckets)+1, 2*r.Span()-1) }

// advance opens buckets, and drops the oldest.
func (w *memoryWindow) advance(to int64) {
	if to-w.head >= int64(len(w.counts)) {
		clear(w.counts)
	} else {
		for b := w.head + 1; b <= to; b++ {
			*w.at(b - w.span) = 0 // its slot becomes the farthest bucket ahead
		}
	}
	w.before, w.shortBefore = 0, 0
	if to == w.head+1 {
		w.before, w.shortBefore = w.members, w.short
	}
	w.members, w.short = 0, 0
	w.head = to
	w.last = max(w.last, to)
	for member, s := range w.seen {
		if to-s.head > w.span+w.ahead {
			delete(w.seen, member)
		}
	}
}

// settle counts the member, and applies the command's returned units and charges.
func (w *memoryWindow) settle(t *store.Take) {
	if t.Need|t.Want != 0 && t.Seen != w.head {
		w.members++
	}
	fresh := t.Seq > w.seen[t.Member].seq
	if fresh {
		w.seen[t.Member] = sighting{t.Seq, w.head}
	}
	if !fresh || t.Epoch != w.epoch {
		return
	}
	for _, back := range t.Backs {
		if w.keeps(back.Bucket) {
			held := w.at(back.Bucket)
			*held -= min(back.Units, *held)
		}
	}
	for _, charge := range t.Charges {
		if b := min(charge.Bucket, w.head); w.keeps(b) {
			*w.at(b) += charge.Units
		}
	}
}

// grant decides how many units the command gets.
func (w *memoryWindow) grant(t *store.Take, now int64) {
	r := &t.Reply
	if t.Ahead > w.head {
		r.Bucket = min(t.Ahead, w.head+w.ahead)
	}
	r.Room = w.room(r.Bucket, t.Limit)
	if t.Epoch != 0 && t.Epoch != w.epoch || t.Need|t.Want == 0 {
		return
	}
	switch {
	case t.Need <= r.Room:
		r.Granted = max(t.Need, min(t.Want, r.Room/w.sharers(r.Bucket)))
		r.Room -= r.Granted
		if r.Granted > 0 && r.Granted < t.Want && t.Shortfall != w.head {
			w.short++
		}
		w.put(r.Bucket, r.Granted)
	case t.Borrow > 0:
		w.borrow(t, now)
	}
}

// borrow grants the need in the first upcoming bucket that has room for it.
func (w *memoryWindow) borrow(t *store.Take, now int64) {
	for b := w.head + 1; b <= w.head+w.ahead && w.ring.Begins(b) < now+int64(t.Borrow); b++ {
		if room := w.room(b, t.Limit); t.Need <= room {
			t.Reply.Bucket, t.Reply.Granted, t.Reply.Room = b, t.Need, room-t.Need
			w.put(b, t.Need)
			return
		}
	}
}

// room returns the number of units that fit a bucket, in every window that contains it. Windows
// that end after the last bucket with units hold less than earlier ones.
func (w *memoryWindow) room(bucket, limit int64) int64 {
	sum := w.sum(bucket)
	most := sum
	for end := bucket + 1; end < bucket+w.span && end <= w.last; end++ {
		sum += *w.at(end) - *w.at(end - w.span)
		most = max(most, sum)
	}
	return max(0, limit-most)
}

// sum returns the units in the window that ends with a bucket.
func (w *memoryWindow) sum(end int64) (sum int64) {
	for b := max(end-w.span, w.head-w.span) + 1; b <= min(end, w.last); b++ {
		sum += *w.at(b)
	}
	return sum
}

// free returns the time until a unit fits: until the last full window ends.
func (w *memoryWindow) free(limit, now int64) time.Duration {
	if limit <= 0 || w.room(w.head, limit) > 0 {
		return 0
	}
	full := w.head
	sum := w.sum(full)
	for end := w.head + 1; end <= w.last || sum >= limit; end++ {
		if end <= w.last {
			sum += *w.at(end)
		}
		if out := end - w.span; out <= w.last {
			sum -= *w.at(out)
		}
		if sum >= limit {
			full = end
		}
	}
	return time.Duration(w.ring.Begins(full+1) - now)
}

func (w *memoryWindow) active() int64 { return max(1, w.members, w.before) }

// sharers returns the number of members that share the room of a bucket.
func (w *memoryWindow) sharers(bucket int64) int64 {
	if w.shortBefore > 0 && bucket == w.head {
		return min(w.active(), max(w.shortBefore, w.short)+1)
	}
	return w.active()
}

func (w *memoryWindow) keeps(bucket int64) bool {
	return bucket > w.head-w.span && bucket <= w.head+w.ahead
}

func (w *memoryWindow) put(bucket, n int64) {
	*w.at(bucket) += n
	w.last = max(w.last, bucket)
}

func (w *memoryWindow) at(bucket int64) *int64 {
	size := int64(len(w.counts))
	return &w.counts[((bucket%size)+size)%size]
}
