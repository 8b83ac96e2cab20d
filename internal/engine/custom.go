package engine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/shared"
)

// Refuse returns the verdict with which a custom slot rejects a call: its error is of
// [core.KindCustom] and has the reason in place of a rule's ID. It is counted and logged like a
// rule's rejection. It allocates only for the first call of a resource with that reason. So there
// should be few reasons, such as "tenant is suspended"; beyond 64 on one resource, all others are
// reported as "other reasons".
func (inv *Invocation) Refuse(reason string) Verdict { return inv.RefuseWith(reason, 0) }

// RefuseWith is like [Invocation.Refuse], but also sets the HTTP status that adapters use, from 400
// to 599, or the corresponding gRPC code. Any other value means 503.
func (inv *Invocation) RefuseWith(reason string, status int) Verdict {
	return Verdict{Block: inv.resource.custom(cause{reason, status})}
}

const (
	maxReasons   = 64
	otherReasons = "other reasons"
)

// cause is the reason of a custom rejection, and its status.
type cause struct {
	reason string
	status int
}

// customRecords are the records of an engine's custom slots, by reason. They outlive resources.
type customRecords struct {
	mu       shared.Mutex // guards the fields below it
	byReason map[string]*Record
}

// of returns the record of a reason, or one shared by all beyond the maximum.
func (c *customRecords) of(reason string) *Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.byReason[reason]; r != nil {
		return r
	}
	if len(c.byReason) >= maxReasons {
		reason = otherReasons
	}
	if c.byReason == nil {
		c.byReason = make(map[string]*Record)
	}
	if c.byReason[reason] == nil {
		c.byReason[reason] = new(Record)
	}
	return c.byReason[reason]
}

// CustomStats returns the rejections by custom slots, as stats of rules of [core.KindCustom] whose
// ID is the reason, ordered by reason.
func (e *Engine) CustomStats() (all []core.RuleStats) {
	e.custom.mu.Lock()
	defer e.custom.mu.Unlock()
	for reason, r := range e.custom.byReason {
		all = append(all, core.RuleStats{Kind: core.KindCustom, ID: reason, Asked: true, Refused: r.Refused.Load()})
	}
	slices.SortFunc(all, func(a, b core.RuleStats) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// custom returns the BlockError that all rejections of the resource for a reason share.
func (r *Resource) custom(why cause) *core.BlockError {
	for {
		before := r.reasons.Load()
		var known map[cause]*core.BlockError
		if before != nil {
			known = *before
		}
		if b := known[why]; b != nil {
			return b
		}
		if len(known) >= maxReasons && why.reason != otherReasons {
			why = cause{reason: otherReasons}
			continue
		}
		next := maps.Clone(known)
		if next == nil {
			next = make(map[cause]*core.BlockError)
		}
		b := core.BlockError{Kind: core.KindCustom, Resource: r.Name(), Rule: why.reason, Status: why.status}
		made := NewCounted(b, nil, r.engine.custom.of(why.reason), nil)
		next[why] = made
		if r.reasons.CompareAndSwap(before, &next) {
			return made
		}
	}
}

// eachCustom calls f with every custom rejection of a resource.
func (r *Resource) eachCustom(f func(*core.BlockError)) {
	if known := r.reasons.Load(); known != nil {
		for _, b := range *known {
			f(b)
		}
	}
}
