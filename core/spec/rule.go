package spec

import "reflect"

// Info holds the fields of a rule that a Table of package family uses.
type Info struct {
	ID       string
	Resource string
	Match    Match    // how to read Resource
	Exclude  []string // names excluded from the matches of Resource
	Together bool     // the rule has one limit for all names that it matches, besides other rules
	Mode     Mode
	Refusal  Response
}

// Default reports whether the rule is for resources that have no rule of their own.
func (i Info) Default() bool { return i.Match == MatchExact && i.Resource == AnyResource }

// Named reports whether Resource is the name of a single resource.
func (i Info) Named() bool { return i.Match == MatchExact && i.Resource != AnyResource }

// Wild reports whether Resource has a star as a wildcard. Such a rule applies to a name only if no
// more specific rule does.
func (i Info) Wild() bool { return i.Match == MatchPrefix || i.Match == MatchPath }

// Rule is a normalized rule that a Table of package family can hold: a struct whose field ID is the
// ID.
type Rule interface {
	// Info returns the same fields in each family. It is a method because Go can't read a field of
	// a type parameter, and a literal such as flow.Rule{Resource: "orders"} can't set a field of an
	// embedded struct.
	Info() Info
	// Like returns the same text for rules that differ only in fields an edit would change, such as
	// the threshold. It is the ID of a rule that declares none. A rule with a new ID continues a
	// rule with the same text whose ID no longer exists.
	Like() string
}

// WithID returns the rule with the given ID. A rule without the field ID is returned unchanged.
func WithID[R Rule](rule R, id string) R {
	if f := reflect.ValueOf(&rule).Elem().FieldByName("ID"); f.IsValid() {
		f.SetString(id)
	}
	return rule
}

// Equal reports whether two rules are the same in every field.
func Equal[R Rule](a, b R) bool { return reflect.DeepEqual(a, b) }
