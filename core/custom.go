package core

import "maps"

// Refuse is the verdict with which a user's own slot refuses a call for a reason: its error is of
// [KindCustom] and has the reason where errors of other kinds have the rule's ID. The refusal is
// counted and logged like that of a rule, and allocates nothing, except for the first call of a
// resource that is refused for that reason. So there should be few reasons, such as "tenant is
// suspended"; beyond 64 on one resource, all others are reported as "other reasons".
func (inv *Invocation) Refuse(reason string) Verdict {
	return Verdict{Block: inv.resource.custom(reason)}
}

const (
	mostReasons  = 64
	otherReasons = "other reasons"
)

// custom is the refusal of a resource for a reason.
func (r *Resource) custom(reason string) *BlockError {
	for {
		before := r.reasons.Load()
		var known map[string]*BlockError
		if before != nil {
			known = *before
		}
		if b := known[reason]; b != nil {
			return b
		}
		if len(known) >= mostReasons && reason != otherReasons {
			reason = otherReasons
			continue
		}
		next, b := maps.Clone(known), NewBlockError(BlockError{Kind: KindCustom, Resource: r.Name(), Rule: reason}, nil, nil, nil)
		if next == nil {
			next = make(map[string]*BlockError)
		}
		next[reason] = b
		if r.reasons.CompareAndSwap(before, &next) {
			return b
		}
	}
}

// eachCustom calls f with every refusal of a resource that is not a rule's.
func (r *Resource) eachCustom(f func(*BlockError)) {
	if known := r.reasons.Load(); known != nil {
		for _, b := range *known {
			f(b)
		}
	}
}
