package shed

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/core"
)

// levels is the number of levels. Arrays of levels have the highest first.
const levels = int(core.Sheddable-core.CriticalPlus) + 1

func rank(l core.Level) int { return int(l - core.CriticalPlus) }

const (
	// period is the time after which the law looks at the counts again.
	period = int64(100 * time.Millisecond)
	// smoothing is the time constant of the rates.
	smoothing = 700 * time.Millisecond
	// lost is the share of its calls that a level may lose to those below it.
	lost = 0.01
	// share is the most that a level leaves free for each level above it, as a share of the limit.
	share = 0.25
)

// totals are counts since the start.
type totals struct {
	calls, units [levels]int64 // that have asked
	done         int64         // units that have completed
	time         int64         // that they were in flight, in ns, summed over the units
}

// law computes how many units each level leaves free for those above: its reserve. It reads no clock
// and is not safe for concurrent use.
//
// Beyond the limit less its reserve, a level takes no more units, and only those above it do. There
// the units in flight are a birth-death chain: they rise with the arrivals of those above, and fall as
// fast as the limit lets units complete. With ρ the ratio of the two, each further unit is ρ times as
// likely as the one before, so the reserve is exceeded for a share ρ^R of the time (trunk reservation
// in telephony; see Kelly, Loss Networks, 1991). The law makes that share lost:
//
//	R = ln(1/lost) / ln(1/ρ), but at most a quarter of the limit for each level above
//
// Without arrivals above, or with few, R is 0: one level alone is judged as by a rule without order.
// ρ grows downwards, and so does R.
type law struct {
	begun  bool
	at     int64 // of the last look
	seen   totals
	weight float64 // of the rates: the share of smoothing that has passed, at most 1

	calls, units [levels]float64 // per second
	done, time   float64         // units, and seconds
	each         float64         // units that complete per second for each unit in flight; 0 while unknown
}

// look updates the rates, if it is time.
func (l *law) look(now int64, t totals) {
	if !l.begun {
		l.begun, l.at, l.seen = true, now, t
		return
	}
	passed := now - l.at
	if passed < period {
		return
	}
	keep := math.Exp(-float64(passed) / float64(smoothing))
	per := (1 - keep) / time.Duration(passed).Seconds()
	for i := range levels {
		l.calls[i] = keep*l.calls[i] + per*float64(t.calls[i]-l.seen.calls[i])
		l.units[i] = keep*l.units[i] + per*float64(t.units[i]-l.seen.units[i])
	}
	l.weight = keep*l.weight + 1 - keep
	l.done = keep*l.done + float64(t.done-l.seen.done)
	l.time = keep*l.time + time.Duration(t.time-l.seen.time).Seconds()
	if l.time > 1e-9 {
		l.each = l.done / l.time
	}
	l.at, l.seen = now, t
}

// reserves returns the reserve of each level under a limit, in units, at most most.
func (l *law) reserves(limit, most int64) (r [levels]int64) {
	capacity := float64(limit) * l.each * l.weight // the rates have the same weight
	if capacity <= 0 {
		return r
	}
	above, calls := 0.0, 0.0
	for i := 1; i < levels; i++ {
		above += l.units[i-1]
		calls += l.calls[i-1]
		units := tail(above / capacity)
		if calls > 0 {
			units *= max(1, above/calls) // for calls of several units
		}
		units = math.Floor(min(units, share*float64(i)*float64(limit), float64(most)))
		r[i] = max(r[i-1], int64(units)) // the maximum is for rounding only
	}
	return r
}

// tail returns the length beyond which a chain with that ratio is for a share lost of the time.
func tail(ratio float64) float64 {
	switch {
	case ratio < lost:
		return 0
	case ratio >= 1:
		return math.Inf(1)
	}
	return math.Floor(math.Log(1/lost) / math.Log(1/ratio))
}
