package replay

import (
	"math"
)

// warmth is the bucket of tokens of a warm-up: full while the resource is cold.
type warmth struct {
	begun  bool
	stored float64 // tokens, whole ones unless the rule's rate is low
	second int64   // that it was settled in, ns
	share  float64 // of full that was stored then, under the rule of then

	// Of a low rate: how many units the node had passed by then, which node, and in which
	// second something passed last, nil if nothing did.
	total    int64
	node     NodeRef
	lastPass *int64
}

// tokens are Java's marks of a warm-up: where it warns and where it is full.
func (r *activeRule) tokens() (warning, full float64) {
	perPeriod := r.perSecond() * r.WarmUpPeriod.Seconds()
	factor := float64(r.ColdFactor)
	warning = math.Floor(math.Floor(perPeriod) / (factor - 1))
	return warning, warning + math.Floor(2*perPeriod/(1+factor))
}

// slow reports whether there is no whole token between Java's marks: then ours are not
// rounded.
func (r *activeRule) slow() bool {
	warning, full := r.tokens()
	return warning == full
}

// marks are where our warm-up warns and where it is full.
func (r *activeRule) marks() (warning, full float64) {
	if !r.slow() {
		return r.tokens()
	}
	perPeriod := r.perSecond() * r.WarmUpPeriod.Seconds()
	warning = perPeriod / float64(r.ColdFactor-1)
	return warning, warning + 2*perPeriod/float64(1+r.ColdFactor)
}

// passage is what has passed on the node of a rule: in the last second, and at all.
type passage struct {
	node      NodeRef
	last, all int64
}

// rate is the units a second that the rule gives in a second.
func (w *warmth) rate(r *activeRule, second int64, passed passage) float64 {
	warning, full := r.marks()
	if !w.begun || second > w.second {
		w.settle(r, second, passed)
	}
	fastest := r.perSecond()
	if w.stored < warning || full == warning {
		return fastest
	}
	if r.slow() {
		return fastest / (1 + float64(r.ColdFactor-1)*(w.stored-warning)/(full-warning))
	}
	slope := (float64(r.ColdFactor) - 1) / fastest / (full - warning)
	rate := math.Nextafter(1/((w.stored-warning)*slope+1/fastest), math.Inf(1))
	return min(max(rate, fastest/float64(r.ColdFactor)), fastest)
}

// settle adds the tokens of the time that has passed, unless as many passed as keep the
// resource warm, and takes away what passed.
func (w *warmth) settle(r *activeRule, second int64, passed passage) {
	warning, full := r.marks()
	gained := toSeconds(second-w.second) * r.perSecond()
	lost := float64(passed.last)
	switch {
	case !w.begun:
		w.stored = full
	case r.slow():
		if w.node == passed.node {
			lost = float64(passed.all - w.total)
		}
		if lost > 0 {
			w.lastPass = new(w.second)
		}
		if w.lastPass != nil && toSeconds(second-*w.lastPass)*r.perSecond()/float64(r.ColdFactor) <= 1 {
			full = warning // it is in use, if only now and then
		}
		w.stored = max(0, w.stored-lost)
		w.stored = max(w.stored, min(full, w.stored+gained))
		_, full = r.marks()
		lost = 0
	default:
		warm := math.Floor(math.Floor(r.perSecond()) / float64(r.ColdFactor))
		if w.stored < warning || w.stored > warning && lost < warm {
			w.stored = math.Floor(min(full, w.stored+gained))
		}
	}
	w.stored = max(0, min(w.stored, full)-lost)
	if r.slow() {
		w.node, w.total = passed.node, passed.all
	}
	w.begun, w.second, w.share = true, second, 1
	if full > 0 {
		w.share = w.stored / full
	}
}

// under is how warm the resource is under a rule that was changed: as warm as it was, as
// a share of what it can be.
func (w *warmth) under(r *activeRule) *warmth {
	if w == nil || !w.begun {
		return nil
	}
	changed := *w
	_, full := r.marks()
	if changed.stored = w.share * full; !r.slow() {
		changed.stored = math.Round(changed.stored)
	}
	return &changed
}
