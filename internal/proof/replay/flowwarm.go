package replay

import "math"

// tokens returns Java's marks of a warm-up: the warning mark and the full one.
func (r *activeRule) tokens() (warning, full float64) {
	perPeriod := r.perSecond() * r.WarmUpPeriod.Seconds()
	factor := float64(r.ColdFactor)
	warning = math.Floor(math.Floor(perPeriod) / (factor - 1))
	return warning, warning + math.Floor(2*perPeriod/(1+factor))
}

// slow reports whether Java's two marks coincide: then ours are not rounded.
func (r *activeRule) slow() bool {
	warning, full := r.tokens()
	return warning == full
}
