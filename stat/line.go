package stat

import "math"

// Claim is what a call wants of a [Gauge] that has a line.
type Claim struct {
	Units int64
	// First puts the call before those in line that are not First.
	First bool
	// Queue is the longest that the line may be for this call to join it.
	Queue int
	// Limit is what the total may come to. Of claims under several revisions of the
	// rules the newest says what it is, see [Gauge.SetLimit]. Under one revision it is
	// the same for all.
	Limit    int64
	Revision uint64
	// Until is the time at which the place is lost if somebody calls
	// [Gauge.Expire]; 0 is never.
	Until int64
}

// Waiter is the place of one call in the line of a gauge. It is safe for concurrent
// use.
type Waiter struct {
	gauge *Gauge
	claim Claim
	state state  // under the gauge's mu, as all below
	wake  func() // nil if nobody attends

	before, after *Waiter
}

type state uint8

const (
	waits   state = iota
	granted       // holds its units
	gone          // out of the line, with nothing
)

// line is the calls that wait for a gauge: those that come first, and the others, each
// in the order in which they came. The zero value is empty and has no limit yet.
type line struct {
	limit    int64
	revision uint64 // of the rules that limit is from
	known    bool   // there has been a limit
	queues   [2]queue
	length   int
	units    int64
}

// queue is a list in which everybody knows their neighbors, so that leaving from the
// middle takes no search.
type queue struct{ head, tail *Waiter }

func (c *Claim) queue() int {
	if c.First {
		return 0
	}
	return 1
}

// MayJoin reports whether [Gauge.Join] would give the call units or a place, as
// things stand. It takes no lock. A no is an answer that Join could have given during
// the call.
func (g *Gauge) MayJoin(c Claim) bool {
	switch {
	case c.Units > c.Limit:
		return false
	case c.Queue == 0:
		return g.Fits(c.Units, c.Limit) && (c.First || g.inLine.Load() == 0)
	case c.First:
		return true // it may fit although others are in line, so two readings can't tell
	}
	// Who is not First stands behind everybody, if there is a place.
	return g.inLine.Load() < int64(c.Queue)
}

// TryJoin takes units as [Gauge.Join] would if that is plain without a look at the
// line: nobody is in it, nothing is unseen, and its limit is that of the caller's
// revision. If it takes none, that says nothing.
func (g *Gauge) TryJoin(n, limit int64, revision uint64) bool {
	limit = min(limit, mostInUse)
	for w := g.word.Load(); w&frozen == 0 && w>>markShift == markOf(revision) && total(w) <= limit-n; w = g.word.Load() {
		if g.word.CompareAndSwap(w, w+uint64(n)*oneUnit) {
			return true
		}
	}
	return false
}

// Join takes units as [Gauge.TryAcquire] does, unless somebody is in line before the
// call. If it can't, the call gets a place in line, if that is shorter than c.Queue and
// the units could ever be had. Neither got nor a place: refused.
func (g *Gauge) Join(c Claim) (got bool, place *Waiter) {
	if g.TryJoin(c.Units, c.Limit, c.Revision) {
		return true, nil
	}
	if !g.MayJoin(c) {
		return false, nil
	}
	var up woken
	g.lock()
	g.setLimit(c.Revision, c.Limit, &up)
	switch l := &g.line; {
	case c.Units > l.limit:
	case !l.ahead(c.queue()) && g.fits(c.Units):
		g.add(c.Units)
		got = true
	case l.length < c.Queue:
		place = &Waiter{gauge: g, claim: c}
		g.enqueue(place)
	}
	g.release()
	up.wake()
	return got, place
}

// Open is the limit of a gauge that limits nobody any more.
const Open = math.MaxInt64

// SetLimit says what the total may come to under a revision of the rules. An older
// revision than the one known changes nothing. Who fits now gets units, and who never
// will loses the place; who holds units keeps them.
func (g *Gauge) SetLimit(revision uint64, limit int64) {
	var up woken
	g.lock()
	g.setLimit(revision, limit, &up)
	g.release()
	up.wake()
}

// setLimit needs lock.
func (g *Gauge) setLimit(revision uint64, limit int64, up *woken) {
	l := &g.line
	if l.known && revision <= l.revision {
		return
	}
	l.limit, l.revision, l.known = min(limit, mostInUse), revision, true
	g.mark(revision)
	g.lose(up, func(c *Claim) bool { return c.Units > limit })
	g.advance(up)
}

// Expire takes those out of the line whose time is over, and returns how many.
func (g *Gauge) Expire(now int64) (expired int) {
	if g.inLine.Load() == 0 {
		return 0
	}
	var up woken
	g.lock()
	expired = g.lose(&up, func(c *Claim) bool { return c.Until != 0 && c.Until < now })
	g.unlock()
	up.wake()
	return expired
}

// lose takes those out of the line for whom it is over, and returns how many. It
// needs lock.
func (g *Gauge) lose(up *woken, over func(*Claim) bool) (lost int) {
	for q := range g.line.queues {
		for w := g.line.queues[q].head; w != nil; {
			next := w.after
			if over(&w.claim) {
				g.dequeue(w, gone)
				up.add(w)
				lost++
			}
			w = next
		}
	}
	return lost
}

// InLine is how many calls wait for units.
func (g *Gauge) InLine() int64 { return g.inLine.Load() }

// UnitsInLine is how many units they wait for.
func (g *Gauge) UnitsInLine() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.line.units
}

// Gauge is whose line it is.
func (w *Waiter) Gauge() *Gauge { return w.gauge }

// Attend has wake called once, when the call doesn't wait any more: now, if that is so
// already. Any goroutine may call it, under no lock of the gauge. Attend must be called
// once only.
func (w *Waiter) Attend(wake func()) {
	w.gauge.mu.Lock()
	over := w.state != waits
	w.wake = wake
	w.gauge.mu.Unlock()
	if over {
		wake()
	}
}

// Granted reports whether the call holds its units.
func (w *Waiter) Granted() bool {
	w.gauge.mu.Lock()
	defer w.gauge.mu.Unlock()
	return w.state == granted
}

// Leave gives up the place, or the units if they have been granted: they go to the
// next in line. A second call does nothing.
func (w *Waiter) Leave() {
	g := w.gauge
	g.lock()
	switch w.state {
	case waits:
		g.dequeue(w, gone)
	case granted:
		w.state = gone
		g.add(-w.claim.Units)
	}
	g.unlock()
}

// fits needs lock.
func (g *Gauge) fits(n int64) bool { return g.total() <= g.line.limit-n }

// ahead reports whether anybody is in line before a call that joins queue q.
func (l *line) ahead(q int) bool {
	return l.queues[0].head != nil || q == 1 && l.queues[1].head != nil
}

// first is who is next, or nil.
func (l *line) first() *Waiter {
	if w := l.queues[0].head; w != nil {
		return w
	}
	return l.queues[1].head
}

// advance gives what is free to the first in line, in order: who needs much is not
// overtaken by who needs little, or might wait for ever. It needs lock.
func (g *Gauge) advance(up *woken) {
	for w := g.line.first(); w != nil && g.fits(w.claim.Units); w = g.line.first() {
		g.dequeue(w, granted)
		g.add(w.claim.Units)
		up.add(w)
	}
}

// enqueue and dequeue need lock.
func (g *Gauge) enqueue(w *Waiter) {
	q := &g.line.queues[w.claim.queue()]
	if w.before = q.tail; q.tail != nil {
		q.tail.after = w
	} else {
		q.head = w
	}
	q.tail = w
	g.line.length++
	g.line.units += w.claim.Units
	g.inLine.Store(int64(g.line.length))
}

func (g *Gauge) dequeue(w *Waiter, now state) {
	q := &g.line.queues[w.claim.queue()]
	if w.before != nil {
		w.before.after = w.after
	} else {
		q.head = w.after
	}
	if w.after != nil {
		w.after.before = w.before
	} else {
		q.tail = w.before
	}
	w.before, w.after, w.state = nil, nil, now
	g.line.length--
	g.line.units -= w.claim.Units
	g.inLine.Store(int64(g.line.length))
}

// woken are those to wake, by the links that they don't need any more. It is filled
// under mu; the calls may go on meanwhile, but nobody else uses the links of one that
// is out of the line.
type woken struct{ first, last *Waiter }

func (l *woken) add(w *Waiter) {
	if w.wake == nil {
		return
	}
	if l.last == nil {
		l.first = w
	} else {
		l.last.after = w
	}
	l.last = w
}

func (l woken) wake() {
	for w := l.first; w != nil; {
		next := w.after
		w.after = nil
		w.wake()
		w = next
	}
}
