package hotspot_test

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
)

// costTwin is the naive meter of one value: it remembers every unit, and works out anew what it needs.
// Amounts are in multiples of the scale. Thresholds are powers of two, so that all costs are whole.
type costTwin struct {
	rule  *hotspot.Rule
	scale int64
	value string

	log      []*units
	last     int64 // the latest turn
	lossy    bool  // a token bucket may have forgotten bounds of refunds
	quickest int64 // the highest rate that the bucket may have filled at
}

// units are a number of units taken at once, or the rate of a token bucket from then on.
type units struct {
	at, n, rate int64
}

const perSecond = int64(time.Second)

// limit returns the value's threshold.
func (w *costTwin) limit() int64 {
	for _, x := range w.rule.Exceptions {
		if x.Value == hotspot.ValueOf(w.value) {
			return int64(x.Threshold) / w.scale
		}
	}
	return int64(w.rule.Threshold) / w.scale
}

func (w *costTwin) size() int64 { return int64(w.rule.Burst+1) / w.scale }

// sum returns the units that count in a window, or are in flight.
func (w *costTwin) sum(now int64) (sum int64) {
	const width = perSecond / 10
	for _, x := range w.log {
		if w.rule.Metric == hotspot.Concurrency || x.at/width > now/width-11 {
			sum += x.n
		}
	}
	return sum
}

// missing returns what is missing in a token bucket, in 10⁻⁹ units, and the number of takes since it
// was full.
func (w *costTwin) missing(now int64) (missing int64, takes int) {
	at, rate := int64(0), int64(0)
	for _, x := range w.log {
		missing, at = max(0, missing-(x.at-at)*rate), x.at
		if x.rate != 0 {
			rate = x.rate
			continue
		}
		if missing == 0 {
			takes = 0
		}
		missing, takes = missing+x.n*perSecond, takes+1
	}
	return max(0, missing-(now-at)*rate), takes
}

func (w *costTwin) wait(now, n int64) time.Duration {
	return time.Duration(max(0, w.last+n*perSecond/w.limit()-now))
}

func (w *costTwin) fits(now, n int64, more bool) bool {
	switch {
	case w.limit() == 0:
		return false
	case w.rule.Behavior == hotspot.TokenBucket:
		missing, _ := w.missing(now)
		return missing+n*perSecond <= w.size()*perSecond
	case w.rule.Behavior == hotspot.Throttle:
		return more && w.rule.Mode == spec.Enforce || w.wait(now, n) <= w.rule.MaxWait
	}
	return w.sum(now)+n <= w.limit()
}

func (w *costTwin) take(now, n int64) *units {
	x := &units{at: now, n: n}
	if w.rule.Behavior == hotspot.Throttle {
		w.last, x.rate = max(w.last+n*perSecond/w.limit(), now), w.limit()
		return x
	}
	w.log = append(w.log, x)
	w.count(now)
	return x
}

func (w *costTwin) count(now int64) {
	if w.rule.Behavior == hotspot.TokenBucket {
		_, takes := w.missing(now)
		w.lossy = w.lossy || takes > 8
	}
}

// charge counts units that the call used beyond its reservation x.
func (w *costTwin) charge(now, n int64, x *units) *units {
	most := func(limit int64) int64 {
		if w.rule.MaxOverdraft == 0 {
			return math.MaxInt64 / perSecond
		}
		return limit + int64(float64(limit)*w.rule.MaxOverdraft)
	}
	switch {
	case w.rule.Behavior == hotspot.Throttle:
		rate := w.limit()
		if rate == 0 {
			rate = x.rate
		}
		w.last = max(w.last, now) + n*perSecond/rate
		return nil
	case w.rule.Behavior == hotspot.TokenBucket:
		missing, _ := w.missing(now)
		if n = min(n, (most(w.size())*perSecond-missing)/perSecond); n <= 0 {
			return nil
		}
	case w.rule.Metric == hotspot.QPS:
		n = max(0, min(n, most(w.limit())-w.sum(now)))
	}
	return w.take(now, n)
}

// follow takes note of the rule's latest rate. Under a limit of 0, a bucket fills at the rate before or,
// if the value has lost its cell, at that of the others.
func (w *costTwin) follow(now int64, few bool) {
	if w.rule.Behavior != hotspot.TokenBucket {
		return
	}
	rate := w.limit()
	w.quickest = max(w.quickest, int64(w.rule.Threshold)/w.scale, rate)
	if rate == 0 && few {
		rate = w.quickest
	}
	if rate > 0 {
		w.log = append(w.log, &units{at: now, rate: rate})
	}
}

// joins reports whether a grant at now goes back together with an earlier one.
func (w *costTwin) joins(x *units, now int64) bool {
	const width = perSecond / 10
	return w.rule.Metric == hotspot.Concurrency || w.rule.Behavior == hotspot.Reject && x.at/width == now/width
}

// costly is a call in flight.
type costly struct {
	engine.Entry
	named, more int64
	settled     bool
	known       bool // it has a cost, though nothing may be reserved
	of          []*ofValue
}

// ofValue has what a call holds of one value.
type ofValue struct {
	*costTwin
	first, later, charged *units
}

// reserved returns the reservation that is charged, or nil.
func (h *ofValue) reserved() *units {
	if h.first != nil {
		return h.first
	}
	return h.later
}

func (h *ofValue) settle(now, named, more, used int64) {
	reserved := named
	if h.first != nil {
		reserved = h.first.n
	}
	debit := used - reserved - more
	if h.rule.Behavior == hotspot.Throttle && debit < 0 || h.reserved() == nil {
		return
	}
	if debit > 0 {
		h.charged = h.charge(now, debit, h.reserved())
		return
	}
	for _, x := range []*units{h.later, h.first} {
		if x != nil {
			back := min(-debit, x.n)
			x.n, debit = x.n-back, debit+back
		}
	}
}

// exit releases what is in flight.
func (h *ofValue) exit() {
	for _, x := range []*units{h.first, h.later, h.charged} {
		if x != nil && h.rule.Metric == hotspot.Concurrency {
			x.n = 0
		}
	}
}
