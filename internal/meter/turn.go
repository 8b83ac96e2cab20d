package meter

// Turn is a call's turn, or its place in the queue for one. It belongs to the call, which reuses it
// after its turn. The zero value is ready for calls without an alarm.
type Turn struct {
	// Fields that other calls also read, under the lock, are in the first 64 bytes.
	place[*Turn]
	until  int64 // time of the call's next look, without an alarm
	number uint64
	of     *Pacer

	// at is the time of the turn. In the queue it is the latest possible time, unless another call
	// has jumped ahead or turns were postponed since it was announced; delayed is the sum of
	// postponements at that time. before is the turn granted before it.
	at, before Moment
	delayed    Moment
	alarm      Alarm
	state      state
	lingers    bool // the call also waits for something later
	// Awaited is true if the call doesn't run before its turn. The call sets it, but not while it
	// is in the queue.
	Awaited bool

	// debt is true for a turn that no call waits for, and charged is the time of its charge; see
	// [Pacer.Charge].
	debt    bool
	charged int64

	// Fields of a call that waits in a share; see [Pacer.QueueShare].
	inShare  bool
	arrived  int64   // time
	deadline int64   // the call is lost if its turn is later
	waiter   *Waiter // its place in the share
	onLoss   func()  // called under the lock once the call is lost, or nil

	// Fields that only the call itself reads:
	inQueue bool // as the call knows it
	lost    state
}

func (x *Turn) rank() *place[*Turn] { return &x.place }

// Alarm wakes a call.
type Alarm interface {
	// WakeAt makes the call wake at that time, or immediately if it has passed, unless it would
	// wake earlier. It is called under the lock of the Pacer, so it must not call it.
	WakeAt(to int64)
}

// MakeTurn returns a turn for calls that the alarm wakes.
func MakeTurn(alarm Alarm) Turn { return Turn{alarm: alarm} }

// Come returns the time of the turn, which gets later only if prioritized calls jump ahead or it is
// postponed. The call asks at now, and has slept until slept, which the clock may not show yet. If
// now or slept has reached the turn, the turn is granted. For a turn that was given up, Come
// returns now.
func (x *Turn) Come(now, slept int64) (at int64) {
	t := x.of
	t.lock.Lock()
	defer t.lock.Unlock()
	if x.state >= gone {
		return x.notices(now)
	}
	t.seen = max(t.seen, now)
	for x.state == waits && t.due(max(now, slept)) { // calls behind it will look themselves
		t.grantDue(t.seen)
	}
	if t.fair != nil {
		if x.state == waits && x.inShare {
			x.sleep(max(now, slept))
		}
		t.advance(t.seen) // the next one may be too late, and the one behind it due
		if x.state >= gone {
			return x.notices(now)
		}
	} else {
		t.wakeFirst()
	}
	if x.state == waits && !x.inShare {
		x.at = x.at.plus(t.queue.pushed(x)).plus(t.delayed.minus(x.delayed))
		t.announced(x)
	}
	if x.inQueue, x.lingers = x.state == waits, false; !x.inShare {
		x.until = x.at.ns
	}
	return x.until
}

// Lost reports, after [Turn.Come], whether the call has lost its place: its turn would have come too
// late, or a call of another share has displaced it.
func (x *Turn) Lost() (lost, displacedByAnother bool) {
	return x.lost >= displaced, x.lost == displaced
}

// Linger records that the call won't look before until, because it also waits for something else;
// its alarm may still wake it earlier.
func (x *Turn) Linger(until int64) {
	if !x.inQueue {
		return
	}
	x.of.lock.Lock()
	defer x.of.lock.Unlock()
	looks := x.at.ns
	if x.inShare {
		looks = x.until
	}
	if x.state != waits || looks >= until {
		return
	}
	x.until, x.lingers = until, true
	x.of.wakeFirst()
}

// Run grants the turn before it is due, and with it all earlier turns. The call is already running.
func (x *Turn) Run() {
	if !x.inQueue {
		return
	}
	x.of.lock.Lock()
	defer x.of.lock.Unlock()
	if x.state == waits && x.inShare {
		x.of.grant(x, longAgo)
	}
	for x.state == waits {
		t := x.of
		t.grant(t.queue.first(), longAgo)
	}
	x.of.wakeFirst()
	x.inQueue = false
}

// Leave gives the turn up at now: the queue behind it advances. A granted turn is lost if another
// one has been granted since. A second Leave does nothing.
func (x *Turn) Leave(now int64) {
	if x.of == nil {
		return
	}
	t := x.of
	t.lock.Lock()
	defer t.lock.Unlock()
	if !t.Empty() {
		t.look(now)
	}
	switch {
	case x.state == granted:
		t.undo(x.at, x.before, x)
	case x.state != waits:
	case x.inShare:
		t.lose(x, gone)
		t.takeUp(t.seen, x.waiter.share)
		t.advanceQueue()
	default:
		t.queue.remove(x)
		t.left(x)
		t.advanceQueue()
	}
	x.state, x.inQueue = gone, false
}

// Drop unlinks the turn from its Pacer, so that it keeps nothing alive. A turn that is still in the
// queue is given up at now.
func (x *Turn) Drop(now int64) {
	if x.inQueue {
		x.Leave(now)
	}
	x.of, x.lost = nil, waits
	if x.waiter != nil {
		*x.waiter = Waiter{}
	}
}
