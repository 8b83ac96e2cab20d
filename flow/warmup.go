package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
)

// warmUp learns how warm a resource is, and from that how much it may get. It enforces nothing. It
// is safe for concurrent use.
//
// It is the token bucket of alibaba/Sentinel's WarmUpController, which follows
// Guava's SmoothWarmingUp: a cold resource has a full bucket; every unit that passes takes a token
// out, and idle time puts tokens in. With C the threshold per second, P the period in seconds and F
// the cold factor,
//
//	warning = floor(P·C) / (F-1)              in whole tokens
//	full    = warning + floor(2·P·C / (1+F))
//	slope   = (F-1) / C / (full - warning)
//
// and with s tokens stored, the rate is C while s < warning, else
//
//	1 / ((s - warning)·slope + 1/C)
//
// which is C/F at s = full. The bucket is settled by the first call in a second:
// it gains C tokens for each second since the last time if s < warning, or if
// s > warning and the last second passed fewer than floor(C)/F; then it loses what
// the last second passed.
//
// Three things are not Sentinel's: a resource starts cold whatever the clock shows;
// the rate stays between C/F and C where the formula has no finite value; and where there is no
// whole token between warning and full, nothing is rounded. In that case seconds in which nothing
// passes are normal, so the last one says nothing: what has passed since the last settling is taken
// out first, by the node's total, and a time of up to F/C after a unit, which is how long a cold
// resource takes between two units, doesn't count as idle: it gains nothing beyond warning.
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
	filled int64 // the second of the last settling, ns
	begun  bool
	// share is stored as a share of full at the last settling, whichever rule did that. Successors
	// continue from it, since what is stored is rounded each time.
	share float64

	used usage // if nothing is rounded
}

// usage is what a warm-up knows of a node.
type usage struct {
	node  *node.StatisticNode // of the last settling
	total int64               // what it had passed by then
	last  float64             // when it last passed something, ns: the settling before that was noticed
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

// look is at without a trace: it settles a copy.
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

// passedLocked is what the bucket has to lose: for the last second or, if nothing is rounded, for the
// time since it was settled on the same node. The caller holds mu.
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

// settleLocked brings the bucket to the given second. The caller holds mu.
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
	w.share = 1 // a bucket that holds nothing can't be emptied
	if w.full > 0 {
		w.share = w.stored / w.full
	}
	w.filled = second
}

// publishLocked makes the rate known. The caller holds mu.
func (w *warmUp) publishLocked() {
	rate := w.perSecond
	if over := w.stored - w.warning; over >= 0 && w.full > w.warning {
		if w.rounds {
			rate = math.Nextafter(1/(over*w.slope+1/w.perSecond), math.Inf(1))
		} else { // the same, in terms that are finite however small C is
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
