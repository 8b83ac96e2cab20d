package adaptive

import (
	"cmp"
	"time"

	"github.com/penstock-go/penstock/core/spec"
)

// Rule limits the calls in flight of one resource to the number that it can serve at a time, which
// it learns:
//
//	adaptive.Rule{Resource: "search"}
//
// Equal rules are one rule; a rule that differs from an older one with the same ID continues from
// the limit that the older one learned.
type Rule struct {
	// ID names the rule in errors, logs and statistics, and links it to its predecessor on a
	// reload. If empty, it is derived from the other fields.
	ID string `yaml:"id,omitempty"`
	// Resource is the name passed to api.Entry, or a pattern; see Match. Required. "*" applies to
	// every resource that no other enforced adaptive rule applies to. Each resource has its own
	// limit.
	Resource string `yaml:"resource"`
	// Match determines how Resource names resources. The zero value is api.MatchExact. api.MatchPrefix
	// matches all names that begin with the text before the star at the end of Resource, as in "GET
	// /users/*". api.MatchPath compares the parts between slashes, where a star matches any part,
	// as in "GET /users/*/orders". A rule of these two kinds applies to a name only if no enforced
	// adaptive rule matches it more specifically. api.MatchRegex is a regular expression (RE2) that
	// must match the whole name, where a dot matches every character; it applies to every name that
	// it matches.
	Match spec.Match `yaml:"match,omitempty"`
	// Exclude lists names that "*", a prefix or a path does not apply to.
	Exclude []string `yaml:"exclude,omitempty"`
	// Floor and Ceiling bound the limit, in units: a call of n units holds n. 0 means 1 and 1000.
	// Ceiling is at most a million.
	Floor   int `yaml:"floor,omitempty"`
	Ceiling int `yaml:"ceiling,omitempty"`
	// Start is the limit before anything is learned. 0 means 20, or the nearest value from Floor to
	// Ceiling.
	Start int `yaml:"start,omitempty"`
	// Window is the shortest time for which the rule observes before it moves the limit, from 10 ms
	// to a minute; 0 means 500 ms. If calls are few, or their durations vary much, it observes
	// longer by itself.
	Window time.Duration `yaml:"window,omitempty"`
	// Refusal is the response that adapters give to refused calls. The zero value means that of the
	// family.
	Refusal spec.Response `yaml:"refusal,omitempty"`
	// Shed decides which calls are refused first. The zero value is api.ShedNone. With api.ShedLevels
	// each level of criticality leaves units free for the levels above; see api.Criticality.
	Shed spec.Shed `yaml:"shed,omitempty"`
	// Floors keep levels from starving. Only with Shed.
	Floors spec.Floors `yaml:"floors,omitempty"`
	// Mode determines whether the limit is enforced. The zero value is api.Enforce.
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

// Normalized returns the rule with every default filled in. It returns a [spec.FieldError] for the
// first invalid field.
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
		return spec.BadField("ceiling", "is %d, below the floor, %d: use a ceiling above the floor", r.Ceiling, r.Floor)
	case r.Ceiling == r.Floor:
		return spec.BadField("ceiling", "equals the floor, which leaves nothing to learn: use an isolation rule with threshold %d, or a higher ceiling", r.Ceiling)
	case r.Start < r.Floor || r.Start > r.Ceiling:
		return spec.BadField("start", "is %d: use a whole number from the floor to the ceiling, %d to %d, or leave it out", r.Start, r.Floor, r.Ceiling)
	}
	if err := spec.CheckShed(r.Shed, r.Floors); err != nil {
		return err
	}
	return spec.CheckDuration("window", r.Window, MinWindow, MaxWindow)
}

// Like identifies a rule by the fields that make it that rule, so that a rule with an edited floor
// or ceiling is still the same.
func (r Rule) Like() string { return "adaptive:" + r.Resource }

func (r Rule) terms() terms {
	return terms{
		floor: int64(r.Floor), ceiling: int64(r.Ceiling),
		window: int64(r.Window), watch: r.Mode == spec.Shadow,
	}
}
