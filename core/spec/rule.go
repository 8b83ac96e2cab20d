package spec

import "reflect"

// Info is what a Table of package family needs to know of a rule.
type Info struct {
	ID       string
	Resource string
	Match    Match    // how Resource is to be read
	Exclude  []string // names that the rule is not about, though Resource matches them
	Mode     Mode
}

// Default reports whether it is a rule for resources that have none of their own.
func (i Info) Default() bool { return i.Match == MatchExact && i.Resource == AnyResource }

// Named reports whether Resource is the name of the one resource that the rule is about.
func (i Info) Named() bool { return i.Match == MatchExact && i.Resource != AnyResource }

// Wild reports whether Resource has a star for an open part: such a rule is about a name only if no
// more specific rule is.
func (i Info) Wild() bool { return i.Match == MatchPrefix || i.Match == MatchPath }

// Rule is a rule that a Table of package family can hold, normalized: a struct whose field ID
// is the ID.
type Rule interface {
	// Info fills in the same fields in each family: Go reads no field of a type parameter, and a literal
	// such as flow.Rule{Resource: "orders"} can't set a field of an embedded struct.
	Info() Info
	// Like is the same for rules that differ only in what an edit would change, such
	// as the threshold. It is the ID of a rule that declares none. A rule whose ID is new continues
	// one that is like it and whose ID is gone.
	Like() string
}

// WithID returns the rule with another ID. A rule without the field ID is returned unchanged.
func WithID[R Rule](rule R, id string) R {
	if f := reflect.ValueOf(&rule).Elem().FieldByName("ID"); f.IsValid() {
		f.SetString(id)
	}
	return rule
}

// Equal reports whether two rules are the same in every field.
func Equal[R Rule](a, b R) bool { return reflect.DeepEqual(a, b) }
