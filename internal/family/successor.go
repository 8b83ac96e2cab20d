package family

import (
	"fmt"
	"strings"

	"github.com/penstock-go/penstock/core/spec"
)

// successor is the rule of the next table that continues an old one.
type successor struct {
	rule      int
	unchanged bool // in every field, the ID included
}

// stale reports whether another member, which is about to leave its cluster, shares the limit of a
// controller from another revision: then its successor is built even if the rule is the same.
func (t *Index[R, C]) stale(revision uint64, rule int) bool {
	r, ok := any(t.rules[rule]).(shareable)
	return ok && r.Shared() && t.rules[rule].Info().Mode != spec.Off && revision < t.joined
}

// successor returns the number of the rule that continues the rule of a controller from another
// revision, and whether the controller can stay because nothing has changed. For revisions further
// back, only IDs count.
func (t *Index[R, C]) successor(revision uint64, c *C) (rule int, unchanged, ok bool) {
	old := t.maker.Rule(c)
	id := (*old).Info().ID
	if revision == t.before {
		s, ok := t.successors[id]
		return s.rule, s.unchanged && !t.stale(revision, s.rule), ok
	}
	i, ok := t.numbers[id]
	return i, ok && spec.Equal(t.rules[i], *old) && !t.stale(revision, i), ok
}

// follow finds, for each rule of an older table, the rule that continues it, by the older one's ID.
// IDs decide, but a number added to a generated ID only tells which rule came first. So a rule
// continues, in this order of preference,
//
//   - the rule that is the same;
//   - a rule that is the same except for its ID, if the IDs differ only in the number, or the old
//     one is gone and the new one was not there;
//   - the rule with its ID;
//   - a rule that is like it (see [spec.Rule]), if both IDs are as before.
func (t *Index[R, C]) follow(old *Index[R, C]) map[string]successor {
	m := matching[R]{
		found: make(map[string]successor, len(t.rules)),
		old:   make(map[string]R, len(old.rules)),
		ids:   make(map[string]bool, len(t.rules)),
	}
	for _, rule := range old.rules {
		m.old[rule.Info().ID] = rule
	}
	var left []int // rules that are not the same as before
	for i, rule := range t.rules {
		id := rule.Info().ID
		m.ids[id] = true
		if before, ok := m.old[id]; ok && spec.Equal(rule, before) {
			m.found[id] = successor{i, true}
		} else {
			left = append(left, i)
		}
	}
	if len(left) == 0 {
		return m.found
	}
	if m.mayRename(left, t.rules, old.rules) {
		left = m.match(left, t.rules, old.rules, func(rule R) string { return fmt.Sprintf("%+v", spec.WithID(rule, "")) }, m.renumbered)
	}
	left = m.match(left, t.rules, old.rules, func(rule R) string { return rule.Info().ID }, nil)
	m.match(left, t.rules, old.rules, func(rule R) string { return rule.Like() }, m.renamed)
	return m.found
}

type matching[R spec.Rule] struct {
	found map[string]successor
	old   map[string]R    // by ID
	ids   map[string]bool // IDs of the new rules
}

// match pairs rules with equal keys, in the order of declaration, if their IDs may differ that way.
// It returns the rules without a partner.
func (m *matching[R]) match(left []int, rules, old []R, key func(R) string, may func(before, after string) bool) (still []int) {
	candidates := make(map[string][]string) // IDs of old rules, by key
	for _, rule := range old {
		if _, taken := m.found[rule.Info().ID]; !taken {
			k := key(rule)
			candidates[k] = append(candidates[k], rule.Info().ID)
		}
	}
	if len(candidates) == 0 {
		return left
	}
	for _, i := range left {
		k, id := key(rules[i]), rules[i].Info().ID
		ids := candidates[k]
		if len(ids) == 0 || may != nil && !may(ids[0], id) {
			still = append(still, i)
			continue
		}
		m.found[ids[0]] = successor{rule: i}
		candidates[k] = ids[1:]
	}
	return still
}

// mayRename reports whether any rule may have another ID than before: some ID is new or gone, or IDs
// differ only in their numbers. Otherwise a rule can only go on as the one with its ID, and there is
// no need to write all of them as text.
func (m *matching[R]) mayRename(left []int, rules, old []R) bool {
	for _, i := range left {
		if _, known := m.old[rules[i].Info().ID]; !known {
			return true
		}
	}
	seen := make(map[string]bool, len(old))
	for _, rule := range old {
		id := rule.Info().ID
		if seen[unnumbered(id)] || !m.ids[id] {
			return true
		}
		seen[unnumbered(id)] = true
	}
	return false
}

func (m *matching[R]) renamed(before, after string) bool {
	_, known := m.old[after]
	return !known && !m.ids[before]
}

func (m *matching[R]) renumbered(before, after string) bool {
	return unnumbered(before) == unnumbered(after) || m.renamed(before, after)
}

// unnumbered returns an ID without the number that [spec.UniqueIDs] added.
func unnumbered(id string) string {
	if i := strings.LastIndexByte(id, '#'); i > 0 && strings.Trim(id[i+1:], "0123456789") == "" {
		return id[:i]
	}
	return id
}
