package meter

import "time"

// shareTurns holds the calls that wait for turns of a [Pacer] in shares, under the lock of the Pacer.
//
// # Which call is next
//
// Turns are divided as units of a semaphore are (see [Share]), but fairness is measured in the cost of
// turns, per weight, which is known: the next turn is that of the share with the least cost so far,
// as of the time at which it is due. So a call's turn isn't known while it waits: calls of other
// shares that come later may be next. The wait is bounded by a deadline instead: a call that is next
// is lost if its turn would be later, and so is one that still waits then.
//
// A large call that is next makes the others wait. If it leaves, its share is charged for the time
// that they lost.
//
// # Which calls are woken
//
// A call sleeps until its deadline. Invariant, under the lock: the next one sleeps until its turn at
// most, which follows those of all calls outside shares. It grants the turns that are due, and wakes
// the next. A call that was next and no longer is wakes too early, and goes back to sleep.
type shareTurns struct {
	shares
	revision uint64
	cost     Moment  // of all waiting calls
	unlooked []*Turn // calls that don't look, in the order in which they came; see ExpireShares
}

// ShareTurn is a call's request for a turn in a share; see [Pacer.QueueShare].
type ShareTurn struct {
	Cost    Moment
	First   bool          // prioritized, within its share
	MaxWait time.Duration // the longest wait
	Sharing *Sharing
	Tenant  Tenant
	// Revision is that of the rules that Sharing comes from: the newest counts.
	Revision uint64
}

// QueueShare gives a call of a tenant its turn, or a place in the queue of its share, and reports
// whether it did. If so, the call asks [Turn.Come] at until. least is the least possible wait; 0 means
// that the call runs.
//
// The calls that wait, in all shares, fill MaxWait. If the new call no longer fits, the longest share
// by weight of the lowest level that waits loses its last call. If that is the new call's own share,
// the new call is rejected, unless it is prioritized and the last one isn't. A call whose turn can't
// come within MaxWait is rejected.
//
// Calls that wait outside shares come first. Once a call joins outside shares, or in shares that are
// named otherwise, calls that wait in shares keep their order and are no longer in shares.
func (t *Pacer) QueueShare(x *Turn, now int64, c *ShareTurn) (until int64, least time.Duration, ok bool) {
	t.look(now)
	now = t.seen // an older reading of the clock
	f := t.share(c)
	share := f.obtain(nil, &c.Tenant)
	if t.soonest(now, c) > c.MaxWait {
		share.figures.refused++
		x.state = gone
		return now, 0, false
	}
	room := t.Last().Wait(now, 0, c.Cost) <= c.MaxWait
	t.joinShare(x, now, share, c)
	t.advanceQueue()
	if tooMany := share.length > f.sharing.PerShare; x.state == waits && (tooMany || !room) {
		if tooMany || !t.makeRoom(x, now, c.MaxWait) {
			t.remove(x, gone)
			share.figures.refused++
		}
		t.advanceQueue()
	}
	if x.inQueue = x.state == waits; !x.inQueue {
		return now, 0, x.state == granted
	}
	x.sleep(now)
	t.wakeFirst()
	_, cost := t.first()
	return x.until, max(t.ran.Wait(now, 0, cost), 1), true
}

// soonest returns the wait of a new call if it were next in shares.
func (t *Pacer) soonest(now int64, c *ShareTurn) time.Duration {
	return t.ran.plus(t.queue.cost).Wait(now, 0, c.Cost)
}

// share returns the shares under the sharing of the call, or of newer rules.
func (t *Pacer) share(c *ShareTurn) *shareTurns {
	if t.fair == nil {
		t.fair = &shareTurns{shares: *newShares()}
	}
	f := t.fair
	if old := f.sharing; old == nil || c.Revision > f.revision {
		if old != nil && (old.By != c.Sharing.By || old.Levels != c.Sharing.Levels) {
			t.unshare(t.seen)
			t.fair = f
		}
		f.configure(c.Sharing)
		f.revision = c.Revision
	}
	return f
}

// joinShare puts a call in the queue of its share.
func (t *Pacer) joinShare(x *Turn, now int64, share *Share, c *ShareTurn) {
	if x.waiter == nil {
		x.waiter = new(Waiter)
	}
	*x.waiter = Waiter{turn: x, share: share, claim: Claim{First: c.First}}
	t.came++
	x.of, x.number, x.state, x.lost = t, t.came, waits, waits
	x.inQueue, x.inShare, x.lingers = true, true, false
	x.arrived, x.deadline = now, now+int64(c.MaxWait)
	x.at, x.until = Moment{ns: x.deadline}, now // awake
	if x.Awaited {
		t.awaited++
	} else {
		t.fair.unlooked = append(t.fair.unlooked, x)
	}
	t.fair.enqueue(x.waiter, c.Cost)
	t.fair.cost = t.fair.cost.plus(c.Cost)
}

// makeRoom makes longer shares lose their last calls until the calls that wait, with the new one, fill
// maxWait. It reports whether the new call may stay.
func (t *Pacer) makeRoom(x *Turn, now int64, maxWait time.Duration) bool {
	of, some := x.waiter.share, false
	for time.Duration(t.Last().ns-now) > maxWait {
		longest := t.fair.loserTo(of)
		if longest == nil {
			if some || !x.waiter.first || of.tail.first {
				return some // one share may be longer than the others by a call
			}
			longest = of
		}
		last := longest.tail.turn
		t.lose(last, displaced)
		t.takeUp(now, longest)
		some = true
	}
	return true
}

// lose removes a call that must not wait any longer, or is gone of its own.
func (t *Pacer) lose(x *Turn, as state) {
	if figures := &x.waiter.share.figures; as == displaced {
		figures.displaced++
	} else {
		figures.expired++
	}
	t.remove(x, as)
	if as == gone {
		return
	}
	if x.onLoss != nil {
		x.onLoss()
	}
	t.wakeFor(x, Moment{ns: t.seen})
}

// loseTheLate loses calls that are next and whose turns, which are not before from, would come too late.
func (t *Pacer) loseTheLate(from Moment) {
	for t.shares() {
		x, turn := t.nextInShares()
		if turn.Later(from).ns <= x.deadline {
			return
		}
		t.lose(x, expired)
	}
}

// notices is called by a call that has lost its place, or was given up.
func (x *Turn) notices(now int64) (at int64) {
	x.lost, x.inQueue = x.state, false
	return now
}

// remove removes a call from its share.
func (t *Pacer) remove(x *Turn, as state) {
	t.fair.dequeue(x, as)
	t.left(x)
	x.state = as
}

// next returns the call whose turn is next, and its cost.
func (f *shareTurns) next() (*Turn, Moment) {
	w := f.pick(1).first()
	return w.turn, w.cost
}

// nextInShares returns the next of the calls in shares, and its turn, which follows those of all calls
// outside shares.
func (t *Pacer) nextInShares() (x *Turn, turn Moment) {
	x, cost := t.fair.next()
	return x, t.ran.plus(t.queue.cost).plus(cost)
}

// dequeue removes a call from its share, and returns its cost.
func (f *shareTurns) dequeue(x *Turn, as state) (cost Moment) {
	cost = x.waiter.cost
	f.shares.dequeue(x.waiter, as)
	f.cost = f.cost.minus(cost)
	x.inShare = false
	return cost
}

// unshare moves the calls in shares to the queue outside them, in the order in which they would run
// if no other call came.
func (t *Pacer) unshare(now int64) {
	t.look(now)
	for t.shares() {
		x, _ := t.fair.next()
		cost := t.fair.dequeue(x, granted)
		t.queue.add(x, cost)
		t.late = t.came
		x.number, x.delayed, x.waiter.share = t.came, t.delayed, nil
		x.at = t.ran.plus(t.queue.cost)
	}
	t.fair = nil
	t.wakeFirst()
}

// wakeNextShare makes the next call in shares wake at its turn.
func (t *Pacer) wakeNextShare() {
	if t.loseTheLate(t.ran); !t.shares() {
		return
	}
	if x, turn := t.nextInShares(); turn.ns < x.until {
		x.until = turn.ns
		if x.alarm != nil {
			x.alarm.WakeAt(turn.ns)
		}
	}
}

// sleep sets the time until which a call in a share sleeps, which is awake at now. If its time is up,
// it is lost.
func (x *Turn) sleep(now int64) {
	t := x.of
	if now >= x.deadline {
		t.lose(x, expired)
		return
	}
	x.until = x.deadline
	if next, turn := t.nextInShares(); next == x {
		x.until = min(x.until, turn.ns)
	}
}

// ofShare reports whether the turn was granted to a share.
func (x *Turn) ofShare() bool { return x.waiter != nil && x.waiter.share != nil }

// OnLoss sets a function that is called, under the lock, once the call is lost. The call doesn't look.
func (x *Turn) OnLoss(f func()) { x.onLoss = f }

// ExpireShares removes the calls that don't look and whose deadlines have passed by now, as if each
// had looked then. The caller holds the lock.
func (t *Pacer) ExpireShares(now int64) {
	if t.fair == nil {
		return
	}
	for f := t.fair; len(f.unlooked) > 0; f.unlooked = f.unlooked[1:] {
		x := f.unlooked[0]
		if x.state != waits || !x.inShare {
			continue
		}
		if x.deadline > max(now, t.seen) {
			break
		}
		if t.advance(x.deadline); x.state == waits {
			t.lose(x, expired)
		}
	}
	t.look(now)
}

// MayQueueShare reports whether [Pacer.QueueShare] would give the call its turn or a place now, and the
// least possible wait. A call that would run is never rejected. The caller holds the lock.
func (t *Pacer) MayQueueShare(now int64, c *ShareTurn) (least time.Duration, ok bool) {
	if !t.Empty() {
		t.look(now)
	}
	now = max(now, t.seen)
	fits := t.Last().Wait(now, 0, c.Cost) <= c.MaxWait
	least = t.soonest(now, c)
	switch f := t.fair; {
	case f == nil || f.sharing == nil:
		return least, fits
	case least == 0: // it may be next
		return 0, true
	case least > c.MaxWait:
		return least, false
	}
	return least, t.mayWait(fits, c)
}

// mayWait is MayQueueShare for a call that can't run at once. fits is true if there is room for it.
func (t *Pacer) mayWait(fits bool, c *ShareTurn) bool {
	f, length, size, instead := t.fair, 0, int64(0), false
	if x := f.find(&c.Tenant); x != nil {
		length, size, instead = x.length, x.cost.ns, c.First && x.tail != nil && !x.tail.first
	}
	return length < f.sharing.PerShare && (fits || instead || f.mayDisplace(&c.Tenant, size))
}

// RefusedShare counts a call of a tenant that was rejected because of [Pacer.MayQueueShare]. The
// caller holds the lock.
func (t *Pacer) RefusedShare(c *ShareTurn) {
	if f := t.fair; f != nil && f.sharing != nil {
		f.countRefused(&c.Tenant)
	}
}

// SharesOfTurns is [Semaphore.Shares] for turns: nothing is held, and parts are fractions of the rate.
// The caller holds the lock.
func (t *Pacer) SharesOfTurns() (all []ShareStats, gone ShareStats) {
	if t.fair != nil {
		all, gone = t.fair.statsOfAll(1)
	}
	return all, gone
}

// LookShare returns the share that a call at now would find, and the call's wait if no other came. The
// caller holds the lock.
func (t *Pacer) LookShare(now int64, c *ShareTurn) (look ShareLook, wait time.Duration) {
	f := t.fair
	if f == nil || f.sharing == nil {
		f = &shareTurns{shares: *newShares()}
		f.sharing = c.Sharing
	}
	b := &f.bands[f.sharing.level(&c.Tenant)]
	look = ShareLook{ShareStats: ShareStats{Tenant: c.Tenant.Name, Level: b.level, Weight: f.weightOf(&c.Tenant)}, Place: 1}
	x := f.find(&c.Tenant)
	if x != nil {
		look.ShareStats, look.Place = f.stats(x, 1), x.placeFor(c.First, c.Cost)
	}
	weights := b.weights
	if x == nil || !x.active() {
		weights += look.Weight
	}
	look.Part = float64(look.Weight) / float64(weights)
	wait = t.ran.plus(f.before(x, b, look.Weight, c.First)).plus(t.queue.cost).Wait(now, 0, c.Cost)
	if look.Runs = wait == 0; !look.Runs {
		_, look.Waits = t.MayQueueShare(now, c)
		look.Waits = look.Waits && wait <= c.MaxWait
	}
	return look, wait
}

// before returns the cost of the calls that would run before a new one of a share, which may be nil.
func (f *shareTurns) before(x *Share, b *band, weight int64, first bool) (cost Moment) {
	from := b.virtual
	if least := b.heaps[byKey].first(); least != nil {
		like := x
		if like == nil {
			like = new(Share)
		}
		from = min(from, least.key()+f.expected(like))
	}
	if x != nil {
		if x.length > 0 || x.key() > from {
			from = x.key()
		}
		if !first {
			from += x.cost.float() / float64(weight)
		}
	}
	for _, y := range f.all {
		switch {
		case y.band.level < b.level:
			cost = cost.plus(y.cost)
		case y == x && !first:
			cost = cost.plus(y.cost)
		case y.band == b && y != x:
			key := y.key()
			for w := y.first(); w != nil && (key < from || key == from && (x == nil || y.id < x.id)); w = w.after {
				cost = cost.plus(w.cost)
				key += w.cost.float() / float64(y.weight)
			}
		}
	}
	return cost
}
