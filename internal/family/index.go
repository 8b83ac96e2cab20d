package family

import (
	"fmt"
	"iter"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
)

// Index has the rules of a family in one revision: which of them apply to a resource, in the order
// of declaration, and which rule continues which of the previous revision. Their state is kept at
// the resources; see [Kept]. An Index is immutable once its homes are bound, before it is in force.
type Index[R spec.Rule, C any] struct {
	maker    Maker[R, C]
	revision uint64

	rules       []R
	records     []*engine.Record // of the rules
	numbers     map[string]int   // of the rules, by ID
	selection   selection        // of the rules that are not off, by name
	expressions pattern.Expressions
	patterns    []*pattern.Expression // of the rules, or nil for rules that have none or are off

	homes    map[int]*home[C] // of the rules that count all their names together, by number; see homes.go
	previous *Index[R, C]     // whose homes are still to be taken over, otherwise nil

	before     uint64               // previous revision, of the keys of successors
	successors map[string]successor // by the ID of the older rule
	joined     uint64               // first revision in which the same member shared the limits of rules
}

// Maker builds a family's controllers from its rules.
type Maker[R spec.Rule, C any] struct {
	// Normalized returns the rule with its defaults filled in, or an error. [NewTable], whose rules
	// are already normalized, calls neither Normalized nor Refusal.
	Normalized func(R) (R, error)
	// Build makes the controller of a rule for a resource; old is the controller of the previous
	// rule there, which may have been off, or nil. Rejections by the controller count in the rule's
	// record. Build must not call custom code, such as the clock.
	Build func(rule R, record *engine.Record, at *engine.Binding, old *C) *C
	// Rule returns the rule of a controller. It must not be changed.
	Rule func(*C) *R
	// Idle reports whether the controller of an enforced rule can be forgotten without harm; nil
	// means that all can. Controllers of other rules always can.
	Idle func(c *C, now int64) bool
	// Refusal returns the rejection of a controller.
	Refusal func(*C) *core.BlockError
	// AtHome, unless it is nil, is called for each home with its next controller, or with nil if the
	// home's rule is gone, before the hand-over.
	AtHome func(at *engine.Binding, c *C)
}

// NewTable compiles copies of the rules, whose IDs must differ, for a revision. previous is the
// table of the previous revision, or nil.
func NewTable[R spec.Rule, C any](revision uint64, rules []R, maker Maker[R, C], previous *Index[R, C]) (*Index[R, C], error) {
	if idle := maker.Idle; idle != nil {
		maker.Idle = func(c *C, now int64) bool { return (*maker.Rule(c)).Info().Mode != spec.Enforce || idle(c, now) }
	}
	t := &Index[R, C]{
		maker: maker, revision: revision,
		rules:   spec.Clone(rules),
		numbers: make(map[string]int, len(rules)),
	}
	for i, rule := range t.rules {
		info := rule.Info()
		t.numbers[info.ID] = i
		if info.Mode != spec.Off && info.Match != spec.MatchRegex {
			t.selection.add(i, info)
		}
	}
	if err := t.compile(previous); err != nil {
		return nil, err
	}
	t.records = make([]*engine.Record, len(rules))
	if previous != nil {
		t.before, t.successors = previous.revision, t.follow(previous)
		for id, next := range t.successors {
			t.records[next.rule] = previous.records[previous.numbers[id]]
		}
	}
	for i, record := range t.records {
		if record == nil {
			t.records[i] = new(engine.Record)
		}
	}
	return t, nil
}

// compile compiles the expressions, or reuses those of the previous table.
func (t *Index[R, C]) compile(previous *Index[R, C]) error {
	type use struct { // a rule in shadow mode must not cause a name to be matched for others
		text   string
		shadow bool
	}
	of := func(e *pattern.Expression) use { return use{e.Text, e.Shadow} }
	users := make(map[use][]int)
	size := 0
	for i, rule := range t.rules {
		info := rule.Info()
		if info.Match != spec.MatchRegex || info.Mode == spec.Off {
			continue
		}
		more, err := pattern.Size(info.Resource)
		if err != nil {
			return fmt.Errorf("rule %q: %w", info.ID, err)
		}
		if size += more; size > pattern.MaxTotal {
			return fmt.Errorf("rule %q brings the regular expressions to %d steps, the maximum is %d", info.ID, size, pattern.MaxTotal)
		}
		u := use{info.Resource, info.Mode == spec.Shadow}
		users[u] = append(users[u], i)
	}
	x := pattern.Expressions{Revision: t.revision, Rules: make(map[*pattern.Expression][]int, len(users))}
	t.patterns = make([]*pattern.Expression, len(t.rules))
	have := func(e *pattern.Expression) {
		x.List = append(x.List, e)
		x.Rules[e] = users[of(e)]
		delete(users, of(e))
		for _, i := range x.Rules[e] {
			t.patterns[i] = e
		}
	}
	if previous != nil {
		for _, e := range previous.expressions.List {
			if users[of(e)] != nil {
				have(e)
			}
		}
	}
	for _, rule := range t.rules {
		if u := (use{rule.Info().Resource, rule.Info().Mode == spec.Shadow}); users[u] != nil {
			e, err := pattern.Compile(u.text, t.revision, u.shadow)
			if err != nil {
				return fmt.Errorf("rule %q: %w", rule.Info().ID, err)
			}
			have(e)
		}
	}
	t.expressions = x
	return nil
}

// Rules returns copies of the rules in the order of declaration.
func (t *Index[R, C]) Rules() []R { return spec.Clone(t.rules) }

// All yields the rules by their index in that order, for use by the families: their contents are
// not copied and must not be changed.
func (t *Index[R, C]) All() iter.Seq2[int, R] { return slices.All(t.rules) }
