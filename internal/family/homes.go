package family

import (
	"iter"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
)

// home is the place of a rule that counts all its names together, and its controller there, which
// all these names share; see together.go of package engine.
type home[C any] struct {
	resource   *engine.Resource
	controller *C
}

// BindHomes implements [engine.Homed]. A rule that continues one with a home, perhaps with another
// pattern, goes on at that home. If the older rule counted each name by itself, its state stays
// behind.
func (t Compiled[R, C]) BindHomes(now int64) {
	previous := t.previous
	t.previous = nil // so that a rule set keeps no earlier one alive
	var sites []*engine.Binding
	bind := func(at *engine.Binding, c *C) {
		if t.maker.AtHome != nil {
			t.maker.AtHome(at, c)
		}
		sites = append(sites, at)
	}
	if previous != nil {
		for number, old := range previous.homes {
			at := engine.NewBinding(old.resource, now)
			next, ok := t.successors[previous.rules[number].Info().ID]
			if !ok || !t.rules[next.rule].Info().Together {
				bind(at, nil)
				continue
			}
			h := &home[C]{old.resource, old.controller}
			if !next.unchanged || t.stale(previous.revision, next.rule) {
				h.controller = t.maker.Build(t.rules[next.rule], t.records[next.rule], at, old.controller)
			}
			t.setHome(next.rule, h)
			bind(at, h.controller)
		}
	}
	for i, rule := range t.rules {
		if info := rule.Info(); info.Together && t.homes[i] == nil {
			at := engine.NewBinding(t.Engine.NewHome(), now)
			c := t.maker.Build(rule, t.records[i], at, nil)
			t.setHome(i, &home[C]{at.Resource, c})
			bind(at, c)
		}
	}
	for _, at := range sites {
		at.HandOver(now)
	}
	for i, h := range t.homes {
		h.resource.Keep(t.kind, &Kept[R, C]{revision: t.revision, made: []made[C]{{i, h.controller}}}, t.revision)
	}
}

func (t *Index[R, C]) setHome(rule int, h *home[C]) {
	if t.homes == nil {
		t.homes = make(map[int]*home[C])
	}
	t.homes[rule] = h
}

// AtHome reports whether a rule that counts all its names together, by that match and at that home,
// counts the call, which has something to count. [engine.Invocation.CountAt] remembers it.
func AtHome(inv *engine.Invocation, home *engine.Resource, match spec.Match) bool {
	return (match != spec.MatchExact || inv.Inbound()) && inv.CountAt(home)
}

// NotAtHome explains, for such a rule, why it doesn't count the call, or returns "" if the reason is
// another.
func NotAtHome(inv *engine.Invocation, home *engine.Resource, match spec.Match) string {
	switch {
	case match == spec.MatchExact && !inv.Inbound():
		return "applies only to inbound calls"
	case inv.NestedAt(home):
		return "the call is nested in one that the rule has counted"
	}
	return ""
}

// Homes implements [engine.Homed].
func (t Compiled[R, C]) Homes() iter.Seq[*engine.Resource] {
	return func(yield func(*engine.Resource) bool) {
		for _, h := range t.homes {
			if !yield(h.resource) {
				return
			}
		}
	}
}
