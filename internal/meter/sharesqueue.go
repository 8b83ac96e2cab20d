package meter

// JoinShare is like [Semaphore.Join] for a call of a tenant, at now, under rules that share the
// units: a call waits behind others of its tenant in the order of the queue, and free units go to
// the share whose turn it is; see [Share].
//
// If the queue is full, the longest share by weight of the lowest level that waits loses its last
// call, which is then [Waiter.Displaced], unless that would be the new call's own share: then that call
// is rejected. The units must be given back with [Share.Release], or if share is nil with
// [Semaphore.Release].
//
// Calls that wait outside shares come first while the rules share, and calls in shares come first
// once they no longer do.
func (g *Semaphore) JoinShare(c Claim, sharing *Sharing, t *Tenant, now int64) (got bool, share *Share, place *Waiter) {
	var up woken
	g.lock()
	g.setLimit(c.Revision, c.Limit, sharing, &up)
	s := g.shares
	if s == nil || s.sharing == nil { // the rules have changed
		got, place = g.joinLocked(c, &up)
	} else {
		s.pass(now)
		share = s.obtain(g, t)
		if got, place = g.joinShareLocked(share, c, &up); !got && place == nil {
			share.figures.refused++
		}
		g.advance(&up)
		if place != nil && place.state == granted {
			got, place = true, nil
		}
	}
	g.release()
	up.wake()
	return got, share, place
}

func (g *Semaphore) joinShareLocked(x *Share, c Claim, up *woken) (got bool, place *Waiter) {
	s := g.shares
	if c.Units > g.queue.limit {
		return false, nil
	}
	if g.queue.length+s.waiting == 0 && g.fits(c.Units) {
		s.begin(x)
		s.grant(x, c.Units)
		g.add(c.Units)
		return true, nil
	}
	w := &Waiter{semaphore: g, claim: c, share: x}
	g.enqueueShareLocked(w)
	if g.advance(up); w.state != waits {
		return false, w
	}
	if c.Queue == 0 || x.length > min(c.Queue, s.sharing.PerShare) {
		g.dequeue(w, gone)
		return false, nil
	}
	if g.queue.length+s.waiting > c.Queue {
		longest := s.loserTo(x)
		if longest == nil {
			g.dequeue(w, gone)
			return false, nil
		}
		last := longest.tail
		longest.figures.displaced++
		g.dequeue(last, displaced)
		up.add(last)
	}
	return false, w
}

// MayJoinShare reports whether [Semaphore.JoinShare] would give the call units or a place now. A call
// that would get units is never rejected.
func (g *Semaphore) MayJoinShare(c Claim, t *Tenant, now int64) bool {
	if c.Units > c.Limit {
		return false
	}
	g.lock()
	s := g.shares
	if s == nil || s.sharing == nil {
		g.release()
		return g.MayJoin(c)
	}
	var up woken
	s.pass(now) // as JoinShare does, and what follows
	s.forget()
	g.advance(&up)
	// If the units fit, it may be next as it joins: the fair parts of the others shrink.
	may := g.total() <= c.limit(&g.queue)-c.Units || g.mayQueueLocked(s, c, t)
	g.release()
	up.wake()
	return may
}

// RefusedShare counts a call of a tenant that was rejected because of [Semaphore.MayJoinShare].
func (g *Semaphore) RefusedShare(t *Tenant) {
	g.lock()
	if s := g.shares; s != nil && s.sharing != nil {
		s.countRefused(t)
	}
	g.release()
}

func (s *shares) countRefused(t *Tenant) {
	if x := s.find(t); x != nil {
		x.figures.refused++
	} else {
		s.gone.refused++
	}
}

// mayQueueLocked reports whether the queue has room for the call, perhaps in place of another.
func (g *Semaphore) mayQueueLocked(s *shares, c Claim, t *Tenant) bool {
	length := 0
	if x := s.find(t); x != nil {
		length = x.length
	}
	return length < min(c.Queue, s.sharing.PerShare) && (g.queue.length+s.waiting < c.Queue || s.mayDisplace(t, int64(length)+1))
}

// mayDisplace reports whether a call of a tenant whose queue then has that size would displace another
// share's.
func (s *shares) mayDisplace(t *Tenant, size int64) bool {
	lowest, level := s.lowest(), s.sharing.level(t)
	if lowest == nil || lowest.level != level {
		return lowest != nil && lowest.level > level
	}
	longest := lowest.heaps[byLength].first()
	return compareProducts(longest.size(), s.weightOf(t), size, longest.weight) > 0
}

// loserTo returns the share that loses its last call to one of x in a full queue: the longest by weight
// of the lowest level that waits. It is nil if that is x.
func (s *shares) loserTo(x *Share) *Share {
	lowest := s.lowest()
	longest := lowest.heaps[byLength].first()
	if lowest == x.band && compareProducts(longest.size(), x.weight, x.size(), longest.weight) <= 0 {
		return nil
	}
	return longest
}

// lowest returns the band of the lowest level that waits, or nil.
func (s *shares) lowest() *band {
	for i := Levels - 1; i >= 0; i-- {
		if b := &s.bands[i]; b.waits() {
			return b
		}
	}
	return nil
}

// SetSharing is like [Semaphore.SetLimit], for rules that share the units.
func (g *Semaphore) SetSharing(revision uint64, limit int64, sharing *Sharing) {
	var up woken
	g.lock()
	g.setLimit(revision, limit, sharing, &up)
	g.release()
	up.wake()
}

// Release gives back n units. confirmed is as for [Semaphore.ReleaseConfirmed]. If the clock panics,
// the units are given back all the same.
func (s *Share) Release(n int64, confirmed bool) {
	var now int64
	defer func() { s.releaseAt(now, n, confirmed) }()
	now = s.clock()
}

func (s *Share) releaseAt(now, n int64, confirmed bool) {
	g := s.semaphore
	g.lock()
	if confirmed {
		g.confirmed -= n
	}
	g.shares.pass(now)
	g.giveBackLocked(s, n)
	g.unlock()
}

// giveBackLocked takes back n units of a share, or units of nobody's if it is nil.
func (g *Semaphore) giveBackLocked(x *Share, n int64) {
	g.add(-n)
	if x != nil {
		g.shares.giveBack(x, n)
	}
}

// setSharingLocked changes the sharing with the rules.
func (g *Semaphore) setSharingLocked(c *Sharing) {
	if g.shares == nil {
		g.shares = newShares()
		g.stays |= isShared
	}
	g.shares.configure(c)
}

// advanceSharesLocked gives free units to the calls outside shares and to the shares. It drops the
// shares once the rules no longer share and all of them have drained.
func (g *Semaphore) advanceSharesLocked(up *woken) {
	s := g.shares
	if s.sharing != nil {
		if g.advanceQueueLocked(up) {
			g.serveSharesLocked(up)
		}
		return
	}
	if g.serveSharesLocked(up) {
		g.advanceQueueLocked(up)
	}
	if s.active == 0 {
		g.shares = nil
		g.stays &^= isShared
	}
}

// serveSharesLocked reports whether no call waits in a share afterwards.
func (g *Semaphore) serveSharesLocked(up *woken) bool {
	s := g.shares
	for x := s.pick(g.queue.limit); x != nil; x = s.pick(g.queue.limit) {
		w := x.first()
		if !g.fits(w.claim.Units) {
			return false
		}
		g.dequeue(w, granted)
		g.add(w.claim.Units)
		up.add(w)
	}
	return true
}

// maxSettled is the number of shares that a pick brings up to date: keys only grow meanwhile, so one
// that looks least may no longer be.
const maxSettled = 4

// pick returns the share whose first call is next, or nil if no share waits.
func (s *shares) pick(limit int64) *Share {
	for i := range s.bands {
		if x := s.pickOf(&s.bands[i], limit); x != nil {
			return x
		}
	}
	return nil
}

// pickOf is pick among the shares of a band.
func (s *shares) pickOf(b *band, limit int64) *Share {
	least := b.heaps[byKey].first()
	for looks := 0; looks < maxSettled && least != nil && s.settle(least); looks++ {
		s.fix(least)
		least = b.heaps[byKey].first()
	}
	if least == nil || s.below(least, limit) {
		return least
	}
	return b.heaps[byHeld].first()
}

// below reports whether the share holds less than its fair part of the limit.
func (s *shares) below(x *Share, limit int64) bool {
	return compareProducts(x.held, x.band.weights, s.limitOf(x.band, limit), x.weight) < 0
}

// limitOf returns what the other bands leave of the limit.
func (s *shares) limitOf(b *band, limit int64) int64 { return max(0, limit-(s.held-b.held)) }

// enqueueShareLocked puts a call in the queue of its share.
func (g *Semaphore) enqueueShareLocked(w *Waiter) {
	g.shares.enqueue(w, w.claim.units())
	g.queued.Add(1)
}

// enqueue puts a call of that cost in the queue of its share.
func (s *shares) enqueue(w *Waiter, cost Moment) {
	x := w.share
	s.begin(x)
	s.activate(x)
	if w.claim.First {
		x.overtake(w, cost, x.spot(cost, cost))
	} else {
		x.add(w, cost)
	}
	s.waiting++
	if x.length > 1 {
		s.fix(x)
	} else {
		for kind := range x.band.heaps {
			x.band.heaps[kind].add(x)
		}
	}
}

// dequeue takes a call out of its share, which is granted its units or its turn if now is granted.
func (s *shares) dequeue(w *Waiter, now state) {
	x := w.share
	s.settle(x)
	s.waiting--
	if now == granted {
		if w.turn != nil { // while it is active
			s.grantTurn(x, w.cost)
		} else {
			s.grant(x, w.claim.Units)
		}
		x.serve(w)
	} else {
		x.remove(w)
	}
	s.deactivated(x)
	if x.length > 0 {
		s.fix(x)
		return
	}
	for kind := range x.band.heaps {
		x.band.heaps[kind].remove(x)
	}
}

// joinBesideLocked lets a call outside shares join while calls in shares wait.
func (g *Semaphore) joinBesideLocked(c Claim, up *woken) (got bool, place *Waiter) {
	if g.queue.length+g.shares.waiting >= c.Queue {
		return false, nil
	}
	place = &Waiter{semaphore: g, claim: c}
	g.enqueue(place)
	if g.advance(up); place.state == granted {
		return true, nil
	}
	return false, place
}
