package meter

import "math"

// Claim is a call's request to a [Semaphore] that has a queue.
type Claim struct {
	Units int64
	// First places the call before those in the queue that are not First, within the bounds of
	// ranks.
	First bool
	// Queue is the maximum length of the queue for this call to join it.
	Queue int
	// Limit is the maximum total. If claims differ in the revision of their rules, the newest
	// revision's limit counts; see [Semaphore.SetLimit]. Claims of one revision have the same
	// limit.
	Limit    int64
	Revision uint64
	// Until is the time at which the call expires, and [Semaphore.Expire] removes it from the
	// queue; 0 means never.
	Until int64
}

// queue holds the calls that wait for a semaphore. The zero value is empty and has no limit yet.
type queue struct {
	limit    int64
	revision uint64 // revision of the rules that set limit
	known    bool   // a limit was set
	ranks[*Waiter]
}

// units returns a claim's cost in the queue.
func (c *Claim) units() Moment { return Moment{ns: c.Units} }

// next reports whether the call would be the first in the queue.
func (l *queue) next(c *Claim) bool {
	return l.length == 0 || c.First && l.last == nil && l.spot(c.units(), c.units()).behind == nil
}

// MayJoin reports whether [Semaphore.Join] would give the call units or a place now. If it returns
// false, Join would have rejected the call at some instant during MayJoin. It takes the lock only
// if the queue is full and the call may jump ahead.
func (g *Semaphore) MayJoin(c Claim) bool {
	switch {
	case c.Units > c.Limit:
		return false
	case c.Queue == 0 && (!c.First || g.queued.Load() == 0):
		return g.Fits(c.Units, c.Limit) && (c.First || g.queued.Load() == 0)
	case g.queued.Load() < int64(c.Queue):
		return true
	case !c.First: // it would be last
		return false
	}
	g.lock() // it may fit although calls are queued, and two separate reads can't show that
	l := &g.queue
	may := l.length < c.Queue || l.next(&c) && g.total() <= c.limit(l)-c.Units
	g.release()
	return may
}

// limit returns the claim's limit once it has joined.
func (c *Claim) limit(l *queue) int64 {
	if l.known && c.Revision <= l.revision {
		return l.limit
	}
	return c.Limit
}

// TryJoin takes units as [Semaphore.Join] would, if the word alone suffices: no call is queued,
// nothing is unseen or lent, and the semaphore's limit is from the caller's revision. Failure
// doesn't mean that the call is rejected.
func (g *Semaphore) TryJoin(n, limit int64, revision uint64) bool {
	w := g.word.Load()
	return plain(w) && w&markBits == markOf(revision) && total(w) <= min(limit, maxInUse)-n && g.exchange(w, n)
}

// TryJoinOn is like TryJoin, but for a semaphore under contention: it takes units that were left
// with the lane.
func (g *Semaphore) TryJoinOn(lane uint32, n, limit int64, revision uint64) bool {
	return g.spend(lane, n, limit, markBits, markOf(revision))
}

// Join takes units on a lane as [Semaphore.TryAcquire] does, unless another call is ahead in the
// queue. If it can't, the call gets a place in the queue, if that is shorter than c.Queue and the
// units could ever become available. Otherwise the call is rejected.
func (g *Semaphore) Join(lane uint32, c Claim) (got bool, place *Waiter) {
	if g.TryJoin(c.Units, c.Limit, c.Revision) || g.take(lane, c.Units, min(c.Limit, maxInUse), markOf(c.Revision)) == taken {
		return true, nil
	}
	if !g.MayJoin(c) {
		return false, nil
	}
	var up woken
	g.lock()
	g.setLimit(c.Revision, c.Limit, nil, &up)
	got, place = g.joinLocked(c, &up)
	g.release()
	up.wake()
	return got, place
}

func (g *Semaphore) joinLocked(c Claim, up *woken) (got bool, place *Waiter) {
	switch l := &g.queue; {
	case c.Units > l.limit:
	case g.shares != nil && g.shares.waiting > 0:
		return g.joinBesideLocked(c, up)
	case l.next(&c) && g.fits(c.Units):
		g.add(c.Units)
		if l.length > 0 {
			l.overtakeAtOnce(c.units())
		}
		got = true
	case l.length < c.Queue:
		place = &Waiter{semaphore: g, claim: c}
		g.enqueue(place)
	}
	return got, place
}

// Open is the limit of a semaphore that no longer limits calls.
const Open = math.MaxInt64

// SetLimit sets the maximum total under a revision of the rules. A revision older than the known
// one changes nothing. A waiter that fits now gets its units, and a waiter that can never fit loses
// its place; a call that holds units keeps them.
func (g *Semaphore) SetLimit(revision uint64, limit int64) {
	g.SetSharing(revision, limit, nil)
}

// setLimit needs lock.
func (g *Semaphore) setLimit(revision uint64, limit int64, sharing *Sharing, up *woken) {
	l := &g.queue
	if l.known && revision <= l.revision {
		return
	}
	l.limit, l.revision, l.known = min(limit, maxInUse), revision, true
	g.mark(revision)
	if g.shares != nil || sharing != nil {
		g.setSharingLocked(sharing)
	}
	g.lose(up, func(c *Claim) bool { return c.Units > limit })
	g.advance(up)
}

// Expire removes expired calls from the queue, and returns their number.
func (g *Semaphore) Expire(now int64) (expired int) {
	if g.queued.Load() == 0 {
		return 0
	}
	var up woken
	g.lock()
	expired = g.lose(&up, func(c *Claim) bool { return c.Until != 0 && c.Until < now })
	g.unlock()
	up.wake()
	return expired
}

// lose removes from the queue the calls for which over returns true, and returns their number. It
// needs lock.
func (g *Semaphore) lose(up *woken, over func(*Claim) bool) (lost int) {
	lost = g.loseFrom(g.queue.first(), up, over)
	if g.shares != nil {
		for _, x := range g.shares.all {
			lost += g.loseFrom(x.first(), up, over)
		}
	}
	return lost
}

func (g *Semaphore) loseFrom(w *Waiter, up *woken, over func(*Claim) bool) (lost int) {
	for w != nil {
		next := w.after
		if over(&w.claim) {
			g.expire(w)
			up.add(w)
			lost++
		}
		w = next
	}
	return lost
}

// Queued returns the number of calls that wait for units.
func (g *Semaphore) Queued() int64 { return g.queued.Load() }

// UnitsQueued returns the units that the calls in the queue wait for.
func (g *Semaphore) UnitsQueued() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	units := g.queue.cost.ns
	if g.shares != nil {
		for _, x := range g.shares.all {
			units += x.cost.ns
		}
	}
	return units
}

// fits needs lock.
func (g *Semaphore) fits(n int64) bool { return g.total() <= g.queue.limit-n }

// advance gives free units to the first in the queue, in order: a call that needs few units doesn't
// jump ahead of one that needs many, which might otherwise wait forever. It needs lock.
func (g *Semaphore) advance(up *woken) {
	if g.shares != nil {
		g.advanceSharesLocked(up)
		return
	}
	g.advanceQueueLocked(up)
}

// advanceQueueLocked serves the calls outside shares, and reports whether none waits afterwards.
func (g *Semaphore) advanceQueueLocked(up *woken) bool {
	for w := g.queue.first(); w != nil && g.fits(w.claim.Units); w = g.queue.first() {
		g.dequeue(w, granted)
		g.add(w.claim.Units)
		up.add(w)
	}
	return g.queue.length == 0
}

// enqueue and dequeue need lock.
func (g *Semaphore) enqueue(w *Waiter) {
	if c := &w.claim; c.First {
		g.queue.overtake(w, c.units(), g.queue.spot(c.units(), c.units()))
	} else {
		g.queue.add(w, c.units())
	}
	g.queued.Add(1)
}

func (g *Semaphore) dequeue(w *Waiter, now state) {
	switch {
	case w.share != nil:
		g.shares.dequeue(w, now)
	case now == granted:
		g.queue.serve(w)
	default:
		g.queue.remove(w)
	}
	w.state = now
	g.queued.Add(-1)
}

// expire needs lock.
func (g *Semaphore) expire(w *Waiter) {
	if w.share != nil {
		w.share.figures.expired++
	}
	g.dequeue(w, gone)
}
