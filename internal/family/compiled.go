package family

import (
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/node"
)

// Compiled is an [Index] with the methods that most families share. A family that embeds it in its
// own table adds Bind, and overrides the methods that differ: Needs if its rules count on nodes,
// Looks if they count on nodes of other resources, and Names if they name more than resources.
type Compiled[R spec.Rule, C any] struct {
	*Index[R, C]
	Engine   *engine.Engine
	Member   *sharing.Member // for rules with limits shared by a cluster, or nil
	Revision uint64          // of the rules
	kind     core.Kind
}

// Compiling is a family's own table, which embeds a [Compiled] that Compile fills in.
type Compiling[R spec.Rule, C any] interface {
	engine.Family
	Itself() *Compiled[R, C]
}

// Compile adds rules, as declared, to the next revision that b builds, as the family's own table,
// into. It returns the first reason to reject them.
func Compile[R spec.Rule, C any](b *engine.SnapshotBuilder, kind core.Kind, rules []R, maker Maker[R, C], into Compiling[R, C]) error {
	normalized, err := spec.Normalize(kind, rules, maker.Normalized)
	if err != nil {
		return err
	}
	member := memberOf(b)
	if err := checkShared(member, kind, normalized); err != nil {
		return err
	}
	var previous *Index[R, C]
	joined := b.Revision()
	if f, ok := b.Previous(kind).(Compiling[R, C]); ok {
		if previous = f.Itself().Index; f.Itself().Member == member {
			joined = previous.joined
		}
	}
	table, err := NewTable(b.Revision(), normalized, maker, previous)
	if err != nil {
		return fmt.Errorf("%v: %w", kind, err)
	}
	table.joined, table.previous = joined, previous
	*into.Itself() = Compiled[R, C]{table, b.Engine, member, b.Revision(), kind}
	b.Put(kind, into)
	return nil
}

// Itself is for [Compile], which fills in the result.
func (t *Compiled[R, C]) Itself() *Compiled[R, C] { return t }

// Names adds the resources named in the rules. A rule in shadow mode adds nothing: it must not
// change which nodes exist for others.
func (t Compiled[R, C]) Names(names *engine.Names) {
	for _, rule := range t.All() {
		if info := rule.Info(); info.Mode == spec.Enforce && info.Named() {
			names.Resource(info.Resource)
		}
	}
}

// Match implements [engine.Family].
func (t Compiled[R, C]) Match(name string, held any, revision uint64) pattern.Matched {
	return t.match(name, knownBefore[R, C](held, revision))
}

// match returns the expressions that match a name. The overflow resource, by its own name, stands
// for every name.
func (t *Index[R, C]) match(name string, before pattern.Matched) pattern.Matched {
	return t.expressions.Match(name, name == node.OverflowName, before)
}

// Known implements [engine.Family].
func (t Compiled[R, C]) Known(held any, revision uint64) pattern.Matched {
	return t.expressions.Known(knownBefore[R, C](held, revision))
}

// Latest implements [engine.Family].
func (t Compiled[R, C]) Latest() uint64 { return t.expressions.Latest() }

// Pending reports whether a name that has been matched up to a revision might still match
// expressions of enforced rules.
func (t *Index[R, C]) Pending(known uint64) bool {
	return slices.ContainsFunc(t.expressions.List, func(e *pattern.Expression) bool { return e.Born > known && !e.Shadow })
}

// knownBefore returns the matches under older rules.
func knownBefore[R spec.Rule, C any](held any, revision uint64) pattern.Matched {
	known := pattern.Matched{Revision: revision}
	if h, ok := held.(*Kept[R, C]); ok {
		known.List = h.matched
	}
	return known
}

// Needs passes nothing: no rule counts on a node.
func (t Compiled[R, C]) Needs(any, uint64, func(engine.Need)) {}

// Looks passes nothing: no rule counts on a node of another resource.
func (t Compiled[R, C]) Looks(func(resource string, n engine.Need)) {}

// HeldBy returns the family's state at a resource, or nil if there is none: these rules' state or,
// while they come into force, the previous rules'.
func (t Compiled[R, C]) HeldBy(r *engine.Resource) *Kept[R, C] {
	h, _ := r.Held(t.kind).(*Kept[R, C])
	return h
}

// Each calls f with every controller of the rules made so far, without a lock.
func (t Compiled[R, C]) Each(f func(*C)) {
	t.each(func(_ *engine.Resource, c *C) { f(c) })
}

func (t Compiled[R, C]) each(f func(*engine.Resource, *C)) {
	for _, h := range t.homes {
		f(h.resource, h.controller)
	}
	t.Engine.EachResource(func(r *engine.Resource) {
		for c := range t.HeldBy(r).All() {
			if _, known := t.numbers[(*t.maker.Rule(c)).Info().ID]; known {
				f(r, c)
			}
		}
	})
}

// EachError calls f with the rejection of every rule and resource.
func (t Compiled[R, C]) EachError(f func(*core.BlockError)) {
	t.Each(func(c *C) {
		f(t.maker.Refusal(c))
	})
}

// Record returns the record of a rule, by its number.
func (t *Index[R, C]) Record(number int) *engine.Record { return t.records[number] }

// number returns the rule number for a controller yielded by Each.
func (t *Index[R, C]) number(c *C) int { return t.numbers[(*t.maker.Rule(c)).Info().ID] }
