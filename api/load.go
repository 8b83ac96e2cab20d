package api

import (
	"slices"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/rules"
)

// LoadRules replaces the rules that were loaded by hand before; if one of the new rules is invalid,
// nothing changes. Rules of watched files stay, and all are in force together; an id that occurs in
// both is an error, unless [Guard.AllowOverrides] was called. Unchanged rules continue as they are;
// a changed rule takes over the state of the rule with the same ID. The set is copied: the caller
// may keep changing it.
//
// A forgotten field is 0, and a rule whose threshold is 0 refuses every call. The Logger gets a
// warning for each such rule (see [rules.Set.Warnings]), once as long as it is loaded.
func (g *Guard) LoadRules(set RuleSet) error {
	if err := g.loader.Load(set); err != nil {
		return err
	}
	g.warn(set.Warnings()) // without locks: a log handler may load rules
	return nil
}

// EditRules is like [Guard.LoadRules], but loads the result of edit, which gets the rules that were
// last loaded by hand: no other load happens in between. An error of edit is returned as it is, and
// nothing changes. Rules of watched files and stores are not passed to edit, and stay as they are.
// edit may call [Guard.Rules] and [Guard.Status], but must not load or watch rules.
func (g *Guard) EditRules(edit func(loaded RuleSet) (RuleSet, error)) error {
	var set RuleSet
	err := g.loader.Edit(func(loaded RuleSet) (made RuleSet, err error) {
		set, err = edit(loaded)
		return set, err
	})
	if err != nil {
		return err
	}
	g.warn(set.Warnings())
	return nil
}

// warn logs the warnings that the last load didn't have.
func (g *Guard) warn(warnings []string) {
	warned := make(map[string]bool, len(warnings))
	for _, text := range warnings {
		warned[text] = true
	}
	g.warning.Lock()
	old := g.warned
	g.warned = warned
	g.warning.Unlock()
	warnings = slices.DeleteFunc(slices.Clone(warnings), func(text string) bool { return old[text] })
	for _, text := range warnings[:min(len(warnings), maxWarnings)] {
		g.engine.Logger().Warn("penstock: a rule has threshold 0 and refuses every call; set one if it was forgotten", "rule", text)
	}
	if more := len(warnings) - maxWarnings; more > 0 {
		g.engine.Logger().Warn("penstock: more rules have threshold 0", "rules", more)
	}
}

// maxWarnings is the number of rules that a load warns of one by one.
const maxWarnings = 10

// load puts the combined set of all sources into force.
func (g *Guard) load(set RuleSet) error {
	old, _ := g.share()
	var next *membership
	published := false
	defer func() { // after an error, a panic, or the end of the goroutine
		if !published && next != old {
			next.leave()
		}
	}()
	err := g.engine.Update(func(b *engine.SnapshotBuilder) (err error) {
		if next, err = g.join(set); err != nil {
			return err
		}
		b.Sharing = next.of()
		compiled, err := set.Compile(b)
		if err != nil {
			return err
		}
		b.BeforePublishing(func(int64) {
			published = true
			g.sharing.Lock()
			g.membership = next
			g.sharing.Unlock()
			g.set.Store(&compiled)
		})
		return nil
	})
	if published && next != old {
		g.retire(old)
	}
	if _, left := g.share(); left {
		next.leave() // the Guard was closed in the meantime
	}
	return err
}

// LoadRulesFile loads the rules of a file once, like [Guard.LoadRules]; they replace the rules that
// it loaded. The file may be one of Sentinel's; the Logger gets the warnings of [rules.ParseWith],
// and the worst findings of package lint. While the file is watched, and another version of it is
// in force, the error is a [*SourceError].
func (g *Guard) LoadRulesFile(path string) error {
	parsed, err := g.loader.LoadFile(path) // a 0 in a file is meant
	if err == nil {
		parsed.Warn(g.engine.Logger())
		g.lint(parsed)
	}
	return err
}

// Rules returns the rules in force, with their defaults filled in. The set is a deep copy: changing
// it changes nothing in the Guard.
func (g *Guard) Rules() RuleSet { return g.set.Load().Clone() }

// ParseRules parses the text of a rule file, for [LoadRules]: YAML, or JSON if name ends in .json.
// Errors refer to it by that name. See [rules.Parse].
func ParseRules(name string, text []byte) (RuleSet, error) { return rules.Parse(name, text) }
