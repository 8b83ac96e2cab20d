package adaptive

import (
	"math"
	"time"
)

// learner finds the knee: the number of units in flight above which additional ones only wait. It
// enforces nothing, reads no clock and is not safe for concurrent use. It is fed completed calls,
// and sets the limit to enforce next.
//
// # What it compares
//
// Below the knee, a call's duration doesn't depend on the number in flight. Above it, the duration
// grows in proportion to that number. So each round compares the calls that arrived while more than
// the learned limit were in flight with the calls that arrived while fewer were. Let n be in flight
// above, where a call takes t, and let it take f below. Then by Little's law n·f/t of the n were
// being served and the others waited:
//
//	knee = n · f/t
//
// (t and f are the time spent per successful call: load shed by failing is as bad as load that
// waits.)
//
// If the knee is higher than the round's upper level, the result is n, and the limit grows to n; if
// it is lower than the lower level, the limit falls to that level; in between, the limit moves to
// the knee. f is the floor of the response time. It is measured afresh in each round, not
// remembered: if every call takes twice as long from now on, so do f and t, and the limit stays.
//
// # A round
//
//	rise    the limit in force is above the learned one, until calls have shown what
//	        that does
//	sink    it is below, until others have shown what that does
//	cruise  it is the learned one, while the calls from before complete: a decision made
//	        earlier would only see the short calls
//
// When rise or sink has seen enough, it continues for the duration of one call, so that the last
// arrivals are not measured at another level; calls that arrive during that time don't count.
//
// If no call arrives above the learned limit, rise continues and nothing is learned: an unused
// limit reveals nothing, and no call is refused for the sake of a sink.
//
// In shadow mode the learner can't control the units in flight, and learns from the levels that occur.
// While more than the limit are in flight all the time, it uses the last floor that it saw.
type learner struct {
	terms

	learned  float64 // the limit, before rounding
	up, down float64 // how far a round looks above and below it, as shares of it

	phase phase
	begun bool  // by the first call; before that, the times below are meaningless
	since int64 // start of the phase
	ends  int64 // its end; 0 means unknown
	round int64 // start of the round

	level      int64 // the limit to enforce
	below      int64 // with at most this many in flight, calls count as below
	from, most int64 // with at least this many in flight, calls count as above; and the highest limit
	low, high  side
	tail       float64 // the duration that all but a few calls stay within, in ns

	units int64    // completed in this phase
	all   evidence // of the phase

	minRT, maxRT float64 // f and t of the last round, 0 at first
	throughput   float64 // units per second in the last phase
}

// side holds the calls above or below. It accepts calls that arrived before until.
type side struct {
	evidence
	until int64
}

// terms is the part of a rule that the learner needs.
type terms struct {
	floor, ceiling int64
	window         int64 // the shortest phase, in ns
	watch          bool  // the limit restricts no call
}

type phase uint8

const (
	rise phase = iota
	sink
	cruise
)

const (
	// The smallest distances that a round looks up and down. Looking up costs waiting: at the knee
	// a quarter more in flight take a quarter longer. Looking down costs throughput, so a round
	// looks less far down, and for no longer than needed.
	leastUp   = 0.25
	leastDown = 0.12
	// The largest distances: twice as many, half as many.
	mostUp   = 1.0
	mostDown = 0.5
	// A knee found within this share of the round's lower end may actually be lower.
	edge = 0.25
	// A round needs at least this many calls below and above, and enough to know their means to
	// this share of the distance between the two, unless that takes longer than patience times the
	// shortest phase. A settled round then finds the knee to within 6.5 %, and goes a third of the
	// way there: so the limit stays within 3 % (standard deviations). With 1/6 it would be 4 %, and
	// 6 of 420 steps ended a tenth off.
	leastCalls = 8
	leastGood  = leastCalls / 2
	precision  = 1.0 / 8
	patience   = 8
	// A phase lasts at least this many response times, so that the level is reached.
	turns = 3
	// One call in twenty takes longer than tail, and counts as if it took tail: a mean of a few
	// very long calls means little, as does a time below a microsecond.
	beyondTail = 0.05
	tailGain   = 0.02
	resolution = float64(time.Microsecond)
	// The minimum time that a settled round cruises, in shortest phases.
	cruising = 3
	// The floor of the response time has moved if it has grown by this factor.
	moved = 1.25
)

func newLearner(t terms, start int64) learner {
	l := learner{terms: t, learned: float64(start), up: mostUp, down: leastDown}
	l.enter(rise, 0)
	return l
}

// adopt continues under other terms.
func (l *learner) adopt(t terms) {
	if l.terms == t {
		return
	}
	l.terms = t
	l.learned = l.within(l.learned)
	l.begun = false
	l.enter(rise, 0)
}

func (l *learner) within(limit float64) float64 {
	return min(max(limit, float64(l.floor)), float64(l.ceiling))
}

// limit returns the learned limit.
func (l *learner) limit() int64 { return int64(math.Round(l.within(l.learned))) }

// aim sets the levels of the round and the phase.
func (l *learner) aim() {
	limit := l.limit()
	l.most = min(limit+stepOf(limit, l.up), l.ceiling)
	l.from = min(limit+1, l.most)
	l.below = max(limit-stepOf(limit, l.down), l.floor)
	switch {
	case l.watch || l.phase == cruise:
		l.level = limit
	case l.phase == rise:
		l.level = l.most
	default:
		l.level = l.below
	}
}

// stepOf returns a share of a limit, at least 1.
func stepOf(limit int64, share float64) int64 {
	return max(1, int64(math.Round(float64(limit)*share)))
}

// complete adds a completed call: its duration, and the units that were in flight at its arrival,
// including its own.
func (l *learner) complete(now, inFlight, took, units int64, failed bool) {
	took = max(took, 0)
	if !l.begun {
		l.begun, l.since, l.round = true, now, now-took
	}
	l.units += units
	l.all.add(inFlight, float64(took), failed)
	time := l.trim(float64(took))
	switch came := now - took; {
	case came < l.round:
	case inFlight >= l.from && came <= l.high.until:
		l.high.add(inFlight, time, failed)
	case inFlight <= l.below && came <= l.low.until:
		l.low.add(inFlight, time, failed)
	}
	if now-l.since >= l.window {
		l.turn(now)
	}
}

// trim caps durations longer than those of nearly all calls. It learns the cap call by call: the
// cap rises by more than it falls, in the ratio of the calls that should be cut. If all calls
// suddenly take longer, the cap follows within a few calls.
func (l *learner) trim(time float64) float64 {
	switch {
	case l.tail == 0:
		l.tail = 4 * time
	case time > l.tail:
		l.tail = max(l.tail, resolution) * (1 + tailGain*(1-beyondTail)/beyondTail)
	default:
		l.tail *= 1 - tailGain
	}
	return min(time, l.tail)
}

// turn advances the round if the phase has seen enough.
func (l *learner) turn(now int64) {
	age, call := now-l.since, int64(l.all.mean())
	shortest := max(l.window, turns*call)
	late := age/patience >= shortest
	switch {
	case age < shortest:
	case age/(2*patience) >= shortest:
		l.enter(rise, now) // no call has completed for long: the data is too old
	case l.ends == 0 && l.phase == rise && l.shown(&l.high, late):
		l.high.until, l.ends = now, now+call
	case l.ends == 0 && l.phase == sink && l.shown(&l.low, late):
		l.low.until, l.ends = now, now+call
	case l.ends == 0 && late:
		if l.low.good >= leastGood {
			l.minRT = l.low.price()
		}
		l.enter(rise, now)
	case l.ends == 0 || now < l.ends:
	case l.phase == cruise:
		l.judge()
		l.enter(rise, now)
	case l.phase == rise && !l.watch && !l.shown(&l.low, false):
		l.enter(sink, now)
	default: // there have been enough calls below
		l.enter(cruise, now)
		l.ends = now + age
		if l.settled() {
			l.ends = now + max(min(age, patience*shortest), cruising*shortest)
		}
	}
}

// shown reports whether there is enough evidence, or as much as is available.
func (l *learner) shown(e *side, late bool) bool {
	want := l.want()
	return e.calls >= leastCalls && (late || e.doubt() <= want*want)
}

// want returns the precision needed for the mean of either side.
func (l *learner) want() float64 { return precision * (l.up + l.down) }

// settled reports whether the limit has settled, so that there is no hurry.
func (l *learner) settled() bool { return l.up == leastUp && l.down == leastDown }

func (l *learner) enter(p phase, now int64) {
	if age := now - l.since; l.begun && age > 0 {
		l.throughput = float64(l.units) / time.Duration(age).Seconds()
	}
	if p == rise {
		l.low, l.high, l.round = side{until: math.MaxInt64}, side{until: math.MaxInt64}, now
	}
	l.phase, l.since, l.ends, l.units, l.all = p, now, 0, 0, evidence{}
	l.aim()
}

// judge moves the limit towards the knee that the round has found: all the way if the knee is
// certain, part of the way if durations vary a lot.
func (l *learner) judge() {
	limit, floor, knee, doubt := l.limit(), l.minRT, 0.0, l.high.doubt()
	switch {
	case l.low.good >= leastGood:
		floor = l.low.price()
		doubt += l.low.doubt()
	case !l.watch || floor == 0:
		return // if nothing succeeds, a lower limit would show no improvement
	}
	if l.high.good > 0 {
		l.maxRT = l.high.price()
		knee = l.high.inFlight() * floor / l.maxRT
	}
	scale := min(1, knee/float64(limit)) // of the doubt: it covers a small change of the limit
	doubt *= scale * scale
	want := l.want() * l.want()
	knee = min(max(knee, float64(l.below)), float64(l.most))
	l.learned = l.within(l.learned + want/(want+doubt)*(knee-l.learned))

	// Upwards, the next round looks at twice the distance at which the knee was found. Downwards, it
	// doubles the distance if the knee may be lower, or if the calls below take longer than they
	// did: because there is a queue even there, or because all calls do. Looking further down shows
	// which.
	slower := l.minRT > 0 && floor > moved*l.minRT && floor-l.minRT > 3*floor*math.Sqrt(l.low.doubt())
	down := leastDown
	if depth := float64(limit - l.below); slower || knee <= float64(limit)-(1-edge)*depth && depth > 0 {
		down = min(2*max(l.down, depth/float64(limit)), mostDown)
	}
	l.up, l.down = min(max(leastUp, 2*(knee/float64(limit)-1), l.up/2), mostUp), down
	l.minRT = floor
}
