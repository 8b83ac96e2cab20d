package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
)

// warmUp learns how warm a resource is, and derives its rate from that. It enforces nothing. Safe
// for concurrent use.
//
// It is the token bucket of alibaba/Sentinel's WarmUpController, which follows Guava's
// SmoothWarmingUp: a cold resource has a full bucket; every unit that passes takes a token out, and
// idle time puts tokens in. With C the threshold per second, P the period in seconds and F the cold
// factor,
//
//	warning = floor(P·C) / (F-1)              in whole tokens
//	full    = warning + floor(2·P·C / (1+F))
//	slope   = (F-1) / C / (full - warning)
//
// and with s tokens stored, the rate is C while s < warning, else
//
//	1 / ((s - warning)·slope + 1/C)
//
// which is C/F at s = full. The first call in a second settles the bucket: it gains C tokens for
// each second since the last time if s < warning, or if s > warning and the last second passed
// fewer than floor(C)/F; then it loses the units that the last second passed.
//
// Three things differ from Sentinel: a resource starts cold at any clock time; the rate stays
// between C/F and C where the formula has no finite value; and if there is no whole token between
// warning and full, nothing is rounded. In that case seconds without a call are normal, so the last
// second means little: the units passed since the last settling, by the node's total, are taken out
// first. A pause of up to F/C after a unit, the distance between two units on a cold resource, is
// not idle time: it gains nothing beyond warning.
type warmUp struct {
	perSecond float64 // C
	factor    float64 // F
	floor     float64 // C/F
	refillMax float64 // floor(C)/F, in whole tokens
	rounds    bool
	warning   float64
	full      float64
	slope     float64

	// rate and until mirror the state below: rate holds until that time. Settling stores rate
	// before until, so a call that sees the new time sees the new rate.
	rate  shared.Uint64 // bits of a float64, units per second
	until shared.Int64

	mu     shared.Mutex
	stored float64
	filled int64 // second of the last settling, ns
	begun  bool
	// share is the stored tokens as a share of full at the last settling, under any rule.
	// Successors continue from it, since the stored tokens are rounded each time.
	share float64

	used usage // only if nothing is rounded
}

// usage records what a warm-up has seen on a node.
type usage struct {
	node  *node.StatisticNode // node of the last settling
	total int64               // its total then
	last  float64             // when it last passed something, ns: the settling before that was seen
}

func newWarmUp(r Rule) *warmUp {
	perSecond := r.Threshold / r.Interval.Seconds()
	factor := float64(r.ColdFactor)
	tokens := perSecond * r.WarmUpPeriod.Seconds()
	w := &warmUp{
		perSecond: perSecond,
		factor:    factor,
		floor:     perSecond / factor,
		refillMax: math.Floor(math.Floor(perSecond) / factor),
		rounds:    math.Floor(2*tokens/(1+factor)) > 0,
	}
	if w.rounds {
		w.warning = math.Floor(math.Floor(tokens) / (factor - 1))
		w.full = w.warning + math.Floor(2*tokens/(1+factor))
	} else {
		w.warning = tokens / (factor - 1)
		w.full = w.warning + 2*tokens/(1+factor)
	}
	w.slope = (factor - 1) / perSecond / (w.full - w.warning)
	w.until.Store(math.MinInt64)
	return w
}

// inherit takes over how warm an older warm-up was, as a share of its bucket.
func (w *warmUp) inherit(old *warmUp) {
	old.mu.Lock()
	share, filled, begun, used := old.share, old.filled, old.begun, old.used
	old.mu.Unlock()
	if !begun {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.share, w.stored = share, share*w.full
	if w.rounds {
		w.stored = math.Round(w.stored)
	}
	w.filled, w.begun, w.used = filled, true, used
	w.publishLocked()
}

// at returns the rate in units per second at now, for traffic counted on n.
func (w *warmUp) at(now int64, n *node.StatisticNode) float64 {
	if now < w.until.Load() {
		return math.Float64frombits(w.rate.Load())
	}
	second := now - ((now%int64(time.Second))+int64(time.Second))%int64(time.Second)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.begun || second > w.filled {
		w.settleLocked(second, w.passedLocked(now, n))
		w.publishLocked()
	}
	return math.Float64frombits(w.rate.Load())
}

// look is like at, but has no side effects: it settles a copy.
func (w *warmUp) look(now int64, n *node.StatisticNode) float64 {
	next := &warmUp{
		perSecond: w.perSecond, factor: w.factor, floor: w.floor, refillMax: w.refillMax, rounds: w.rounds,
		warning: w.warning, full: w.full, slope: w.slope,
	}
	next.until.Store(math.MinInt64)
	w.mu.Lock()
	next.stored, next.filled, next.begun, next.share, next.used = w.stored, w.filled, w.begun, w.share, w.used
	w.mu.Unlock()
	if next.begun {
		next.publishLocked()
	}
	return next.at(now, n)
}

// passedLocked returns the tokens that the bucket must lose: for the last second or, if nothing is
// rounded, for the time since it was settled on the same node.
func (w *warmUp) passedLocked(now int64, n *node.StatisticNode) float64 {
	if w.rounds {
		return float64(n.LastSecond(now).Pass)
	}
	before, known := w.used.total, w.used.node == n
	w.used.node, w.used.total = n, n.Totals().Pass
	if !known {
		return float64(n.LastSecond(now).Pass)
	}
	return float64(w.used.total - before)
}

// settleLocked brings the bucket to the given second.
func (w *warmUp) settleLocked(second int64, passed float64) {
	gain := float64((second-w.filled)/int64(time.Millisecond)) / 1000 * w.perSecond
	switch {
	case !w.begun:
		w.stored, w.begun = w.full-passed, true
		w.used.last = math.Inf(-1)
	case w.rounds:
		if w.stored < w.warning || w.stored > w.warning && passed < w.refillMax {
			w.stored = math.Floor(min(w.stored+gain, w.full))
		}
		w.stored -= passed
	default:
		if passed > 0 {
			w.used.last = float64(w.filled)
		}
		end := w.full
		if idle := float64(second) - w.used.last; idle*w.floor <= float64(time.Second) {
			end = w.warning
		}
		if w.stored = max(0, w.stored-passed); w.stored < end {
			w.stored = min(w.stored+gain, end)
		}
	}
	w.stored = max(0, w.stored)
	w.share = 1 // a bucket of size 0 is always full
	if w.full > 0 {
		w.share = w.stored / w.full
	}
	w.filled = second
}

// publishLocked publishes the rate.
func (w *warmUp) publishLocked() {
	rate := w.perSecond
	if over := w.stored - w.warning; over >= 0 && w.full > w.warning {
		if w.rounds {
			rate = math.Nextafter(1/(over*w.slope+1/w.perSecond), math.Inf(1))
		} else { // the same, in terms that stay finite for any small C
			rate /= 1 + (w.factor-1)*over/(w.full-w.warning)
		}
	}
	rate = min(max(rate, w.floor), w.perSecond)
	w.rate.Store(math.Float64bits(rate))
	w.until.Store(w.filled + int64(time.Second))
}

// cold reports whether a new warm-up would allow no more than this one.
func (w *warmUp) cold(now int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.begun || w.stored == w.full && now >= w.filled+int64(time.Second)
}
