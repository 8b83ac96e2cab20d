package meter

import (
	"time"

	"github.com/penstock-go/penstock/internal/shared"
)

// Pacer spaces calls evenly: each has its turn one cost after the previous one, and the first after
// an idle time runs immediately, regardless of its cost. Idle time earns no credit, except for a
// burst; see [Pacer.SetBurst]. Calls that wait
// for their turns form a queue: first come, first served, except for prioritized calls; see ranks.
// A call that leaves makes no gap: the calls behind it advance. A Pacer is safe for concurrent use,
// under the lock that it was made with; some methods require their caller to hold it.
//
// # Which call runs when
//
// Under the lock, ran is the latest granted turn, and the queued calls follow it, each by its cost
// after the previous one. So turns are not stored: each is ran plus the costs up to it, and when a
// call leaves, all calls behind it advance at that instant. Due turns are granted in this order by
// the first call to look: a call that joins, leaves, or has slept until then. A turn is granted
// with its due time, not with the time of the look. So a call that is woken late delays no other,
// and slightly late timers don't reduce the rate.
//
// But after a stall of the process, all calls whose turns became due during it would run at once.
// So if an awaited call looks at its turn later than both its cost and lateness allow, its turn is
// postponed to the time of that look, and all calls behind it follow, each by its cost: the lost
// time is not made up for. While calls look in time, no turn is postponed. After a stall, the turns
// of calls that run at once lie no further apart than the longer of cost and lateness, because the
// first of them was not later than that. A call that doesn't wait for its turn is never late, nor
// is one that still sleeps for something else.
//
// A granted turn is final. The next turn is at least its own cost later, and never advances
// further. Departures never move it earlier than the time the calls left. ran only moves forward,
// except that a call that leaves with the latest granted turn moves it back: that call doesn't run.
// So two calls that run are never closer than the cost of the later one, and no call waits for a
// turn that nobody takes.
//
// # Bursts
//
// With a burst, a turn may lie in the past, by at most the time that the units of the burst take: a call
// whose turn has passed runs at once, and uses up idle time. So the calls that run in an interval cost
// at most its length, the burst, and one call. A call that waits runs at its turn as without a burst.
//
// # Which calls are pushed back
//
// A prioritized call is placed after the latest granted turn and before later ones: all due turns
// are granted before its place is determined. It pushes back the calls that it passes by its cost.
// If it runs immediately although another was to run next, it pushes them back by the time since
// the latest turn, if that is longer, and they pay with that. Only prioritized calls push back
// queued calls, and only within the bounds of ranks.
//
// # Which calls are woken
//
// A call sleeps until the turn announced when it joined. If no call leaves or jumps ahead, that is
// right and no call wakes another. A call that was passed wakes too early, learns by how much its
// turn was pushed back, and goes back to sleep; so a prioritized call wakes no other. A call whose
// turn was postponed learns of it in the same way. A call that has looked never wakes too early
// because of calls that leave: they only make its turn earlier.
//
// When a call leaves, the calls behind it sleep too long by its cost. Only the first in the queue
// is woken immediately; each of the others is woken when it becomes the first. So a departure costs
// the same regardless of the number of calls behind it, and each of them is woken once, unless
// another call leaves in between. Invariant, under the lock: if any call in the queue sleeps too
// long, the first one sleeps until its turn at most, and looks then; it grants the due turns and
// wakes the next.
//
// A call is woken under the lock: its alarm is valid while it is in the queue, and may serve
// another call a moment later.
type Pacer struct {
	lock *shared.Mutex

	ran     Moment // latest granted turn
	slack   int64  // age that a new turn may have, in ns: a burst's time, or 0
	unit    Moment // cost of a unit of the burst
	queue   ranks[*Turn]
	spotted spot[*Turn] // by the latest Next for a prioritized call, if others waited

	awaited int // calls in the queue that won't run before their turn

	fair *shareTurns // calls that wait in shares; nil until one comes

	came    uint64 // number of calls that ever joined the queue
	late    uint64 // number of the last call that may sleep too long; 0 if none does
	seen    int64  // latest time of a look while there was a queue
	spent   Moment // turns come after it once no call waits; longAgo if none has to
	delayed Moment // sum of all postponements
}

// lateness is the delay up to which a turn is granted with its due time: above the delay of timers
// and schedulers on a busy machine, and far below a stall.
const lateness = int64(50 * time.Millisecond)

// MakePacer returns a Pacer without granted turns. The lock guards it, and may guard other things
// too.
func MakePacer(lock *shared.Mutex) Pacer {
	return Pacer{lock: lock, ran: LongAgo(), seen: longAgo, spent: LongAgo()}
}

// Last returns the latest turn, granted or queued. The caller holds the lock.
func (t *Pacer) Last() Moment {
	last := t.ran.plus(t.queue.cost)
	if t.fair != nil {
		last = last.plus(t.fair.cost)
	}
	return last
}

// Wait returns the time that a call at now would wait for its turn; first means that it is
// prioritized. The caller holds the lock.
func (t *Pacer) Wait(now int64, cost Moment, first bool) time.Duration {
	if t.queue.length > 0 && (first || t.due(now)) && !t.shares() {
		_, wait := t.Next(now, cost, first)
		return wait
	}
	return t.Last().Wait(now, t.slack, cost)
}

// Follow reports whether all future turns come after m, or will after [Pacer.NotBefore], even if
// calls leave: the queue is empty, or a turn as late as m was granted. The caller holds the lock.
func (t *Pacer) Follow(m Moment) bool { return t.Empty() || t.ran.Later(m) == t.ran }

// NotBefore makes all future turns come after m, or if calls wait, the turns after these. The caller holds
// the lock.
func (t *Pacer) NotBefore(m Moment) {
	if t.Empty() {
		t.ran = t.ran.Later(m)
	} else {
		t.spent = t.spent.Later(m)
	}
}

// SetBurst sets the time, in ns, that idle time may save up, and the cost of a unit. If that cost has
// changed, the units that are missing from the burst stay missing, and a burst that a Pacer gets after
// its first turn is saved up first. The caller holds the lock.
func (t *Pacer) SetBurst(now, burst int64, unit Moment) {
	old, before := t.slack, t.unit
	if old == burst && before == unit {
		return
	}
	t.slack, t.unit = burst, unit
	switch missing := t.ran.minus(Moment{ns: now - old}); {
	case burst == 0 || t.ran == LongAgo():
	case old == 0:
		t.NotBefore(Moment{ns: now})
	case unit != before && missing.ns >= 0:
		t.NotBefore(Moment{ns: now - burst}.plus(missing.scaled(unit, before)))
	}
}

// StartBurst is SetBurst for a Pacer without turns, whose burst is full.
func (t *Pacer) StartBurst(burst int64, unit Moment) { t.slack, t.unit = burst, unit }

// BurstTime returns the time that a burst of n units takes up, at the cost of one.
func BurstTime(n int64, unit Moment) int64 { return unit.TimesMany(n).ns }

// InheritBurst gives a Pacer the burst of another one, whose turns it follows. The caller holds the lock.
func (t *Pacer) InheritBurst(other *Pacer) { t.slack, t.unit = other.slack, other.unit }

// Rested reports whether a call of that cost at now would run no earlier if none had run before. The
// caller holds the lock.
func (t *Pacer) Rested(now int64, cost Moment) bool { return t.Wait(now-t.slack, cost, false) == 0 }

// Paid returns the end of the time that the turns given so far take up: the latest turn, plus the time
// of the burst. The caller holds the lock.
func (t *Pacer) Paid() Moment { return t.Last().plus(Moment{ns: t.slack}) }

// Left returns the number of calls of that cost, at most 2^30, that would get turns at now within
// maxWait. The caller holds the lock.
func (t *Pacer) Left(now int64, cost Moment, maxWait time.Duration) int64 {
	return t.Last().TurnsWithin(now, t.slack, cost, maxWait)
}

// Next returns the turn that a call at now would get, and the wait for it; first means that the
// call is prioritized. The caller holds the lock.
func (t *Pacer) Next(now int64, cost Moment, first bool) (at Moment, wait time.Duration) {
	if t.fair != nil {
		t.unshare(now)
	}
	if t.queue.length > 0 && (first || t.due(now)) {
		t.look(now)
	}
	last := t.Last()
	if first && t.queue.length > 0 {
		t.spotted = t.spot(now, cost)
		last = t.ran.plus(t.spotted.ahead)
	}
	at = last.plus(cost).orNow(now - t.slack)
	return at, time.Duration(max(0, at.ns-now))
}

// spot returns the spot for a prioritized call.
func (t *Pacer) spot(now int64, cost Moment) spot[*Turn] {
	return t.queue.spot(cost, t.ran.plus(cost).orNow(now-t.slack).minus(t.ran))
}

// Empty reports whether no call waits. The caller holds the lock.
func (t *Pacer) Empty() bool { return t.queue.length == 0 && !t.shares() }

// shares reports whether calls wait in shares.
func (t *Pacer) shares() bool { return t.fair != nil && t.fair.waiting > 0 }

// Awaited reports whether any call in the queue won't run before its turn. The caller holds the
// lock.
func (t *Pacer) Awaited() bool { return t.awaited > 0 }

// Grant gives a call the turn returned by Next, which is due. It returns the previous granted turn.
// The caller holds the lock.
func (t *Pacer) Grant(at Moment) (before Moment) {
	if t.queue.length > 0 { // otherwise the call passes no other
		t.queue.overtakeAtOnce(at.minus(t.ran))
	}
	before, t.ran = t.ran, at
	return before
}

// GiveUp takes back at now a granted turn, and restores the one granted before. The turn is lost if
// another one has been granted since.
func (t *Pacer) GiveUp(at, before Moment, now int64) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if !t.Empty() {
		t.look(now)
	}
	t.undo(at, before, nil)
}

// undo is like GiveUp, but at the time of the last look. x is the call if it waited for the turn. It
// needs the lock.
func (t *Pacer) undo(at, before Moment, x *Turn) {
	if t.ran != at {
		return
	}
	t.ran = before
	switch {
	case x == nil || !x.ofShare():
		t.queue.undo(at.minus(before))
	case t.fair != nil:
		t.fair.giveBackTurn(x.waiter.share, x.waiter.cost)
		t.takeUp(t.seen, x.waiter.share)
	}
	t.advanceQueue()
}

// Charge takes a turn of that cost that no call runs at, behind all others, but not in more than 73
// years. So the next call comes that much later, also if the queue is empty. The caller holds the lock.
func (t *Pacer) Charge(now int64, cost Moment) {
	if t.queue.length > 0 {
		t.look(now)
	}
	from := now - t.slack
	last := t.Last().orNow(from)
	at := last.plus(cost)
	if limit := (Moment{ns: now}).plus(Moment{ns: maxCost}); limit.before(at) { // several would overflow
		at = limit.Later(last)
	}
	switch {
	case t.queue.length == 0:
		t.ran = at
	case at != last:
		t.Queue(&Turn{debt: true, charged: from}, now, at, at.minus(last), false)
	}
}

// Longest is the longest wait that a Pacer tells from an endless one. A call that accepts any wait
// must not accept a longer one: the sum of several costs would overflow.
const Longest = time.Duration(maxCost - 1)

// Queue adds a call to the queue, for the turn returned by Next. It stays there until [Turn.Come]
// grants its turn, or [Turn.Run] or [Turn.Leave] remove it. The caller holds the lock.
func (t *Pacer) Queue(x *Turn, now int64, at, cost Moment, first bool) {
	t.seen = max(t.seen, now)
	t.came++
	x.of, x.at, x.until, x.number, x.state = t, at, at.ns, t.came, waits
	x.inQueue, x.lingers, x.lost, x.delayed = true, false, waits, t.delayed
	if x.Awaited {
		t.awaited++
	}
	switch {
	case !first:
		t.queue.add(x, cost)
	case t.queue.length > 0:
		t.queue.overtake(x, cost, t.spotted)
	default:
		t.queue.overtake(x, cost, spot[*Turn]{})
	}
}

// The methods below need the lock.

// look records the time, which only moves forward, and grants the turns due by the latest time that
// any call has seen: if a call that was delayed after it read the clock found overdue turns in the
// queue, they would be postponed to now.
func (t *Pacer) look(now int64) {
	t.seen = max(t.seen, now)
	t.advance(t.seen)
}

// advance grants the turns that are due by now.
func (t *Pacer) advance(now int64) {
	for t.due(now) {
		t.grantDue(now)
	}
	if t.queue.length == 0 {
		t.ran = t.ran.Later(t.spent)
	}
	t.wakeFirst()
}

// grantDue grants the first call in the queue its due turn. If the turn is overdue for too long, it
// and all turns behind it are postponed.
func (t *Pacer) grantDue(now int64) {
	x, cost := t.first()
	due := t.ran.plus(cost)
	if late := now - max(due.ns, x.until); late <= max(cost.ns, lateness) || !x.Awaited {
		t.grant(x, longAgo)
		return
	}
	t.grant(x, now)
	t.delayed = t.delayed.plus(t.ran.minus(due))
}

// due reports whether the turn of the first call in the queue is due by now.
func (t *Pacer) due(now int64) bool {
	if x := t.queue.first(); x != nil || t.fair == nil {
		return x != nil && t.ran.plus(x.cost).ns <= now
	}
	t.loseTheLate(t.ran)
	x, cost := t.first()
	return x != nil && t.ran.plus(cost).ns <= now
}

// first returns the call whose turn is next, and its cost; nil if none waits. Calls in shares come
// after all others.
func (t *Pacer) first() (x *Turn, cost Moment) {
	if x = t.queue.first(); x != nil {
		return x, x.cost
	}
	if !t.shares() {
		return nil, Moment{}
	}
	return t.fair.next()
}

// grant gives the first call in the queue its turn, no earlier than notBefore, less the burst.
func (t *Pacer) grant(x *Turn, notBefore int64) {
	cost := x.cost
	if x.inShare {
		cost = t.fair.dequeue(x, granted)
	} else {
		t.queue.serve(x)
	}
	t.left(x)
	x.state = granted
	x.before, x.at = t.ran, t.ran.plus(cost).orNow(notBefore-t.slack)
	t.ran = x.at
	if !x.lingers { // otherwise waking doesn't help the call
		t.wakeFor(x, x.at)
	}
}

// left is called for each call that leaves the queue.
func (t *Pacer) left(x *Turn) {
	if x.Awaited {
		t.awaited--
	}
}

// wakeFirst makes the first call in the queue wake at its turn if any call sleeps too long.
func (t *Pacer) wakeFirst() {
	if t.fair != nil {
		t.wakeNextShare()
	}
	if t.late == 0 {
		return
	}
	x, before := t.queue.first(), t.ran
	for x != nil && x.debt { // the call behind it looks instead
		x, before = x.after, before.plus(x.cost)
	}
	if x == nil || x.number > t.late && !x.place.first { // so no call behind it sleeps too long either
		t.late = 0
		return
	}
	t.announced(x)
	t.wakeFor(x, before.plus(x.cost))
}

// announced records that the call knows its current turn.
func (t *Pacer) announced(x *Turn) {
	t.queue.announced(x)
	x.delayed = t.delayed
}

// wakeFor makes the call wake for its turn if it would sleep longer.
func (t *Pacer) wakeFor(x *Turn, at Moment) {
	x.at = at
	if at.ns >= x.until {
		return
	}
	x.until = at.ns
	if x.alarm != nil {
		x.alarm.WakeAt(at.ns)
	}
}

// advanceQueue advances the queue after a call left it.
func (t *Pacer) advanceQueue() {
	if first := t.queue.first(); first != nil {
		t.late = t.came
		if first.debt { // it can't be paid with time in which the calls that have left waited
			t.ran = t.ran.orNow(first.charged)
		}
	}
	t.takeUp(t.seen, nil)
	t.advance(t.seen)
}

// takeUp grants the first call its turn at the time at which others made room for it, if it could
// have run earlier otherwise. The time lost is charged to the share that made it wait, if any.
func (t *Pacer) takeUp(at int64, blamed *Share) {
	if t.fair != nil {
		t.loseTheLate(Moment{ns: at})
	}
	x, cost := t.first()
	if x == nil || t.ran.plus(cost).ns >= at {
		return
	}
	if blamed != nil && x.inShare {
		t.fair.charge(blamed, Moment{ns: at}.minus(t.ran.plus(cost).orNow(x.arrived)))
	}
	t.grant(x, at)
}
