package meter

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

func TestCost(t *testing.T) {
	// Found by a schedule: two calls without a cost got the same turn, and the first to give up its
	// turn also took away the other's.
	assert.Equal(t, Moment{frac: 1}, Cost(1, 0))
	assert.Equal(t, Moment{frac: 1}, Cost(1, 1e-300))
	assert.Equal(t, Moment{ns: 1}, Cost(1, 1))
	assert.Equal(t, Moment{ns: 4, frac: 1 << 31}, Cost(3, 1.5))
	for _, huge := range []float64{1e19, 1e300, math.Inf(1), math.NaN()} {
		assert.Equal(t, Moment{ns: maxCost}, Cost(1, huge))
	}
}

func TestMoments(t *testing.T) {
	for _, tt := range []struct{ a, b, sum Moment }{
		{Moment{}, Moment{}, Moment{}},
		{Moment{1, 1 << 31}, Moment{2, 1 << 31}, Moment{4, 0}},
		{Moment{-5, 1}, Moment{2, 1<<32 - 1}, Moment{-2, 0}},
		{LongAgo(), Moment{ns: maxCost}, Moment{ns: longAgo + maxCost}},
	} {
		assert.Equal(t, tt.sum, tt.a.plus(tt.b))
		assert.Equal(t, tt.a, tt.sum.minus(tt.b))
		assert.Equal(t, tt.b, tt.sum.minus(tt.a))
	}
	assert.Equal(t, Moment{7, 1}, Moment{7, 1}.orNow(7), "a caller exactly on time keeps the fraction")
	assert.Equal(t, Moment{8, 0}, Moment{7, 1}.orNow(8))
	assert.Equal(t, Moment{7, 1}, Moment{7, 1}.Later(Moment{7, 0}))
	assert.Equal(t, Moment{7, 1}, Moment{7, 0}.Later(Moment{7, 1}))
}

// caller is a call in a queue. Its next look is at until, or at called if that is earlier.
type caller struct {
	Turn
	until, called int64
	ran           bool
}

// WakeAt records the time.
func (c *caller) WakeAt(to int64) { c.called = min(c.called, to) }

// looks returns the time of the call's next look.
func (c *caller) looks() int64 { return min(c.until, c.called) }

// spaced is a queue whose calls cost 100 each.
type spaced struct {
	t    *testing.T
	mu   shared.Mutex
	q    Pacer
	here []*caller
}

func newSpaced(t *testing.T) *spaced {
	s := &spaced{t: t}
	s.q = MakePacer(&s.mu)
	return s
}

// comes makes a call of that many units take a turn at now.
func (s *spaced) comes(now, units int64) *caller {
	s.t.Helper()
	return s.takes(now, units, false)
}

// overtakes makes a prioritized call take a turn at now.
func (s *spaced) overtakes(now, units int64) *caller {
	s.t.Helper()
	return s.takes(now, units, true)
}

func (s *spaced) takes(now, units int64, first bool) *caller {
	s.t.Helper()
	c := &caller{called: math.MaxInt64}
	c.Turn = MakeTurn(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	cost := Cost(units, 100)
	require.Equal(s.t, s.q.Wait(now, cost, first), s.q.Wait(now, cost, first))
	at, wait := s.q.Next(now, cost, first)
	require.Equal(s.t, wait, s.q.Wait(now, cost, first))
	if c.until = now + int64(wait); wait == 0 {
		c.at, c.before, c.state, c.of, c.ran = at, s.q.Grant(at), granted, &s.q, true
	} else {
		s.q.Queue(&c.Turn, now, at, cost, first)
	}
	s.here = append(s.here, c)
	return c
}

// looks returns the times of the next looks of the calls in the queue.
func (s *spaced) looks() (at []int64) {
	for _, c := range s.here {
		if c.state == waits {
			at = append(at, c.looks())
		}
	}
	return at
}

// Some waiting calls leave at 50. The test checks when the others look then, and when they run.
func TestPacerAdvancesQueue(t *testing.T) {
	for _, tt := range []struct {
		name   string
		leaves []int // calls that leave, in this order
		looks  []int64
		runs   []int64
	}{
		{"nobody", nil, []int64{100, 200, 300, 400}, []int64{100, 200, 300, 400}},
		{"the first", []int{0}, []int64{100, 300, 400}, []int64{100, 200, 300}},
		{"one in the middle", []int{1}, []int64{100, 300, 400}, []int64{100, 200, 300}},
		{"the last", []int{3}, []int64{100, 200, 300}, []int64{100, 200, 300}},
		{"the first two", []int{0, 1}, []int64{100, 400}, []int64{100, 200}},
		{"the last two, from the front", []int{2, 3}, []int64{100, 200}, []int64{100, 200}},
		{"the last two, from the back", []int{3, 2}, []int64{100, 200}, []int64{100, 200}},
		{"all but the last, from the back", []int{2, 1, 0}, []int64{100}, []int64{100}},
		{"all, from the front", []int{0, 1, 2, 3}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSpaced(t)
			s.comes(0, 1)
			for range 4 {
				s.comes(0, 1)
			}
			for _, i := range tt.leaves {
				s.here[1+i].Leave(50)
			}
			assert.Equal(t, tt.looks, s.looks(), "only the first is woken")
			assert.Equal(t, tt.runs, s.runs())
			assert.Zero(t, s.q.queue.cost)
		})
	}
}

// runs lets every call look at its time until all have run, and returns the times at which they
// ran.
func (s *spaced) runs() (at []int64) {
	for {
		next := -1
		for i, c := range s.here {
			if !c.ran && c.state != gone && (next < 0 || c.looks() < s.here[next].looks()) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		c := s.here[next]
		now := c.looks()
		c.called = math.MaxInt64
		c.until = c.Come(now, now)
		if c.state == granted {
			require.Equal(s.t, now, c.at.ns, "a call runs at its turn")
			at = append(at, now)
			c.ran = true
		}
	}
	return at
}

// If a departure would advance a turn to before the time of the departure, the turn is at that
// time, and the calls behind keep their distance to it.
func TestNobodyMovesUpBeforeTheOtherLeft(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	big := s.comes(0, 10) // at 1000
	small := s.comes(0, 1)
	next := s.comes(0, 2)
	big.Leave(700)
	assert.Equal(t, Moment{ns: 700}, small.at)
	assert.EqualValues(t, 700, small.looks())
	assert.EqualValues(t, 900, next.looks())
	assert.EqualValues(t, 1000, s.comes(750, 1).until)
}

// A granted turn that is not used passes to the next call, unless another turn has been granted
// since.
func TestGrantedTurnIsGivenUp(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	a, b, c := s.comes(0, 1), s.comes(0, 1), s.comes(0, 1)
	assert.EqualValues(t, 100, a.Come(100, 100))
	a.Leave(130) // as a breaker does
	assert.Equal(t, granted, b.state)
	assert.EqualValues(t, 130, b.looks())
	assert.EqualValues(t, 230, c.looks())
	c.Come(230, 230)
	b.Leave(240)
	assert.EqualValues(t, 330, s.comes(240, 1).until, "c ran at 230")
	b.Leave(250)
	assert.EqualValues(t, 430, s.comes(250, 1).until, "a second Leave does nothing")
}

// known bug 147: the turn of a call that has not looked since may still be given up. A call that
// joined in the meantime advances then, even if it was to stay.
func TestTurnOfACallThatHasNotLooked(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	big, small := s.comes(0, 3), s.comes(0, 1)
	big.Leave(150)
	require.Equal(t, granted, small.state)
	last := s.comes(150, 1)
	small.Leave(150)
	assert.EqualValues(t, 150, last.looks())
}

// If the first call doesn't run, the queue is as if it had never joined.
func TestNoTraceOfACallThatLeaves(t *testing.T) {
	s := newSpaced(t)
	s.comes(5, 3).Leave(5)
	assert.Equal(t, LongAgo(), s.q.Last())
	assert.EqualValues(t, 6, s.comes(6, 7).until)
}

// A due turn is granted with its due time, no matter which call looks: a call that wakes late
// delays no other.
func TestLateCallDelaysNobody(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	a, b, c := s.comes(0, 1), s.comes(0, 1), s.comes(0, 1)
	d := s.comes(250, 1)
	assert.EqualValues(t, 400, d.until)
	assert.EqualValues(t, 200, b.Come(260, 200))
	assert.Equal(t, []state{granted, granted, waits}, []state{a.state, b.state, c.state})
	assert.EqualValues(t, 100, a.at.ns)
	assert.EqualValues(t, 650, s.comes(650, 1).until, "no call is before it")
}

// A departure takes effect at the latest time that other calls have seen, if its own time is older.
func TestCallThatLeavesWithAnOlderTime(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	big, small := s.comes(0, 10), s.comes(0, 1)
	s.comes(500, 1)
	big.Leave(300)
	assert.Equal(t, Moment{ns: 500}, small.at)
}

// A call that was delayed after it read the clock pushes no call back: turns due by the latest time
// that other calls have seen keep their due times. known bug 133
func TestCallThatLeavesLatePushesNobodyBack(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	late, due, next := s.comes(0, 1), s.comes(0, 1), s.comes(0, 1)
	last := s.comes(250, 1)
	late.Leave(50)
	assert.Equal(t, Moment{ns: 200}, due.at)
	assert.EqualValues(t, []int64{300, 400}, []int64{next.looks(), last.looks()})
	assert.EqualValues(t, 300, next.Come(300, 300))
	assert.EqualValues(t, 400, last.Come(400, 400))
}

// A call that sleeps beyond its turn, because it also waits for something else, wakes at its turn
// only if another call behind it sleeps too long.
func TestCallThatLingersTellsTheNext(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	lingers, a, b := s.comes(0, 1), s.comes(0, 1), s.comes(0, 1)
	lingers.Linger(5000)
	require.True(t, lingers.lingers)
	assert.Equal(t, int64(math.MaxInt64), lingers.called)
	a.Leave(20)
	assert.EqualValues(t, 100, lingers.called, "b sleeps until 300, and its turn is at 200")
	lingers.Come(100, 100)
	assert.EqualValues(t, 200, b.looks())
	lingers.Linger(5000)
	assert.False(t, lingers.lingers, "its turn is due")
}

// A turn that was given up no longer delays its call, even if the call has taken another turn
// since. Found by a nightly schedule.
func TestATurnThatWasGivenUpIsOver(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	waits, runs := s.comes(0, 3), s.comes(0, 1)
	waits.Leave(0)
	assert.LessOrEqual(t, waits.Come(0, 0), int64(0), "not at 300")
	runs.Leave(150)
	runs.Leave(150)
	assert.LessOrEqual(t, runs.Come(150, 150), int64(150))
}

// A call that runs before its time is granted its turn, and so are all calls before it.
func TestCallRunsBeforeItsTime(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	a, b, c := s.comes(0, 1), s.comes(0, 1), s.comes(0, 1)
	b.Run()
	b.Run()
	assert.Equal(t, []state{granted, granted, waits}, []state{a.state, b.state, c.state})
	assert.EqualValues(t, 100, a.looks())
	a.Leave(10)
	assert.EqualValues(t, 300, c.looks(), "b has run, so a's departure has no effect")
	b.Drop(10)
	c.Drop(10)
	assert.Zero(t, s.q.queue.length)
	assert.Equal(t, Moment{ns: 200}, s.q.Last())
}

// The first call in the queue advances as well if an earlier granted turn is given up.
func TestFirstInQueueMovesUp(t *testing.T) {
	s := newSpaced(t)
	runs := s.comes(0, 1)
	first, next := s.comes(0, 1), s.comes(0, 1)
	runs.Leave(50)
	assert.EqualValues(t, 50, first.looks())
	assert.EqualValues(t, 150, next.looks())
}

// If no call has looked for a long time, the due turns are postponed, and all turns behind them
// too; otherwise calls run at their announced turns.
func TestTurnsMoveOnAfterAStall(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, tt := range []struct {
		name  string
		cost  int64
		until int64 // next look of the waiting calls, one after the other, unless their turn is later
		waits int
		runs  []int64
	}{
		{"as late as timers are", 10 * ms, 60 * ms, 6, []int64{60 * ms, 60 * ms, 60 * ms, 60 * ms, 60 * ms, 60 * ms}},
		{"a moment more", 10 * ms, 60*ms + 1, 6, []int64{60*ms + 1, 70*ms + 1, 80*ms + 1, 90*ms + 1, 100*ms + 1, 110*ms + 1}},
		{"long", 10 * ms, 1000 * ms, 4, []int64{1000 * ms, 1010 * ms, 1020 * ms, 1030 * ms}},
		{"before the last turn", 40 * ms, 100 * ms, 3, []int64{100 * ms, 140 * ms, 180 * ms}},
		{"within one spacing", 200 * ms, 400 * ms, 3, []int64{400 * ms, 400 * ms, 600 * ms}},
		{"more than one spacing", 200 * ms, 401 * ms, 3, []int64{401 * ms, 601 * ms, 801 * ms}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu shared.Mutex
			q := MakePacer(&mu)
			q.Grant(Moment{})
			cost := Moment{ns: tt.cost}
			var all []*caller
			for range tt.waits {
				c := &caller{called: math.MaxInt64}
				c.Turn, c.Awaited = MakeTurn(c), true
				at, _ := q.Next(0, cost, false)
				q.Queue(&c.Turn, 0, at, cost, false)
				all = append(all, c)
			}
			var runs []int64
			for _, c := range all {
				now := tt.until
				for at := c.Come(now, now); at > now; at = c.Come(now, now) {
					now = at
				}
				runs = append(runs, now)
			}
			assert.Equal(t, tt.runs, runs)
		})
	}
}

// The first call to look finds late turns, even if it is new: its announced turn is behind all of
// them. Calls already queued, prioritized or not, learn of the delay when they look.
func TestWhoComesAfterAStall(t *testing.T) {
	const ms = int64(time.Millisecond)
	var mu shared.Mutex
	q := MakePacer(&mu)
	q.Grant(Moment{})
	cost := Moment{ns: 10 * ms}
	comes := func(now int64, first bool) (*caller, int64) {
		c := &caller{called: math.MaxInt64}
		c.Turn, c.Awaited = MakeTurn(c), true
		at, wait := q.Next(now, cost, first)
		require.Equal(t, wait, q.Wait(now, cost, first))
		if wait == 0 {
			q.Grant(at)
		} else {
			q.Queue(&c.Turn, now, at, cost, first)
		}
		return c, at.ns
	}
	a, _ := comes(0, false)
	b, _ := comes(0, false)
	first, at := comes(0, true)
	require.Equal(t, 10*ms, at, "before a and b")
	assert.Equal(t, time.Duration(40*ms), q.Wait(0, cost, false))
	assert.Equal(t, time.Duration(30*ms), q.Wait(300*ms, cost, false), "the first runs at 300")
	c, at := comes(300*ms, false)
	assert.Equal(t, 330*ms, at)
	for _, tt := range []struct {
		c  *caller
		at int64
	}{{c, 330}, {first, 300}, {b, 320}, {a, 310}} {
		assert.Equal(t, tt.at*ms, tt.c.Come(300*ms, 300*ms))
	}
	a.Leave(305 * ms)
	assert.Equal(t, 310*ms, b.called, "it advances")
	assert.Equal(t, 310*ms, b.Come(310*ms, 310*ms))
	assert.Equal(t, 320*ms, c.Come(320*ms, 320*ms))
}

// A turn is not late if its call sleeps longer for something else, or doesn't wait for the turn.
func TestWhoLingersIsNotLate(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, awaited := range []bool{true, false} {
		var mu shared.Mutex
		q := MakePacer(&mu)
		q.Grant(Moment{})
		cost := Moment{ns: 10 * ms}
		c := &caller{called: math.MaxInt64}
		c.Turn, c.Awaited = MakeTurn(c), awaited
		at, _ := q.Next(0, cost, false)
		q.Queue(&c.Turn, 0, at, cost, false)
		c.Linger(2000 * ms)
		assert.Zero(t, q.Wait(1000*ms, cost, false), "its turn was at 10")
	}
}

// Prioritized calls are placed before ordinary calls that pay for them, each with its own cost. A
// call that was passed wakes at its announced time and goes back to sleep. known bug 139, 140
func TestTurnsAreOvertaken(t *testing.T) {
	for _, tt := range []struct {
		name      string
		others    []int64 // units they ask for
		first     []int64 // units of the prioritized calls that join next
		announced []int64 // their announced times
		runs      []int64 // times of all calls, in their order
	}{
		{"one", []int64{1, 1}, []int64{1}, []int64{100}, []int64{100, 200, 300}},
		{"every second call", []int64{1, 1, 1}, []int64{1, 1}, []int64{100, 300}, []int64{100, 200, 300, 400, 500}},
		{"no call is left to pass", []int64{1, 1}, []int64{1, 1, 1, 1}, []int64{100, 300, 500, 600}, []int64{100, 200, 300, 400, 500, 600}},
		{"a large call", []int64{1, 1, 1, 1}, []int64{3}, []int64{500}, []int64{100, 200, 500, 600, 700}},
		{"a call that no other can pay for", []int64{1, 1}, []int64{3}, []int64{500}, []int64{100, 200, 500}},
		{"a call behind that", []int64{1, 1}, []int64{3, 1}, []int64{500, 600}, []int64{100, 200, 500, 600}},
		{"several before a large call", []int64{3, 1}, []int64{1, 1, 1, 1}, []int64{100, 200, 300, 700}, []int64{100, 200, 300, 600, 700, 800}},
		{"the remainder pays together with the next call", []int64{3, 2}, []int64{2, 2}, []int64{200, 700}, []int64{200, 500, 700, 900}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSpaced(t)
			s.comes(0, 1)
			for _, units := range tt.others {
				s.comes(0, units)
			}
			for i, units := range tt.first {
				assert.Equal(t, tt.announced[i], s.overtakes(0, units).until)
			}
			assert.Equal(t, tt.runs, s.runs())
			assert.Zero(t, s.q.queue.cost)
			assert.Zero(t, s.q.queue.front)
		})
	}
}

// A prioritized call is affected neither by a call behind it nor by serving the other one.
func TestOrderOfTurnsStands(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	a := s.overtakes(0, 1)
	b := s.overtakes(0, 1)
	other := s.comes(0, 1) // announced 300
	assert.EqualValues(t, 300, s.overtakes(0, 1).until)
	c := s.overtakes(0, 1)
	assert.EqualValues(t, 500, c.until, "behind the other call, which has paid")
	assert.EqualValues(t, 100, a.Come(100, 100))
	assert.EqualValues(t, 600, s.overtakes(100, 1).until)
	assert.EqualValues(t, 200, b.Come(200, 200))
	assert.EqualValues(t, 400, other.Come(300, 300))
	assert.EqualValues(t, 500, c.Come(350, 350))
}

// After a prioritized call leaves, the queue is as if it had never joined: calls that advance are
// woken, and a later prioritized call passes as many.
func TestPrioritizedCallLeavesNoTrace(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	for range 4 {
		s.comes(0, 1)
	}
	for range 5 {
		a, b := s.overtakes(0, 1), s.overtakes(0, 2)
		assert.EqualValues(t, []int64{100, 500}, []int64{a.until, b.until})
		b.Leave(0)
		a.Leave(0)
	}
	assert.Equal(t, []int64{100, 200, 300, 400}, s.runs())
}

// After a prioritized call behind some ordinary calls leaves, the next prioritized call passes
// them. After a call that has paid leaves, the next one pays.
func TestWhoIsOvertakenAfterSomebodyLeft(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	a, b, c := s.comes(0, 1), s.comes(0, 1), s.comes(0, 1)
	s.overtakes(0, 1)
	last := s.overtakes(0, 1) // behind a
	a.Leave(10)
	assert.EqualValues(t, 300, last.Come(10, 10), "it isn't woken until it is first")
	last.Leave(20)
	assert.EqualValues(t, 200, s.overtakes(20, 1).until, "b pays, because a, which had paid, has left")
	assert.EqualValues(t, 400, s.overtakes(20, 1).until, "c pays, and b runs before")
	b.Leave(30)
	c.Leave(30)
	s.comes(30, 1)
	assert.Equal(t, []int64{100, 200, 300, 400}, s.runs())
}

// known bug 230: several prioritized calls are ahead of the call that has paid for them. It leaves,
// and then the last of them does: calls that join later have paid for nothing.
func TestNobodyPaysForOneThatLeft(t *testing.T) {
	for _, waits := range []bool{false, true} { // or they are first in the queue
		s := newSpaced(t)
		s.comes(0, 1)
		if waits {
			s.overtakes(0, 1)
		}
		at := s.q.Last().ns
		batch := s.comes(0, 3)
		s.overtakes(0, 1)
		s.overtakes(0, 1)
		last := s.overtakes(0, 1)
		batch.Leave(0)
		s.comes(0, 1)
		last.Leave(0)
		assert.EqualValues(t, at+300, s.overtakes(0, 1).until, "before the call that has joined since")
	}
}

// The same holds for calls that run immediately, and for one that is first in the queue.
func TestNobodyPaysForOneThatLeftTheHead(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	batch := s.comes(0, 3)
	assert.EqualValues(t, 120, s.overtakes(120, 1).until)
	last := s.overtakes(120, 1)
	batch.Leave(120)
	s.comes(120, 1)
	last.Leave(120)
	assert.EqualValues(t, 220, s.overtakes(120, 1).until, "before the call that has joined since")
}

// A prioritized call that is due runs, while the waiting call costs too much to run yet. The
// waiting call pays with all the time that it has waited.
func TestPrioritizedCallRunsAtOnce(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	batch := s.comes(0, 3)
	first := s.overtakes(150, 1)
	assert.EqualValues(t, 150, first.until)
	assert.EqualValues(t, 450, batch.Come(300, 300))
	first.Leave(300) // it was rejected elsewhere
	assert.EqualValues(t, 300, batch.looks())
	assert.Equal(t, granted, batch.state)

	batch = s.comes(300, 3) // announced 600
	assert.EqualValues(t, 550, s.overtakes(550, 1).until)
	assert.EqualValues(t, 950, s.overtakes(560, 1).until, "of 300 that it can pay with it has paid 250")
	assert.EqualValues(t, 850, batch.Come(600, 600))
}

// A prioritized call that runs immediately pushes back the call that it passes by more than its own
// cost, and that call pays as much.
func TestCallRunsAtOnceIfTheTimeIsPaidFor(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	batch := s.comes(0, 3)
	assert.EqualValues(t, 150, s.overtakes(150, 1).until)
	assert.EqualValues(t, 550, s.overtakes(320, 1).until, "150 + 170 are too much")
	assert.EqualValues(t, 450, batch.Come(300, 300))
	assert.Equal(t, []int64{450, 550}, s.runs())
}

// A call that has paid does not pay for the next prioritized call.
func TestEachPaysOnce(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	for range 3 {
		s.comes(0, 1)
	}
	for at := int64(0); at < 600; at += 200 {
		assert.EqualValues(t, at+100, s.overtakes(at, 1).until)
		s.q.look(at + 200)
	}
	assert.True(t, s.q.Empty())
}

// If a prioritized call that ran immediately is given up, the payments are returned.
func TestTurnAtOnceIsPaidBack(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	s.comes(0, 3)
	for range 3 {
		c := s.overtakes(200, 1)
		assert.EqualValues(t, 200, c.until)
		c.Leave(200)
	}
}

// Payments for a call that has left don't affect a call that joins an empty queue.
func TestNothingIsPaidInAnEmptyQueue(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	batch := s.comes(0, 2)
	a, b := s.overtakes(0, 1), s.overtakes(0, 1)
	batch.Leave(0)
	b.Leave(0)
	assert.EqualValues(t, 100, a.Come(100, 100))
	s.comes(100, 1)
	assert.EqualValues(t, 200, s.overtakes(100, 1).until)
}

func TestNotBefore(t *testing.T) {
	s := newSpaced(t)
	s.q.NotBefore(Moment{ns: 1000})
	assert.EqualValues(t, 1100, s.comes(1000, 1).until)
	assert.True(t, s.q.Follow(Moment{ns: 1000}))
	assert.False(t, s.q.Follow(Moment{ns: 1050}), "if the first leaves, the next may get its turn at 1100")
	s.q.NotBefore(Moment{ns: 900})
	last := s.comes(1000, 1)
	assert.EqualValues(t, 1200, last.until)
	last.Run()
	assert.True(t, s.q.Follow(Moment{ns: 5000}))
	s.q.NotBefore(Moment{ns: 5000})
	assert.EqualValues(t, 5100, s.comes(1000, 1).until)
}

// No wait is ever negative, even for turns before the latest one, and no matter which calls leave.
// known bug 38
func TestTurnsWaitsAreInRange(t *testing.T) {
	r := random(t)
	var mu shared.Mutex
	q := MakePacer(&mu)
	now := epoch
	type queued struct {
		*Turn
		announced int64
		first     bool
	}
	var here []queued
	for range rounds(20_000) {
		c := Cost(1+r.Int64N(stat.MaxUnits), r.ExpFloat64()*1e6)
		at := now + r.Int64N(int64(time.Hour)) - int64(30*time.Minute)
		mu.Lock()
		first := r.IntN(3) == 0
		announced, wait := q.Next(at, c, first)
		require.GreaterOrEqual(t, wait, time.Duration(0))
		require.Equal(t, at+int64(wait), announced.ns)
		if wait > 0 && wait < 24*time.Hour {
			x := queued{new(Turn), announced.ns, first}
			here = append(here, x)
			q.Queue(x.Turn, at, announced, c, first)
		}
		mu.Unlock()
		if len(here) > 0 && r.IntN(3) == 0 {
			here[r.IntN(len(here))].Leave(at)
		}
		here = slices.DeleteFunc(here, func(x queued) bool {
			comes := x.Come(at, at)
			if x.first {
				require.LessOrEqual(t, comes, x.announced, "later than announced")
			} else if x.state == waits {
				require.Greater(t, comes, at, "it would sleep in vain")
			}
			return x.state != waits
		})
		now += r.Int64N(int64(time.Minute))
	}
}

// Debts of ages don't overflow, whether a call waits or not: no call passes for 73 years.
// known bug 255
func TestDebtsOfAges(t *testing.T) {
	for _, waits := range []bool{false, true} {
		var mu shared.Mutex
		p := MakePacer(&mu)
		mu.Lock()
		at, _ := p.Next(epoch, Moment{ns: 100}, false)
		p.Grant(at)
		if waits {
			at, wait := p.Next(epoch, Moment{ns: 100}, false)
			require.EqualValues(t, 100, wait)
			p.Queue(&Turn{Awaited: true}, epoch, at, Moment{ns: 100}, false)
		}
		for i := range 20 {
			p.Charge(epoch+int64(i), Cost(1<<53, 1e6))
			for _, first := range []bool{false, true} {
				if first && waits {
					continue // it passes the one that waits
				}
				_, wait := p.Next(epoch+int64(i), Moment{ns: 100}, first)
				require.InDelta(t, float64(maxCost), float64(wait), 1000)
			}
		}
		mu.Unlock()
	}
}

// A debt is not paid with the time in which a large call waited that then leaves. known bug 256
func TestDebtBehindACallThatLeaves(t *testing.T) {
	s := newSpaced(t)
	s.comes(0, 1)
	large := s.comes(0, 10) // at 1000
	s.charge(900, 5)
	next := s.comes(900, 1)
	assert.EqualValues(t, 1600, next.looks())
	large.Leave(910)
	assert.EqualValues(t, 1500, next.looks(), "900, the debt and its own cost")
	assert.Equal(t, []int64{1500}, s.runs()[:1])
}

func (s *spaced) charge(now, units int64) {
	s.mu.Lock()
	s.q.Charge(now, Cost(units, 100))
	s.mu.Unlock()
}

// Calls of several sizes, some of them prioritized, join a queue and leave, while debts are charged.
// An ordinary call runs at its turn, and no earlier than when all debts that it found, from any of
// them on, and its own cost would have been paid since.
func TestDebtsComeBeforeLaterCalls(t *testing.T) {
	r := random(t)
	type debt struct{ at, cost int64 }
	type call struct {
		*caller
		found       int // debts
		cost        int64
		prioritized bool
	}
	for range rounds(20_000) {
		s, now := newSpaced(t), int64(0)
		var debts []debt
		var calls []*call
		passes := func(until int64) {
			for {
				var next *call
				for _, c := range calls {
					if !c.ran && c.state != gone && c.looks() <= until && (next == nil || c.looks() < next.looks()) {
						next = c
					}
				}
				if next == nil {
					now = max(now, until)
					return
				}
				now = max(now, next.looks())
				next.called = math.MaxInt64
				if next.until = next.Come(now, now); next.state != granted {
					continue
				}
				require.Equal(t, next.at.ns, now, "a call wakes at its turn")
				next.ran = true
				owed := next.cost
				for _, d := range slices.Backward(debts[:next.found]) {
					owed += d.cost
					require.True(t, next.prioritized || next.at.ns >= d.at+owed)
				}
			}
		}
		for range 30 {
			switch r.IntN(6) {
			case 0:
				passes(now + r.Int64N(400))
			case 1, 2:
				c := &call{found: len(debts), cost: 100 * (1 + r.Int64N(4)), prioritized: r.IntN(4) == 0}
				c.caller = s.takes(now, c.cost/100, c.prioritized)
				calls = append(calls, c)
			case 3:
				if n := len(calls); n > 0 {
					if c := calls[r.IntN(n)]; !c.ran {
						c.Leave(now)
					}
				}
			default:
				debts = append(debts, debt{now, 100 * (1 + r.Int64N(5))})
				s.charge(now, debts[len(debts)-1].cost/100)
			}
		}
		passes(math.MaxInt64 / 2)
		for _, c := range calls {
			require.True(t, c.ran || c.state == gone)
		}
	}
}

// A burst that a waiting call leaves behind is there for the calls behind it.
func TestBurstBehindACallThatLeaves(t *testing.T) {
	s := newSpaced(t)
	s.q.SetBurst(0, 300, Cost(1, 100))
	s.comes(0, 1)
	large := s.comes(0, 5)
	assert.EqualValues(t, 200, large.looks(), "three units are there for it")
	next := s.comes(0, 1)
	assert.EqualValues(t, 300, next.looks())
	large.Leave(50)
	assert.LessOrEqual(t, next.Come(50, 50), int64(50), "its turn has passed")
	assert.EqualValues(t, -200, next.at.ns)
	for range 2 {
		assert.True(t, s.comes(50, 1).ran)
	}
	assert.EqualValues(t, 100, s.comes(50, 1).looks())
}

// A debt uses up the burst first.
func TestDebtAndBurst(t *testing.T) {
	s := newSpaced(t)
	s.q.SetBurst(0, 300, Cost(1, 100))
	s.comes(0, 1)
	s.charge(0, 2)
	assert.True(t, s.comes(0, 1).ran)
	assert.EqualValues(t, 100, s.comes(0, 1).looks())
	s.charge(0, 2)
	assert.EqualValues(t, 400, s.comes(0, 1).looks())
}

// After a stall, no more run at once than the burst.
func TestBurstAfterAStall(t *testing.T) {
	s := newSpaced(t)
	s.q.SetBurst(0, 200, Cost(1, 100))
	for range 10 {
		s.comes(0, 1).Awaited = true
	}
	late := 10 * lateness
	for _, c := range s.here[3:] {
		c.Come(late, late)
	}
	ran := 0
	for _, c := range s.here[3:] {
		if c.state == granted {
			ran++
		}
	}
	assert.Equal(t, 3, ran)
}
