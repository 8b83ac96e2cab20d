package system

import (
	"maps"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/shared"
)

// refusals are what the rules say to the calls of one resource that they refuse. There is one
// for each rule that has refused one, and not before: there may be many rules and many
// resources. It outlives the revisions of the rules. It is safe for concurrent use.
type refusals struct {
	resource string

	mu   shared.Mutex
	made map[*core.Record]refusal // by what all revisions of a rule have in common
}

type refusal struct {
	gate *gate
	*core.BlockError
}

// by is the refusal of a rule. It counts on where that of the rule before left off.
func (rs *refusals) by(g *gate) *core.BlockError {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	last := rs.made[g.record]
	if last.gate == g {
		return last.BlockError
	}
	next := core.NewBlockError(core.BlockError{Kind: core.KindSystem, Resource: rs.resource, Rule: g.rule.ID}, g, g.record, last.BlockError)
	if rs.made == nil {
		rs.made = make(map[*core.Record]refusal)
	}
	rs.made[g.record] = refusal{g, next}
	return next
}

// keep forgets what the rules said that are gone.
func (rs *refusals) keep(rules map[*core.Record]bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for rule := range rs.made {
		if !rules[rule] {
			delete(rs.made, rule)
		}
	}
}

// each calls f with all of them, under no lock.
func (rs *refusals) each(f func(rule *core.Record, b *core.BlockError)) {
	rs.mu.Lock()
	made := make(map[*core.Record]refusal, len(rs.made))
	maps.Copy(made, rs.made)
	rs.mu.Unlock()
	for rule, r := range made {
		f(rule, r.BlockError)
	}
}
