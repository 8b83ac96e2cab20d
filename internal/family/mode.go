package family

import "github.com/penstock-go/penstock/core/spec"

// Rules are the controllers of a resource, in the order of their rules. The Rules of a family embed
// them for the Modes that engine.ShadowChecker requires.
type Rules[C any] struct {
	Holding []*C // of enforced rules
	Shadows []*C // of rules in shadow mode
	Notices []*C // of rules that report the use of their limit
}

// ByMode splits the result of [Index.Hold].
func (t *Index[R, C]) ByMode(all []*C) (rs Rules[C]) {
	for _, c := range all {
		if (*t.maker.Rule(c)).Info().Mode == spec.Shadow {
			rs.Shadows = append(rs.Shadows, c)
		} else {
			rs.Holding = append(rs.Holding, c)
		}
	}
	return rs
}

// Modes reports whether there are enforced rules, and rules that see a call after all enforced rules
// have admitted it: rules in shadow mode, which decide then, and rules that report the use of
// their limit.
func (rs *Rules[C]) Modes() (hold, shadow bool) {
	return len(rs.Holding) > 0, len(rs.Shadows)+len(rs.Notices) > 0
}

// TakeOut removes from Holding the controllers of rules with limits shared by a cluster, and
// returns them.
func (rs *Rules[C]) TakeOut(shared func(*C) bool) (out []*C) {
	all := rs.Holding
	rs.Holding = nil
	for _, c := range all {
		if shared(c) {
			out = append(out, c)
		} else {
			rs.Holding = append(rs.Holding, c)
		}
	}
	return out
}
