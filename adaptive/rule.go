package adaptive

import (
	"cmp"
	"time"

	"github.com/penstock-go/penstock/core/spec"
)

// Rule limits the calls in flight of one resource to as many as it can serve at a time, and finds
// out how many that is:
//
//	adaptive.Rule{Resource: "search"}
//
// Two equal rules are the same rule; a rule that differs from an older one with the same ID
// continues from what that has learned.
type Rule struct {
	// ID names the rule in errors, logs and figures, and ties it to its
	// predecessor when rules are reloaded. Made from the fields if empty.
	ID string `yaml:"id,omitempty"`
	// Resource is the name given to api.Entry, or a pattern as Match says. Required. "*" means
	// every resource that no other enforced rule of the family is about. Every resource that the
	// rule is about has a limit of its own.
	Resource string `yaml:"resource"`
	// Match says how Resource names resources. The zero value is api.MatchExact.
	// api.MatchPrefix matches all names that begin with what precedes the star at the end of
	// Resource, as in "GET /users/*". api.MatchPath compares the parts between slashes, where a
	// star matches any part, as in "GET /users/*/orders". A rule of these two kinds is about a name
	// only if no enforced rule of the family spells out more of it. api.MatchRegex is a regular
	// expression (RE2) that must match a whole name, where a dot matches every character; such a
	// rule is about all names that it matches.
	Match spec.Match `yaml:"match,omitempty"`
	// Exclude lists names that "*", a prefix or a path is not about.
	Exclude []string `yaml:"exclude,omitempty"`
	// Floor and Ceiling are the least and the most that the limit may become, in units:
	// a call of n units holds n. 0 means 1 and 1000. Ceiling is at most a million.
	Floor   int `yaml:"floor,omitempty"`
	Ceiling int `yaml:"ceiling,omitempty"`
	// Start is the limit before anything is learned. 0 means 20, or the nearest value from Floor to
	// Ceiling.
	Start int `yaml:"start,omitempty"`
	// Window is the shortest time for which the rule looks before it moves the limit, from 10 ms to
	// a minute; 0 means 500 ms. Where there are few calls, or their durations differ much, it looks
	// longer by itself.
	Window time.Duration `yaml:"window,omitempty"`
	// Mode says whether the limit holds. The zero value is api.Enforce.
	Mode spec.Mode `yaml:"mode,omitempty"`
}

// The defaults and ranges of a rule's fields.
const (
	DefaultFloor   = 1
	DefaultCeiling = 1000
	DefaultStart   = 20
	DefaultWindow  = 500 * time.Millisecond

	MaxCeiling = 1_000_000
	MinWindow  = 10 * time.Millisecond
	MaxWindow  = time.Minute
)

// Normalized returns the rule with every default written out, or the first field that
// can't be honoured as a [spec.FieldError].
func (r Rule) Normalized() (Rule, error) {
	r.Exclude = spec.Names(r.Exclude)
	r.Floor = cmp.Or(r.Floor, DefaultFloor)
	r.Ceiling = cmp.Or(r.Ceiling, max(DefaultCeiling, min(2*r.Floor, MaxCeiling)))
	r.Start = cmp.Or(r.Start, min(max(DefaultStart, r.Floor), r.Ceiling))
	r.Window = cmp.Or(r.Window, DefaultWindow)
	if err := r.check(); err != nil {
		return r, err
	}
	r.ID = cmp.Or(r.ID, r.Like())
	return r, nil
}

func (r Rule) check() error {
	if err := r.Info().Check(); err != nil {
		return err
	}
	switch {
	case r.Floor < 1 || r.Floor > MaxCeiling:
		return spec.BadField("floor", "is %d: use a whole number from 1 to %d", r.Floor, MaxCeiling)
	case r.Ceiling < 1 || r.Ceiling > MaxCeiling:
		return spec.BadField("ceiling", "is %d: use a whole number from 1 to %d", r.Ceiling, MaxCeiling)
	case r.Ceiling < r.Floor:
		return spec.BadField("ceiling", "is %d, below the floor of %d: no limit is between them", r.Ceiling, r.Floor)
	case r.Ceiling == r.Floor:
		return spec.BadField("ceiling", "is the floor, so that there is nothing to learn: use an isolation rule with threshold %d, or a higher ceiling", r.Ceiling)
	case r.Start < r.Floor || r.Start > r.Ceiling:
		return spec.BadField("start", "is %d: use a whole number from the floor to the ceiling, %d to %d, or leave it out", r.Start, r.Floor, r.Ceiling)
	}
	return spec.CheckDuration("window", r.Window, MinWindow, MaxWindow)
}

// Like names a rule by the fields that make it that rule, so that an edited floor or
// ceiling is still the same rule.
func (r Rule) Like() string { return "adaptive:" + r.Resource }

func (r Rule) terms() terms {
	return terms{
		floor: int64(r.Floor), ceiling: int64(r.Ceiling),
		window: int64(r.Window), watch: r.Mode == spec.Shadow,
	}
}
