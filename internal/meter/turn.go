package meter

// Turn is one call's turn, or its place in the queue for one. It is the call's: a call
// uses a turn again when it is over. The zero value is ready for calls that nobody can tell
// to wake up earlier.
type Turn struct {
	// What others look at as well, under the lock, is in the first 64 bytes.
	place[*Turn]
	until  int64 // when the call looks, if nobody tells it anything
	number uint64
	of     *Pacer

	// at is when the turn is; while in the queue, when it is at the latest unless somebody has
	// overtaken it, or turns have moved on, since it was told: delayed is by how much they had then.
	// before is what was granted latest when the turn was.
	at, before Moment
	delayed    Moment
	alarm      Alarm
	state      state
	lingers    bool // the call waits for something later besides
	// Awaited says that the call doesn't run before. The call sets it, but not while it is in
	// the queue.
	Awaited bool

	// What only the call looks at.
	inQueue bool // for all that it knows
}

func (x *Turn) rank() *place[*Turn] { return &x.place }

// Alarm wakes a call.
type Alarm interface {
	// MoveUp makes the call wake at that time, or immediately if it has passed, unless it would
	// wake earlier. It is called under the lock of the turns, and so calls nothing of theirs.
	MoveUp(to int64)
}

// MakeTurn returns a turn for calls that the alarm wakes.
func MakeTurn(alarm Alarm) Turn { return Turn{alarm: alarm} }

// Come returns when the turn comes, as far as is known: no later than that, unless others
// overtake or it moves on. The call asks at now, and has slept until slept, though the clock may not
// show it. If that is not before the turn, it is granted. A turn that was given up comes at now.
func (x *Turn) Come(now, slept int64) (at int64) {
	t := x.of
	t.lock.Lock()
	defer t.lock.Unlock()
	if x.state == gone {
		return now
	}
	t.seen = max(t.seen, now)
	for x.state == waits && t.due(max(now, slept)) { // those behind it will look themselves
		t.grantDue(t.seen)
	}
	t.rouse()
	if x.state == waits {
		x.at = x.at.plus(t.queue.pushed(x)).plus(t.delayed.minus(x.delayed))
		t.told(x)
	}
	x.inQueue, x.lingers = x.state == waits, false
	x.until = x.at.ns
	return x.at.ns
}

// Linger says that the call won't look before until, because it also waits for something else; it
// looks earlier if it is told to.
func (x *Turn) Linger(until int64) {
	if !x.inQueue {
		return
	}
	x.of.lock.Lock()
	defer x.of.lock.Unlock()
	if x.state != waits || x.at.ns >= until {
		return
	}
	x.until, x.lingers = until, true
	x.of.rouse()
}

// Run grants the turn before its time, and with it those of all that come before. The call is
// already running.
func (x *Turn) Run() {
	if !x.inQueue {
		return
	}
	x.of.lock.Lock()
	defer x.of.lock.Unlock()
	for x.state == waits {
		t := x.of
		t.grant(t.queue.first(), longAgo)
	}
	x.of.rouse()
	x.inQueue = false
}

// Leave gives the turn up at now: those behind in the queue move up. A turn that was
// granted is lost if another one has been granted since. A second call does nothing.
func (x *Turn) Leave(now int64) {
	if x.of == nil {
		return
	}
	t := x.of
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.queue.length > 0 {
		t.look(now)
	}
	switch x.state {
	case waits:
		t.queue.remove(x)
		t.left(x)
		t.moveUp()
	case granted:
		t.undo(x.at, x.before)
	}
	x.state, x.inQueue = gone, false
}

// Drop forgets what the turn belonged to, so that it keeps nothing alive. It leaves at now if it
// is still in the queue.
func (x *Turn) Drop(now int64) {
	if x.inQueue {
		x.Leave(now)
	}
	x.of = nil
}
