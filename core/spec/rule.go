package spec

// Info is what a Table of package family needs to know of a rule.
type Info struct {
	ID       string
	Resource string
	Match    Match // how Resource is to be read
	Mode     Mode
	// Default makes it a rule for every resource that no other rule is about which is
	// enforced, whatever Resource says, and which Except doesn't list.
	Default bool
	Except  []string
}

// Rule is a rule that a Table of package family can hold, normalized.
type Rule[R any] interface {
	Info() Info
	WithID(id string) R
	// Like is the same for rules that differ only in what an edit would change, such
	// as the threshold. A rule whose ID is new goes on from one that is like it and
	// whose ID is gone.
	Like() string
	// Equal reports whether the two rules are the same in every field.
	Equal(R) bool
}
