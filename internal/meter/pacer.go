package meter

import (
	"time"

	"github.com/penstock-go/penstock/internal/shared"
)

// Pacer spaces calls evenly: each has its turn one cost after the one before it, and the first
// after an idle time comes immediately, whatever its cost. Idle time earns no credit. Calls whose
// turn is to come form a queue: first come, first served, but for those that are prioritized, see
// ranks. A call that leaves it leaves no gap: those behind move up. It is safe for concurrent
// use, by the lock that it was made with; some methods want their caller to hold it.
//
// # Which call runs when
//
// Under the lock, ran is the latest turn that was granted, and those in the queue follow
// it, each by its cost after the one before. So their turns are not stored: each is ran plus the
// costs up to it, and when somebody leaves, all behind have moved up at that instant. A turn is
// granted, in this order, when its time has come, by whoever is first to look: somebody who
// comes, leaves, or has slept until then. It is granted with the time that it was due, not with
// the time of the look. So a call that is woken late delays nobody, and timers that are late by a
// little lose nothing of the rate.
//
// But if the process stood still, all whose turns came meanwhile would run at once. So where a call
// that was to look, as its turn came, has not done so for longer than its cost, and than lateness, its
// turn moves on to the time of the look that finds it, and all behind it follow, each by its cost: the
// time that was lost is not made up for. As long as calls look in time, no turn moves on. After a stall
// the turns of those that run at once lie no further apart than the longer of the two: the first one was
// not later than that. A call that doesn't wait for its turn is never late, nor is one before the time
// until which it sleeps for something else.
//
// A turn that is granted stands. The next one is at least its own cost later, and it
// moves up only to then. Where those who left would have it earlier than the time at which
// they left, it is at that time. ran only moves forward, except that a call which leaves
// with the turn granted latest moves it to where it was before: that call doesn't run.
// So two calls that run are never closer than the cost of the later one, and nobody waits
// for turns that nobody takes.
//
// # Which calls are pushed back
//
// A call that is prioritized comes between the latest turn that was granted and those to come:
// all turns whose time has come are granted before its place is determined. It pushes those that
// it overtakes back by its cost. If it runs immediately although somebody else was to run next,
// it pushes them back by the time since the latest turn, if that is longer, and that is what they
// pay with. A place in the queue or a turn that was granted is pushed back by no call that isn't
// prioritized, and by no more than ranks says.
//
// # Which calls are woken
//
// A call sleeps until the turn that it was told when it came. If nobody leaves or overtakes, that
// is right and nobody wakes anybody. A call that was overtaken wakes too early, is told how much
// later its turn is by all that have overtaken it since, and sleeps on; so it need not be told
// before, and one that overtakes wakes nobody. A call whose turn has moved on learns of it likewise.
// What a call knows of its turn is never too early after it has looked: others that leave only make
// it earlier.
//
// When somebody leaves, those behind sleep too long by that. Only the first in the queue is told
// immediately; each of the others is told when it is first. So a call that leaves costs no more for
// those behind it, and each is told once, unless somebody leaves in between, and then one of the calls
// that leave pays for it. Invariant, under the lock: if anybody in the queue sleeps for too long, its
// first sleeps until its turn at most, and looks then; it grants what is due, and tells the next.
//
// A call is told under the lock: what it is told by is there as long as it is in the
// queue, and may serve another call a moment later.
type Pacer struct {
	lock *shared.Mutex

	ran   Moment // the latest turn that was granted
	queue ranks[*Turn]

	awaited int // those in the queue whose calls don't run before

	came    uint64 // how many ever came to the queue
	late    uint64 // the last of those who may sleep for too long, by that number; 0 if nobody does
	seen    int64  // the latest time at which anybody looked while there was a queue
	delayed Moment // by how much turns have moved on in all
}

// lateness is by how much a turn may be late and yet be granted with the time that it was due: above
// what timers and schedulers take on a busy machine, and far below what anybody would call a stall.
const lateness = int64(50 * time.Millisecond)

// MakePacer returns Turns of which none has been given. The lock guards them, and may guard other
// things too.
func MakePacer(lock *shared.Mutex) Pacer { return Pacer{lock: lock, ran: LongAgo(), seen: longAgo} }

// Last is the latest turn of all that were given. The caller holds the lock.
func (t *Pacer) Last() Moment { return t.ran.plus(t.queue.cost) }

// Wait is how long a call at now would wait for its turn, if it is prioritized or not. The
// caller holds the lock.
func (t *Pacer) Wait(now int64, cost Moment, first bool) time.Duration {
	if t.queue.length > 0 && (first || t.due(now)) {
		_, wait := t.Next(now, cost, first)
		return wait
	}
	return t.Last().Wait(now, cost)
}

// Follow reports whether all turns that are given from now on come after m, or will if
// [Pacer.NotBefore] is told so, whoever leaves: nobody is in the queue, or a turn as late
// as m was granted. The caller holds the lock.
func (t *Pacer) Follow(m Moment) bool { return t.queue.length == 0 || t.ran.Later(m) == t.ran }

// NotBefore makes all turns that are given from now on come after m. [Pacer.Follow] must have
// returned true for m. The caller holds the lock.
func (t *Pacer) NotBefore(m Moment) {
	if t.queue.length == 0 {
		t.ran = t.ran.Later(m)
	}
}

// Next is the turn that a call at now would get, prioritized or not, and how long it would
// wait for it. The caller holds the lock.
func (t *Pacer) Next(now int64, cost Moment, first bool) (at Moment, wait time.Duration) {
	if t.queue.length > 0 && (first || t.due(now)) {
		t.look(now)
	}
	last := t.Last()
	if first && t.queue.length > 0 {
		last = t.ran.plus(t.spot(now, cost).ahead)
	}
	at = last.plus(cost).orNow(now)
	return at, time.Duration(at.ns - now)
}

// spot is where a prioritized call would stand.
func (t *Pacer) spot(now int64, cost Moment) spot[*Turn] {
	return t.queue.spot(cost, t.ran.plus(cost).orNow(now).minus(t.ran))
}

// Empty reports whether nobody is in the queue. The caller holds the lock.
func (t *Pacer) Empty() bool { return t.queue.length == 0 }

// Awaited reports whether a call in the queue doesn't run before its turn. The caller holds
// the lock.
func (t *Pacer) Awaited() bool { return t.awaited > 0 }

// Grant gives a call the turn that Next has said, whose time has come. It returns what was granted
// latest before. The caller holds the lock.
func (t *Pacer) Grant(at Moment) (before Moment) {
	if t.queue.length > 0 { // or nobody would be: it overtakes them
		t.queue.overtakeAtOnce(at.minus(t.ran))
	}
	before, t.ran = t.ran, at
	return before
}

// GiveUp takes back at now a turn that was granted, and what was granted latest before. It
// is lost if another one has been granted since.
func (t *Pacer) GiveUp(at, before Moment, now int64) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.queue.length > 0 {
		t.look(now)
	}
	t.undo(at, before)
}

// undo is GiveUp under the lock, at the time of the last look.
func (t *Pacer) undo(at, before Moment) {
	if t.ran == at {
		t.ran = before
		t.queue.undo(at.minus(before))
		t.moveUp()
	}
}

// Queue puts a call into the queue, for the turn that Next has said. It is there until
// [Turn.Come] says that its turn has come, or [Turn.Run] or [Turn.Leave] take it out. The
// caller holds the lock.
func (t *Pacer) Queue(x *Turn, now int64, at, cost Moment, first bool) {
	t.seen = max(t.seen, now)
	t.came++
	x.of, x.at, x.until, x.number, x.state = t, at, at.ns, t.came, waits
	x.inQueue, x.lingers, x.delayed = true, false, t.delayed
	if x.Awaited {
		t.awaited++
	}
	if first {
		t.queue.overtake(x, cost, t.spot(now, cost))
	} else {
		t.queue.add(x, cost)
	}
}

// The methods below need the lock.

// look notes the time, which only moves forward, and grants what has come by the latest
// that anybody has brought along: a call that was held up since it read the clock must not
// find turns in the queue that came long ago, or they would be granted anew from now on.
func (t *Pacer) look(now int64) {
	t.seen = max(t.seen, now)
	t.advance(t.seen)
}

// advance grants the turns that have come by now.
func (t *Pacer) advance(now int64) {
	for t.due(now) {
		t.grantDue(now)
	}
	t.rouse()
}

// grantDue grants the first in the queue its turn, which has come. If that is too late by now, it and
// all behind it move on.
func (t *Pacer) grantDue(now int64) {
	x := t.queue.first()
	due := t.ran.plus(x.cost)
	if late := now - max(due.ns, x.until); late <= max(x.cost.ns, lateness) || !x.Awaited {
		t.grant(x, longAgo)
		return
	}
	t.grant(x, now)
	t.delayed = t.delayed.plus(t.ran.minus(due))
}

// due reports whether the turn of the first in the queue has come by now.
func (t *Pacer) due(now int64) bool {
	return t.queue.length > 0 && t.ran.plus(t.queue.first().cost).ns <= now
}

// grant gives the first in the queue its turn, not before a time.
func (t *Pacer) grant(x *Turn, notBefore int64) {
	t.queue.serve(x)
	t.left(x)
	x.state = granted
	x.before, x.at = t.ran, t.ran.plus(x.cost).orNow(notBefore)
	t.ran = x.at
	if !x.lingers { // or it is of no use to the call
		t.tell(x, x.at)
	}
}

// left is told of each that is in the queue no more.
func (t *Pacer) left(x *Turn) {
	if x.Awaited {
		t.awaited--
	}
}

// rouse tells the first in the queue when its turn comes, if anybody sleeps for too long.
func (t *Pacer) rouse() {
	if t.late == 0 {
		return
	}
	x := t.queue.first()
	if x == nil || x.number > t.late && !x.place.first { // nor is anybody behind it who came before
		t.late = 0
		return
	}
	t.told(x)
	t.tell(x, t.ran.plus(x.cost))
}

// told notes that the call knows its turn as of now.
func (t *Pacer) told(x *Turn) {
	t.queue.told(x)
	x.delayed = t.delayed
}

// tell has the call wake for its turn if it sleeps for longer.
func (t *Pacer) tell(x *Turn, at Moment) {
	x.at = at
	if at.ns >= x.until {
		return
	}
	x.until = at.ns
	if x.alarm != nil {
		x.alarm.MoveUp(at.ns)
	}
}

// moveUp has those in the queue move up, because somebody left.
func (t *Pacer) moveUp() {
	if t.queue.length == 0 {
		return
	}
	t.late = t.came
	if first := t.queue.first(); t.ran.plus(first.cost).ns < t.seen {
		t.grant(first, t.seen)
	}
	t.advance(t.seen)
}
