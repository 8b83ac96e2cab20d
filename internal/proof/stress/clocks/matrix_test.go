package clocks

import (
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/race"
)

var sizes = []time.Duration{ms, 5 * ms, 10 * ms, 100 * ms, time.Second, 2 * time.Second, time.Minute, time.Hour, 24 * time.Hour, year}

// tolerance is the longest allowed standstill of time: see core's steady clock.
const tolerance = 10 * ms

// The matrix tries every step at every phase under every behavior. An ordinary run plays a fifth of
// the steps with each combination, a different fifth each time. known bug 23, 24, 25, 26
func TestStepMatrix(t *testing.T) {
	rnd := random(t)
	begins := figure.Size(1, 1, 4, 40)
	skip := figure.Size(5, 5, 1, 1) // of the sizes
	if race.Enabled {
		skip = 10 // one goroutine has no races
	}
	calls, cells := 0, 0
	var problems []string
	for _, b := range behaviors {
		for _, p := range phases {
			if !b.reaches(p) {
				continue
			}
			for range begins {
				begin := time.Duration(rnd.Int64N(int64(time.Second)))
				if rnd.IntN(2) == 0 {
					begin = 0 // bursts come right at the edges
				}
				base := play(t, cell{behavior: b, phase: p, begin: begin})
				problems = append(problems, base.check(base)...)
				for s := rnd.IntN(skip); s < len(sizes); s += skip {
					for _, c := range []cell{
						{behavior: b, phase: p, begin: begin, step: sizes[s]},
						{behavior: b, phase: p, begin: begin, step: -sizes[s]},
						{behavior: b, phase: p, begin: begin, step: sizes[s], back: 300 * ms},
						{behavior: b, phase: p, begin: begin, step: -sizes[s], back: 300 * ms},
					} {
						tr := play(t, c)
						problems = append(problems, tr.check(base)...)
						calls += tr.calls
						cells++
					}
				}
			}
		}
	}
	for i, p := range problems {
		if i == 20 {
			t.Logf("and %d more", len(problems)-i)
			break
		}
		t.Error(p)
	}
	t.Logf("%d cells", cells)
	figure.Report(t, figure.Figure{Name: "clock-step violations", Value: float64(len(problems)), N: int64(calls), Seed: *seed})
}

// check compares a trial with the rules' promises, and with the same trial on a clock that was
// never set.
func (tr *trial) check(base *trial) []string {
	for _, r := range append([]flow.Rule{tr.rule}, tr.also...) {
		switch {
		case r.Mode == spec.Shadow, r.Metric == flow.Concurrency:
		case r.Relation == flow.Associated:
			tr.checkLook()
		case r.Behavior == flow.Throttle, r.Behavior == flow.WarmUpThrottle:
			tr.checkSpacing()
		case r.Behavior == flow.TokenBucket:
			tr.checkBucket(r)
		default:
			tr.checkWindow(r)
		}
	}
	tr.checkOutage()
	tr.checkWaits()
	if tr.step <= -time.Minute && !tr.sleepsUnread() && !slices.Equal(tr.outcomes, base.outcomes) {
		i := 0
		for i < min(len(tr.outcomes), len(base.outcomes)) && tr.outcomes[i] == base.outcomes[i] {
			i++
		}
		tr.problem("a clock set back changed the outcome of call %d: %v, otherwise %v", i, tr.outcomes[i:min(i+3, len(tr.outcomes))], base.outcomes[i:min(i+3, len(base.outcomes))])
	}
	if tr.step <= -time.Minute && tr.shadowBlocked != base.shadowBlocked {
		tr.problem("%d refusals in shadow mode, otherwise %d", tr.shadowBlocked, base.shadowBlocked)
	}
	return tr.problems
}

// sleepsUnread reports whether the call during which the clock was set may have slept before
// anybody read the clock again: that time is lost.
func (tr *trial) sleepsUnread() bool {
	return tr.parks && slices.Contains([]phase{beforeAsk, beforeTake, beforeRecord, duringWait}, tr.phase)
}

// leapt reports whether the time was set forward between two points of real time: together with the
// clock, or because the clock was corrected after it had made time stand still.
func (tr *trial) leapt(from, to time.Duration) bool {
	at := tr.setAt
	switch {
	case tr.step < -tolerance:
		return false
	case tr.step < 0:
		at = tr.rightAt
	}
	return at >= 0 && at >= from && at <= to
}

// checkWindow: any interval one bucket shorter than the window (strict: as long as the window) sees
// at most the limit, and an interval as long as the window at most twice the limit. In real time,
// each step forward may add the limit once.
func (tr *trial) checkWindow(r flow.Rule) {
	if r.Interval == 0 {
		r.Interval = interval
	}
	if r.Buckets == 0 {
		r.Buckets = 50
		if r.Window == flow.Ring {
			r.Buckets = 10
			if r.Interval == interval {
				r.Buckets = 2
			}
		}
	}
	most := int(r.Threshold)
	whole, exact := r.Interval, r.Interval
	if r.Window == flow.Ring {
		exact -= r.Interval / time.Duration(r.Buckets)
	}
	var real, engine []int64
	for _, e := range tr.events {
		if e.resource == r.Resource {
			real = append(real, int64(e.ran))
			engine = append(engine, e.ranAt)
		}
	}
	slices.Sort(real)
	slices.Sort(engine)
	for _, bound := range []struct {
		length time.Duration
		most   int
	}{{exact, most}, {whole, 2 * most}} {
		if at, n := busiest(engine, bound.length, nil); n > bound.most {
			tr.problem("%d calls, %d allowed, within %v of the engine's time, starting at %v", n, bound.most, bound.length, time.Duration(at-tr.clock.begin))
		}
		stepped := func(from, to int64) int {
			if tr.leapt(time.Duration(from)-500*ms, time.Duration(to)) { // a call that runs then may have waited
				return bound.most
			}
			return 0
		}
		if at, n := busiest(real, bound.length-tolerance, stepped); n > bound.most {
			tr.problem("%d calls, %d allowed, within %v of real time, starting at %v", n, bound.most, bound.length, time.Duration(at))
		}
	}
}

// busiest returns the largest number of times in a half-open interval of the given length, minus
// the allowance there, and the start of that interval.
func busiest(times []int64, length time.Duration, allowed func(from, to int64) int) (at int64, most int) {
	if length <= 0 {
		return 0, 0
	}
	first := 0
	for last, to := range times {
		for to-times[first] >= int64(length) {
			first++
		}
		n := last - first + 1
		if allowed != nil {
			n -= allowed(times[first], to)
		}
		if n > most {
			at, most = times[first], n
		}
	}
	return at, most
}

// checkSpacing: no two calls run closer together than the limit allows.
func (tr *trial) checkSpacing() {
	events := slices.Clone(tr.events)
	slices.SortStableFunc(events, func(a, b event) int { return int(min(max(a.ranAt-b.ranAt, -1), 1)) })
	const cost = interval / limit
	for i := 1; i < len(events); i++ {
		a, b := events[i-1], events[i]
		if apart := time.Duration(b.ranAt - a.ranAt); apart < cost-1 {
			tr.problem("two calls run %v apart in the engine's time, at %v", apart, b.ran)
		}
		if apart := b.ran - a.ran; apart < cost-1 && !tr.leapt(a.decided, b.decided) {
			tr.problem("two calls run %v apart in real time, at %v", apart, b.ran)
		}
	}
}

// checkBucket: no interval sees more than the burst and the units added during the interval. In
// real time, each step forward may fill the bucket once.
func (tr *trial) checkBucket(r flow.Rule) {
	const cost = interval / limit
	most := r.Burst + 1
	for i, first := range tr.events {
		units, inReal := 0, 0
		for _, last := range tr.events[i:] {
			units++
			inReal++
			if n := most + int(time.Duration(last.decidedAt-first.decidedAt)/cost); units > n {
				tr.problem("%d calls ran in %v of the engine's time", units, time.Duration(last.decidedAt-first.decidedAt))
			}
			real := last.decided - first.decided
			if tr.leapt(first.decided, last.decided) {
				break
			}
			if n := most + int((real+tolerance)/cost); inReal > n {
				tr.problem("%d calls ran in %v of real time, at %v", inReal, real, last.decided)
			}
		}
	}
}

// checkLook: a call ran only while the other resource had room.
func (tr *trial) checkLook() {
	const exact = interval / 2
	for i, e := range tr.events {
		n := 0
		for _, other := range tr.events[:i] {
			if other.resource == tr.rule.Ref && e.decidedAt-other.decidedAt < int64(exact) {
				n++
			}
		}
		if e.resource == tr.rule.Resource && n >= limit {
			tr.problem("ran at %v with %d of %d units of the other resource in %v", e.decided, n, limit, exact)
		}
	}
}

// checkOutage: a caller that keeps asking is refused for at most an interval, plus one extra bucket
// and the pauses between calls.
func (tr *trial) checkOutage() {
	most := interval + pause + tolerance + tr.grace
	if tr.rule.Window == flow.Strict || len(tr.also) > 1 {
		most += interval / 10
	}
	if longest := max(tr.outage, tr.clock.real-tr.lastPass); longest > most {
		tr.problem("nobody was admitted for %v", longest)
	}
}

// checkWaits: no wait is negative or longer than its rule's.
func (tr *trial) checkWaits() {
	for _, d := range tr.clock.slept {
		if d <= 0 || d > 501*ms {
			tr.problem("a wait of %v", d)
		}
	}
}
