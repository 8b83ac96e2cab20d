package isolation

import (
	"cmp"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/family"
)

// Rule limits the calls in flight of one resource:
//
//	isolation.Rule{Resource: "render pdf", Threshold: 8}
//
// runs 8 at a time and refuses all others. Equal rules are one rule; a rule that differs from an
// older one with the same ID takes over its state.
type Rule struct {
	// ID names the rule in errors, logs and statistics, and links it to its predecessor on a
	// reload. If empty, it is derived from the other fields.
	ID string `yaml:"id,omitempty"`
	// Resource is the name passed to api.Entry, or a pattern; see Match. Required. "*" applies to
	// every resource that no other enforced isolation rule applies to. Each resource has its own
	// limit, unless the rule counts them Together.
	Resource string `yaml:"resource"`
	// Match determines how Resource names resources. The zero value is api.MatchExact. api.MatchPrefix
	// matches all names that begin with the text before the star at the end of Resource, as in "GET
	// /users/*". api.MatchPath compares the parts between slashes, where a star matches any part,
	// as in "GET /users/*/orders". A rule of these two kinds applies to a name only if no enforced
	// isolation rule matches it more specifically. api.MatchRegex is a regular expression (RE2)
	// that must match the whole name, where a dot matches every character; it applies to every name
	// that it matches.
	Match spec.Match `yaml:"match,omitempty"`
	// Exclude lists names that "*", a prefix or a path does not apply to.
	Exclude []string `yaml:"exclude,omitempty"`
	// Together gives all names that the rule matches one limit, besides the rules for single names:
	// the rule applies whether or not another is more specific, and replaces none. A call nested in
	// one that the rule has counted isn't counted again until that one exits. "*" counts inbound
	// calls; for all, use a regular expression, such as ".*". Only for patterns.
	Together bool `yaml:"together,omitempty"`
	// Threshold is the number of units that may be in flight: a call of n units holds n. 0 blocks
	// every call. At most a billion, or 10¹² with a Unit.
	Threshold int `yaml:"threshold"`
	// Unit is the kind of units that the rule counts, as named by api.Cost: "bytes", say. Up to 64
	// letters, digits, '.', '_' or '-'. Empty means calls, or the units of api.Units. The rule
	// applies only to calls with a cost in this unit, unless it has an Estimate. Not with MaxQueue.
	Unit string `yaml:"unit,omitempty"`
	// Estimate is the whole number of units reserved by a call that names no cost in Unit. At most
	// Threshold; 0 means that the rule doesn't apply to such calls. Needs a Unit.
	Estimate float64 `yaml:"estimate,omitempty"`
	// MaxReserve is the maximum whole number of units that a call reserves; units used beyond them are
	// charged when it is settled. 0 means no maximum. Needs a Unit.
	MaxReserve float64 `yaml:"maxReserve,omitempty"`
	// MaxQueue is the number of calls that may wait for others to end. 0 means no queue: calls that
	// don't fit are refused. At most a million.
	MaxQueue int `yaml:"maxQueue,omitempty"`
	// MaxWait is the longest time in the queue, up to 24 h. Required with MaxQueue, refused
	// without.
	MaxWait time.Duration `yaml:"maxWait,omitempty"`
	// Share divides the permits between tenants while calls wait. The zero value serves all calls in
	// the order in which they came.
	Share spec.Share `yaml:"share,omitempty"`
	// Shed decides who waits in front. The zero value is api.ShedNone: calls are served in order. With
	// api.ShedLevels a freed permit goes to the highest criticality that waits, and a full queue loses
	// the last call of the lowest; see api.Criticality. Needs MaxQueue, and no Cluster.
	Shed spec.Shed `yaml:"shed,omitempty"`
	// Cluster makes several processes share the limit, and determines how. The zero value keeps it
	// local to this process. Needs an ID, and no MaxQueue.
	Cluster cluster.Rule `yaml:"cluster,omitempty"`
	// Refusal is the response that adapters give to refused calls. The zero value means that of the
	// family.
	Refusal spec.Response `yaml:"refusal,omitempty"`
	// Mode determines whether the rule is enforced. The zero value is api.Enforce.
	Mode spec.Mode `yaml:"mode,omitempty"`
}

// The ranges of a rule's fields.
const (
	MaxThreshold     = 1_000_000_000
	MaxCostThreshold = MaxThreshold * family.CostScale // of a rule with a unit
	MaxMaxQueue      = 1_000_000
	MaxWaitLimit     = 24 * time.Hour
)

// Normalized returns the rule with every default filled in. It returns a [spec.FieldError] for the
// first invalid field.
func (r Rule) Normalized() (Rule, error) {
	r.Exclude = spec.Names(r.Exclude)
	if err := r.check(); err != nil {
		return r, err
	}
	if err := cmp.Or(r.checkShed(), r.checkShare()); err != nil {
		return r, err
	}
	r.Share = r.Share.Normalized(r.MaxQueue)
	r.Cluster = r.Cluster.Normalized()
	r.ID = cmp.Or(r.ID, r.Like())
	return r, nil
}

// shares reports whether the rule shares its permits.
func (r *Rule) shares() bool { return r.Share.By != "" || r.Shed == spec.ShedLevels }

func (r Rule) check() error {
	if err := r.Info().Check(); err != nil {
		return err
	}
	if err := r.checkUnit(); err != nil {
		return err
	}
	most := int64(MaxThreshold)
	if r.Unit != "" {
		most = MaxCostThreshold
	}
	switch {
	case r.Threshold < 0 || int64(r.Threshold) > most:
		return spec.BadField("threshold", "is %d: use a whole number from 0 to %d", r.Threshold, most)
	case r.MaxQueue < 0 || r.MaxQueue > MaxMaxQueue:
		return spec.BadField("maxQueue", "is %d: use a whole number from 0 to %d", r.MaxQueue, MaxMaxQueue)
	case r.MaxWait < 0 || r.MaxWait > MaxWaitLimit:
		return spec.BadField("maxWait", "is %v: use a duration from 0s to %v", r.MaxWait, MaxWaitLimit)
	case r.MaxQueue > 0 && r.MaxWait == 0:
		return spec.BadField("maxWait", "is required by maxQueue: set the longest time in the queue")
	case r.MaxWait > 0 && r.MaxQueue == 0:
		return spec.BadField("maxQueue", "is required by maxWait: set the number of calls that may wait")
	case r.MaxQueue > 0 && r.Threshold == 0:
		return spec.BadField("maxQueue", "does not go with threshold 0, under which no call ever runs: remove maxQueue and maxWait")
	}
	return cmp.Or(r.cost().CheckNumbers(float64(r.Threshold)), r.checkShared())
}

// Like identifies a rule by the fields that make it that rule, so that a rule with an edited
// threshold or queue is still the same.
func (r Rule) Like() string {
	id := "isolation:" + r.Resource
	if r.Together {
		id += ":together"
	}
	if r.Unit != "" {
		id += ":unit=" + r.Unit
	}
	return id
}

// tighter sorts rules by strictness, the strictest first.
func (r Rule) tighter(other Rule) int {
	return cmp.Or(
		cmp.Compare(r.Threshold, other.Threshold),
		cmp.Compare(r.MaxQueue, other.MaxQueue),
		cmp.Compare(r.MaxWait, other.MaxWait),
	)
}
