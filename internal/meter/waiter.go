package meter

// Waiter is the place of one call in the queue of a semaphore. It is safe for concurrent use.
type Waiter struct {
	semaphore *Semaphore
	claim     Claim
	state     state  // guarded by the semaphore's mu, as are the fields below
	wake      func() // nil if Attend was not called
	share     *Share // nil for a call outside shares
	turn      *Turn  // the call if it waits for a turn; then semaphore is nil

	place[*Waiter]
}

func (w *Waiter) rank() *place[*Waiter] { return &w.place }

type state uint8

const (
	waits     state = iota
	granted         // holds its units
	gone            // out of the queue, without units
	displaced       // gone, for a call of another share
	expired         // gone, since its turn came too late
)

// Semaphore returns the semaphore that the call waits for.
func (w *Waiter) Semaphore() *Semaphore { return w.semaphore }

// Attend sets the function that is called, once, when the call stops waiting: immediately if it doesn't
// wait. Any goroutine may call wake, without a lock of the semaphore. Attend must be called only
// once.
func (w *Waiter) Attend(wake func()) {
	w.semaphore.mu.Lock()
	over := w.state != waits
	w.wake = wake
	w.semaphore.mu.Unlock()
	if over {
		wake()
	}
}

// Granted reports whether the call holds its units.
func (w *Waiter) Granted() bool {
	w.semaphore.mu.Lock()
	defer w.semaphore.mu.Unlock()
	return w.state == granted
}

// Displaced reports whether the call lost its place to a call of another share.
func (w *Waiter) Displaced() bool {
	w.semaphore.mu.Lock()
	defer w.semaphore.mu.Unlock()
	return w.state == displaced
}

// Share returns the share that the call is in, or nil.
func (w *Waiter) Share() *Share { return w.share }

// Leave gives up the place, or the units if they have been granted: they pass to the next call in
// the queue. A second Leave does nothing.
func (w *Waiter) Leave() {
	if w.share == nil {
		w.leaveAt(0)
		return
	}
	var now int64
	defer func() { w.leaveAt(now) }()
	now = w.share.clock()
}

func (w *Waiter) leaveAt(now int64) {
	g := w.semaphore
	g.lock()
	if g.shares != nil {
		g.shares.pass(now)
	}
	switch w.state {
	case waits:
		g.expire(w)
	case granted:
		w.state = gone
		g.giveBackLocked(w.share, w.claim.Units)
	}
	g.unlock()
}

// woken is the list of calls to wake, through links that they no longer need. It is filled under
// mu; the calls may already run by then, but nothing else uses the links of a call outside the
// queue.
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
