package model

import (
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
)

// expression is a pattern in the rules of a family.
type expression struct {
	kind    core.Kind
	pattern string
}

// pending records which resources are yet to be matched by expressions of a load: the next call
// does that. Until then a resource remembers its counts at the first such load.
type pending struct {
	born    map[expression]uint64 // the revision that added it
	matched map[string]uint64     // the last matched revision, by resource
	since   map[string]int64      // when it began to remember, by resource
}

func makePending() pending {
	return pending{born: make(map[expression]uint64), matched: make(map[string]uint64), since: make(map[string]int64)}
}

// remember records the expressions of the loaded rules, and when resources began to remember.
// Resources with a queued call are matched at once.
func (m *Model) remember() {
	born := make(map[expression]uint64)
	expressions(m, born, core.KindAuthority, m.set.Authority)
	expressions(m, born, core.KindBreaker, m.set.Breaker)
	m.pending.born = born
	for name := range m.entered {
		if m.isMatched(name) || slices.ContainsFunc(m.semaphores, func(g *semaphore) bool {
			return g.on == cluster(name) && g.owner == permits && len(g.queue) > 0
		}) {
			m.match(name)
		} else if _, remembers := m.pending.since[name]; !remembers {
			m.pending.since[name] = m.now
		}
	}
}

func expressions[R spec.Rule](m *Model, born map[expression]uint64, kind core.Kind, rules []R) {
	for _, r := range rules {
		info := r.Info()
		if x := (expression{kind, info.Resource}); info.Match == spec.MatchRegex && info.Mode != spec.Off {
			if born[x] = m.pending.born[x]; born[x] == 0 {
				born[x] = m.revision
			}
		}
	}
}

func (m *Model) isMatched(name string) bool {
	for _, revision := range m.pending.born {
		if revision > m.pending.matched[name] {
			return false
		}
	}
	return true
}

// match clears what a resource remembers: all current rules apply to it.
func (m *Model) match(name string) {
	m.pending.matched[name] = m.revision
	delete(m.pending.since, name)
}

// remembers returns when a node last recorded its counts: now, or when its resource began to
// remember.
func (m *Model) remembers(p place) int64 {
	if since, ok := m.pending.since[p.resource]; ok {
		return since
	}
	return m.now
}
