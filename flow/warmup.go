package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
)

// warmUp learns how warm a resource is and from that what it may get. It enforces
// nothing. It is safe for concurrent use.
//
// It is the token bucket of alibaba/Sentinel's WarmUpController, which follows
// Guava's SmoothWarmingUp: a cold resource has a full bucket; every unit that
// passes takes a token out, and an idle time puts tokens in. With C the threshold
// per second, P the period in seconds and F the cold factor,
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
// Two things are not Sentinel's: a resource starts cold whatever the clock shows,
// and the rate stays between C/F and C where the formula has no finite value.
type warmUp struct {
	perSecond float64 // C
	floor     float64 // C/F
	refillMax int64   // floor(C)/F
	warning   int64
	full      int64
	slope     float64

	// rate and until mirror the state below: rate holds until that time. Whoever
	// settles stores rate before until, so who sees the new time sees the new rate.
	rate  shared.Uint64 // bits of a float64, units per second
	until shared.Int64

	mu     shared.Mutex
	stored int64
	filled int64 // the second of the last settling, ns
	begun  bool
	// share is stored as a share of full at the last settling, by whichever rule that
	// was. Successors go on from it, since what is stored is rounded each time.
	share float64
}

func newWarmUp(r Rule) *warmUp {
	perSecond := r.Threshold / r.Interval.Seconds()
	period := r.WarmUpPeriod.Seconds()
	factor := float64(r.ColdFactor)
	w := &warmUp{
		perSecond: perSecond,
		floor:     perSecond / factor,
		refillMax: int64(perSecond) / int64(r.ColdFactor),
		warning:   int64(period*perSecond) / int64(r.ColdFactor-1),
	}
	w.full = w.warning + int64(2*period*perSecond/(1+factor))
	w.slope = (factor - 1) / perSecond / float64(w.full-w.warning)
	w.until.Store(math.MinInt64)
	return w
}

// inherit takes over how warm an older warm-up was, as a share of its bucket.
func (w *warmUp) inherit(old *warmUp) {
	old.mu.Lock()
	share, filled, begun := old.share, old.filled, old.begun
	old.mu.Unlock()
	if !begun {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.share, w.stored = share, int64(math.Round(share*float64(w.full)))
	w.filled, w.begun = filled, true
	w.publish()
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
		w.settle(second, n.LastSecond(now).Pass)
		w.publish()
	}
	return math.Float64frombits(w.rate.Load())
}

// settle brings the bucket to the given second. The caller holds mu.
func (w *warmUp) settle(second, passed int64) {
	switch {
	case !w.begun:
		w.stored, w.begun = w.full, true
	case w.stored < w.warning, w.stored > w.warning && passed < w.refillMax:
		gained := float64((second-w.filled)/int64(time.Millisecond)) * w.perSecond / 1000
		w.stored = int64(min(float64(w.stored)+gained, float64(w.full)))
	}
	w.stored = max(0, min(w.stored, w.full)-passed)
	w.share = 1 // a bucket that holds nothing can't be emptied
	if w.full > 0 {
		w.share = float64(w.stored) / float64(w.full)
	}
	w.filled = second
}

// publish makes the rate known. The caller holds mu.
func (w *warmUp) publish() {
	rate := w.perSecond
	if w.stored >= w.warning && w.full > w.warning {
		rate = math.Nextafter(1/(float64(w.stored-w.warning)*w.slope+1/w.perSecond), math.Inf(1))
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
