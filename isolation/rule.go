package isolation

import (
	"cmp"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/spec"
)

// Rule limits the calls in flight of one resource:
//
//	isolation.Rule{Resource: "render pdf", Threshold: 8}
//
// runs 8 at a time and refuses the rest. Two equal rules are the same rule; a rule that differs
// from an older one with the same ID takes over its state.
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
	// Threshold is how many units may be in flight: a call of n units holds n. 0
	// blocks everything. At most a billion.
	Threshold int `yaml:"threshold"`
	// MaxQueue is how many calls may wait for others to end. 0 means no queue: what doesn't fit is
	// refused. At most a million.
	MaxQueue int `yaml:"maxQueue,omitempty"`
	// MaxWait is the longest time in the queue, up to 24 h. Required with MaxQueue, refused
	// without.
	MaxWait time.Duration `yaml:"maxWait,omitempty"`
	// Cluster says that several processes share the limit, and how. The zero value keeps it to this
	// process. Needs an ID, and no MaxQueue.
	Cluster cluster.Rule `yaml:"cluster,omitempty"`
	// Mode says whether the verdict holds. The zero value is api.Enforce.
	Mode spec.Mode `yaml:"mode,omitempty"`
}

// The ranges of a rule's fields.
const (
	MaxThreshold = 1_000_000_000
	MaxMaxQueue  = 1_000_000
	MaxWaitLimit = 24 * time.Hour
)

// Normalized returns the rule with every default written out, or the first field that
// can't be honoured as a [spec.FieldError].
func (r Rule) Normalized() (Rule, error) {
	r.Exclude = spec.Names(r.Exclude)
	if err := r.check(); err != nil {
		return r, err
	}
	r.Cluster = r.Cluster.Normalized()
	r.ID = cmp.Or(r.ID, r.Like())
	return r, nil
}

func (r Rule) check() error {
	if err := r.Info().Check(); err != nil {
		return err
	}
	switch {
	case r.Threshold < 0 || r.Threshold > MaxThreshold:
		return spec.BadField("threshold", "is %d: use a whole number from 0 to %d", r.Threshold, MaxThreshold)
	case r.MaxQueue < 0 || r.MaxQueue > MaxMaxQueue:
		return spec.BadField("maxQueue", "is %d: use a whole number from 0 to %d", r.MaxQueue, MaxMaxQueue)
	case r.MaxWait < 0 || r.MaxWait > MaxWaitLimit:
		return spec.BadField("maxWait", "is %v: use a duration from 0s to %v", r.MaxWait, MaxWaitLimit)
	case r.MaxQueue > 0 && r.MaxWait == 0:
		return spec.BadField("maxWait", "is required by maxQueue: say how long a call may wait in the queue")
	case r.MaxWait > 0 && r.MaxQueue == 0:
		return spec.BadField("maxQueue", "is required by maxWait: say how many calls may wait in the queue")
	case r.MaxQueue > 0 && r.Threshold == 0:
		return spec.BadField("maxQueue", "does not go with threshold 0, under which nobody's turn ever comes: leave out maxQueue and maxWait")
	}
	return r.checkShared()
}

// Like names a rule by the fields that make it that rule, so that an edited
// threshold or queue is still the same rule.
func (r Rule) Like() string { return "isolation:" + r.Resource }

// tighter orders rules by what they admit: the one that admits least comes first.
func (r Rule) tighter(other Rule) int {
	return cmp.Or(
		cmp.Compare(r.Threshold, other.Threshold),
		cmp.Compare(r.MaxQueue, other.MaxQueue),
		cmp.Compare(r.MaxWait, other.MaxWait),
	)
}
