package core

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/penstock-go/penstock/internal/shared"
)

// RuleInfo is what a [Table] needs to know of a rule.
type RuleInfo struct {
	ID       string
	Resource string // a name, or with Regex a regular expression for whole names
	Regex    bool
	Mode     Mode
	// Default makes it a rule for every resource that no other rule is about which is
	// enforced, whatever Resource says, and which Except doesn't list.
	Default bool
	Except  []string
}

// TableRule is a rule that a [Table] can hold, normalized.
type TableRule[R any] interface {
	Info() RuleInfo
	WithID(id string) R
	// Like is the same for rules that differ only in what an edit would change, such
	// as the threshold. A rule whose ID is new goes on from one that is like it and
	// whose ID is gone.
	Like() string
	// Equal reports whether the two rules are the same in every field.
	Equal(R) bool
}

// Table compiles the rules of a family: it finds the rules of a resource, in the
// order in which they were declared, and keeps one controller C for each rule and
// resource. Where a rule did not change, the next table has the same controller;
// where it did, the new controller is built from the old one. A Table is safe for
// concurrent use; its rules don't change.
type Table[R TableRule[R], C any] struct {
	rules    []R
	patterns []*regexp.Regexp // nil for a plain name
	exact    map[string][]int // rules by name
	regex    []int            // rules with a pattern
	defaults []int            // rules for what the others are not about
	off      []int            // rules of any kind
	build    func(rule R, resource *Resource, old *C) *C

	mu        shared.Mutex
	made      map[place]made[C]
	forgotten int // since made was copied last
}

// made is a controller and the resource that it was built for. A resource of the
// same name that comes after it gets a controller built from this one.
type made[C any] struct {
	controller *C
	resource   *Resource
}

// place is where a controller stands. Rules are known by ID, which ties a rule to
// its successor.
type place struct{ id, resource string }

// NewTable compiles rules. IDs made from fields get a suffix where two are alike;
// two rules with the same ID of their own, or alike in every field, are an error.
// build makes the controller of a rule for a resource; old is that of the rule of
// the same ID before, or nil.
func NewTable[R TableRule[R], C any](rules []R, build func(rule R, resource *Resource, old *C) *C) (*Table[R, C], error) {
	t := &Table[R, C]{
		rules:    slices.Clone(rules),
		patterns: make([]*regexp.Regexp, len(rules)),
		exact:    make(map[string][]int, len(rules)),
		build:    build,
		made:     make(map[place]made[C], len(rules)),
	}
	size := 0
	for i, rule := range t.rules {
		info := rule.Info()
		if info.Mode == Off {
			t.off = append(t.off, i)
			continue
		}
		if info.Default {
			t.defaults = append(t.defaults, i)
			continue
		}
		if !info.Regex {
			t.exact[info.Resource] = append(t.exact[info.Resource], i)
			continue
		}
		more, err := PatternSize(info.Resource)
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w", info.ID, err)
		}
		if size += more; size > MaxPatternsSize {
			return nil, fmt.Errorf("rule %q brings the regular expressions to %d steps, the most is %d", info.ID, size, MaxPatternsSize)
		}
		pattern, err := compilePattern(info.Resource)
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w", info.ID, err)
		}
		t.patterns[i] = pattern
		t.regex = append(t.regex, i)
	}
	return t, nil
}

// Rules are the rules in the order in which they were declared. The slice must
// not be changed.
func (t *Table[R, C]) Rules() []R { return t.rules }

// Inherit takes over the controllers of an older table for every rule and resource
// that is still there, also of rules that are off, so that one that is switched on
// again goes on where it was. It must run before the table is used.
func (t *Table[R, C]) Inherit(old *Table[R, C], find func(name string) (*Resource, bool)) {
	if old == nil {
		return
	}
	successors := t.successors(old)
	old.mu.Lock()
	inherited := maps.Clone(old.made)
	old.mu.Unlock()
	for p, m := range inherited { // without the lock: building takes others
		s, ok := successors[p.id]
		if !ok || !t.applies(s.rule, p.resource) {
			continue
		}
		rule := t.rules[s.rule]
		switch resource, ok := find(p.resource); {
		case !ok:
			// It has left. To make it anew would bring it back beyond the cap.
		case s.unchanged && m.resource == resource:
			t.made[p] = m
		default:
			t.made[place{rule.Info().ID, p.resource}] = made[C]{t.build(rule, resource, m.controller), resource}
		}
	}
}

// Bind returns the controllers of a resource, in the order of their rules.
func (t *Table[R, C]) Bind(resource *Resource) []*C {
	return t.controllers(resource, t.which(resource.Name()))
}

// BindAs returns the controllers of a resource that stands for a name beyond the
// cap: those of the rules for that name, and of the rules for the overflow.
func (t *Table[R, C]) BindAs(resource *Resource, name string) []*C {
	which := append(t.which(name), t.exact[resource.Name()]...)
	slices.Sort(which)
	return t.controllers(resource, slices.Compact(which))
}

func (t *Table[R, C]) controllers(resource *Resource, which []int) []*C {
	controllers := make([]*C, len(which))
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, i := range which {
		p := place{t.rules[i].Info().ID, resource.Name()}
		m := t.made[p]
		if m.controller == nil {
			m = made[C]{t.build(t.rules[i], resource, nil), resource}
			t.made[p] = m
		}
		controllers[k] = m.controller
	}
	return controllers
}

// Find returns the controller of a rule for a resource, nil if none was made yet.
func (t *Table[R, C]) Find(id, resource string) *C {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.made[place{id, resource}].controller
}

// Forget drops the controllers of a resource that has left, unless it is back.
func (t *Table[R, C]) Forget(resource string) { t.ForgetAnd(resource, func() {}) }

// ForgetAnd is Forget, and calls also if no controller of the resource is left. Until
// that returns none is made: what belongs to them all goes with the last of them.
func (t *Table[R, C]) ForgetAnd(resource string, also func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := len(t.exact[resource]) // who is named by a rule doesn't leave
	for _, i := range slices.Concat(t.regex, t.defaults, t.off) {
		p := place{t.rules[i].Info().ID, resource}
		switch m := t.made[p]; {
		case m.controller == nil:
		case m.resource.Retired():
			delete(t.made, p)
			t.forgotten++
		default:
			left++
		}
	}
	if left == 0 {
		also()
	}
	// A map of which much was deleted is larger than a new one.
	if t.forgotten > 1000+4*len(t.made) {
		fresh := make(map[place]made[C], len(t.made))
		maps.Copy(fresh, t.made)
		t.made, t.forgotten = fresh, 0
	}
}

// Adopt takes the controller that a resource, which had left, brings along for a
// rule: of this table or an older one.
func (t *Table[R, C]) Adopt(resource *Resource, rule R, controller *C) {
	i := slices.IndexFunc(t.rules, func(r R) bool { return r.Info().ID == rule.Info().ID })
	if i < 0 || !t.applies(i, resource.Name()) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := place{rule.Info().ID, resource.Name()}
	if t.made[p].controller != nil {
		return
	}
	if !t.rules[i].Equal(rule) {
		controller = t.build(t.rules[i], resource, controller)
	}
	t.made[p] = made[C]{controller, resource}
}

// Made returns the controllers of a resource that were made so far, in the order of
// their rules.
func (t *Table[R, C]) Made(resource string) []*C { return t.madeFor(resource, t.which(resource)) }

// Resting returns the controllers that rules which are off keep for a resource.
func (t *Table[R, C]) Resting(resource string) []*C { return t.madeFor(resource, t.off) }

func (t *Table[R, C]) madeFor(resource string, rules []int) []*C {
	var controllers []*C
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range rules {
		if m := t.made[place{t.rules[i].Info().ID, resource}]; m.controller != nil {
			controllers = append(controllers, m.controller)
		}
	}
	return controllers
}

// Each calls f with every controller made so far, under no lock.
func (t *Table[R, C]) Each(f func(*C)) {
	t.mu.Lock()
	all := slices.Collect(maps.Values(t.made))
	t.mu.Unlock()
	for _, m := range all {
		f(m.controller)
	}
}
