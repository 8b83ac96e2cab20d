package family

import (
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/node"
)

// Choices returns, for each rule that matches a name, whether it applies there and why. resource is
// the name of the resource that stands for it, which differs if this name is beyond the cap.
// Choices matches expressions again.
func (t *Index[R, C]) Choices(name, resource string) (choices []core.Choice) {
	which := t.which(name, t.match(name, pattern.Matched{}))
	if resource == node.OverflowName && name != resource {
		which = slices.DeleteFunc(which, t.atHomeOnly)
		which = append(which, t.selection.about(resource)...)
		slices.Sort(which)
	}
	for i, rule := range t.All() {
		info := rule.Info()
		_, applies := slices.BinarySearch(which, i)
		if !applies && !about(info, name) {
			continue
		}
		c := core.Choice{ID: info.ID, Resource: info.Resource, Match: info.Match, Mode: info.Mode, Applies: applies}
		switch {
		case applies:
			c.Reason = why(info)
		case info.Mode == spec.Off:
			c.Reason = "it is off"
		case slices.Contains(info.Exclude, name):
			c.Reason = "it excludes the name"
		case info.Named():
			c.Reason = "it is in shadow mode, and the name is beyond the cap on resources"
		default:
			c.Reason = t.nearer(which, info)
		}
		choices = append(choices, c)
	}
	return choices
}

// why returns the reason why a rule applies.
func why(info spec.Info) string {
	switch {
	case info.Together && info.Default():
		return "it counts the inbound calls of all resources together"
	case info.Together && info.Match == spec.MatchRegex:
		return "its expression matches the name, and it counts all its names together"
	case info.Together:
		return fmt.Sprintf("its %s matches the name, and it counts all its names together", info.Match)
	case info.Default():
		return "no other rule applies to the name"
	case info.Named():
		return "it names the resource"
	case info.Match == spec.MatchRegex:
		return "its expression matches the name"
	}
	return fmt.Sprintf("its %s matches the name", info.Match)
}

// nearer returns the reason why a matching rule is left out: a more specific rule or, if the rule
// is for all resources, any expression.
func (t *Index[R, C]) nearer(which []int, info spec.Info) string {
	for _, i := range which {
		other := t.rules[i].Info()
		if excludes(other) && (other.Match != spec.MatchRegex || info.Default()) {
			return fmt.Sprintf("rule %q is more specific", other.ID)
		}
	}
	return "another rule is more specific"
}

// about reports whether a rule matches a name, even if it is off or others are more specific.
func about(info spec.Info, name string) bool {
	switch {
	case info.Default():
		return true
	case info.Named():
		return info.Resource == name
	case info.Match == spec.MatchRegex && info.Mode != spec.Off:
		return false // it would apply
	case info.Match == spec.MatchRegex:
		x, err := pattern.Compile(info.Resource, 1, false)
		return err == nil && pattern.Matched{}.Has(x, name) // not matched yet
	}
	var w pattern.Wildcards
	w.Add(info.Resource, info.Match == spec.MatchPath)
	return len(w.Match(name)) > 0
}
