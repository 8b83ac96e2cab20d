package core

import (
	"fmt"

	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// FamilyTable is a [Table] that answers what most families answer alike. Embedded in a
// family's own table it leaves Bind and Adopt to that, and what the family wants
// otherwise: Keeps and KeepsGauge, if its rules count on nodes, and Names, if they name
// more than resources.
type FamilyTable[R TableRule[R], C any] struct {
	*Table[R, C]
	kind Kind
	of   func(*C) (rule R, refusal *BlockError, rehearsed *stat.Tally)
}

// NewFamilyTable is [NewTable] for a family. of tells what every controller has: its
// rule, what it refuses with, and how many calls it would have refused in shadow mode.
func NewFamilyTable[R TableRule[R], C any](
	kind Kind, rules []R, build func(rule R, resource *Resource, old *C) *C,
	of func(*C) (rule R, refusal *BlockError, rehearsed *stat.Tally),
) (FamilyTable[R, C], error) {
	table, err := NewTable(rules, build)
	if err != nil {
		return FamilyTable[R, C]{}, fmt.Errorf("%v: %w", kind, err)
	}
	return FamilyTable[R, C]{table, kind, of}, nil
}

// Normalize returns the rules of a family with their defaults written out and IDs that
// differ, or says which rule can't be honoured: as "flow[2].threshold: ...".
func Normalize[R TableRule[R]](kind Kind, rules []R, normalized func(R) (R, error)) ([]R, error) {
	if len(rules) == 0 {
		return nil, nil // no rules have one form
	}
	full := make([]R, len(rules))
	for i, rule := range rules {
		var err error
		if full[i], err = normalized(rule); err != nil {
			return nil, fmt.Errorf("%v[%d].%w", kind, i, err)
		}
	}
	unique, err := UniqueIDs(rules, full)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", kind, err)
	}
	return unique, nil
}

// AdoptAll is [Table.Adopt] for every controller that a resource brings along.
func (t FamilyTable[R, C]) AdoptAll(resource *Resource, controllers []*C) {
	for _, c := range controllers {
		rule, _, _ := t.of(c)
		t.Adopt(resource, rule, c)
	}
}

// Names says which resources the rules name.
func (t FamilyTable[R, C]) Names(names *Names) {
	for _, rule := range t.Rules() {
		if info := rule.Info(); info.Mode != Off && !info.Regex && !info.Default {
			names.Resource(info.Resource)
		}
	}
}

// Keeps reports that no rule counts in a window of a node.
func (t FamilyTable[R, C]) Keeps(string, Role, node.Meter) bool { return false }

// KeepsGauge reports that no rule counts with a gauge of a node.
func (t FamilyTable[R, C]) KeepsGauge(string, Role, any) bool { return false }

// EachError calls f with the refusal of every rule and resource.
func (t FamilyTable[R, C]) EachError(f func(*BlockError)) {
	t.Each(func(c *C) {
		_, refusal, _ := t.of(c)
		f(refusal)
	})
}

// Figures says what each rule has done, over all resources.
func (t FamilyTable[R, C]) Figures() []RuleFigures {
	index := make(map[string]int)
	var figures []RuleFigures
	for i, rule := range t.Rules() {
		info := rule.Info()
		index[info.ID] = i
		figures = append(figures, RuleFigures{Kind: t.kind, ID: info.ID, Resource: info.Resource, Mode: info.Mode})
	}
	t.Each(func(c *C) {
		rule, refusal, rehearsed := t.of(c)
		f := &figures[index[rule.Info().ID]]
		f.Refused += refusal.Refusals()
		f.Rehearsed += rehearsed.Load()
	})
	return figures
}
