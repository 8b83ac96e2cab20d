package system

import (
	"maps"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/shared"
)

// refusals holds the errors of the rules for refused calls of one resource. A rule gets one only
// when it first refuses a call there, as there may be many rules and many resources. They survive
// the revisions of the rules. Safe for concurrent use.
type refusals struct {
	resource string

	mu   shared.Mutex               // guards the fields below it
	made map[*engine.Record]refusal // by record, which all revisions of a rule share
}

type refusal struct {
	gate *gate
	*core.BlockError
}

// by returns the refusal of a rule. It continues the count of the rule's predecessor.
func (rs *refusals) by(g *gate) *core.BlockError {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	last := rs.made[g.record]
	if last.gate == g {
		return last.BlockError
	}
	next := engine.NewCounted(family.Refused(core.KindSystem, rs.resource, g.rule.Info()), g, g.record, last.BlockError)
	if rs.made == nil {
		rs.made = make(map[*engine.Record]refusal)
	}
	rs.made[g.record] = refusal{g, next}
	return next
}

// keep drops the refusals of rules that are gone.
func (rs *refusals) keep(rules map[*engine.Record]bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for rule := range rs.made {
		if !rules[rule] {
			delete(rs.made, rule)
		}
	}
}

// each calls f with every refusal, without holding the lock.
func (rs *refusals) each(f func(rule *engine.Record, b *core.BlockError)) {
	rs.mu.Lock()
	made := make(map[*engine.Record]refusal, len(rs.made))
	maps.Copy(made, rs.made)
	rs.mu.Unlock()
	for rule, r := range made {
		f(rule, r.BlockError)
	}
}
