package breaker

import (
	"cmp"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/stat"
)

// Rule is one breaker for a resource, or one for each resource that matches. Resource
// and Threshold are enough:
//
//	breaker.Rule{Resource: "GET /orders", Threshold: 0.5}
//
// opens when half of the calls in ten seconds fail, if there were at least five. Two equal rules
// are the same rule; a rule that differs from an older one with the same ID takes over its state.
type Rule struct {
	// ID names the rule in errors, logs and figures, and ties it to its
	// predecessor when rules are reloaded. Made from the fields if empty.
	ID string `yaml:"id,omitempty"`
	// Resource is the name given to api.Entry, or a pattern as Match says. Required. "*" means
	// every resource that no other enforced rule of the family is about. Every resource that the
	// rule is about has a breaker of its own.
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
	// Strategy is what trips the breaker. The zero value is ErrorRatio.
	Strategy Strategy `yaml:"strategy,omitempty"`
	// Threshold is what trips it when reached: a share from 0 to 1, or a number of
	// calls for ErrorCount and ConsecutiveErrors, up to 10⁹. At least one bad call is needed in any
	// case, so 0 means the first one trips it.
	Threshold float64 `yaml:"threshold"`
	// SlowRT is what a slow call takes longer than, without what it waited itself for rules. Up to
	// 24 h. Required by SlowRatio, refused by the others.
	SlowRT time.Duration `yaml:"slowRT,omitempty"`
	// MinCalls is how many calls must have completed within Interval before anything
	// trips. 1 to 10⁹; 0 means 5. Refused by ConsecutiveErrors, as are the two below: a run of
	// failures lasts until a call goes well.
	MinCalls int `yaml:"minCalls,omitempty"`
	// Interval is how far back calls count. 10 ms to 24 h; 0 means ten seconds.
	Interval time.Duration `yaml:"interval,omitempty"`
	// Buckets divide Interval; as each ends, the count of the oldest is forgotten. 0 means 10. With
	// 1, counting restarts at every multiple of Interval.
	Buckets int `yaml:"buckets,omitempty"`
	// Recovery is how long the breaker stays open before it lets probes through. 1 ms
	// to 24 h; 0 means 5 s.
	Recovery time.Duration `yaml:"recovery,omitempty"`
	// Probes is how many calls must go well in a row while the breaker is half-open, and at most
	// how many of them run at the same time. 1 to 1000; 0 means 1.
	Probes int `yaml:"probes,omitempty"`
	// ProbeTimeout is when a probe that has not completed is no longer waited for, and
	// another call takes its place. 1 ms to 24 h; 0 means Recovery.
	ProbeTimeout time.Duration `yaml:"probeTimeout,omitempty"`
	// Ramp makes the breaker close in steps: 1 %, then 10 %, then 50 % of the calls pass, each for
	// that long. 1 ms to 24 h; 0 means that it closes immediately.
	Ramp time.Duration `yaml:"ramp,omitempty"`
	// Mode says whether the verdict holds. The zero value is api.Enforce.
	Mode spec.Mode `yaml:"mode,omitempty"`
}

// DefaultInterval is how far back calls count if a rule doesn't say. It is long enough for a
// resource that is called once a second to have the five calls that a breaker needs by default.
const DefaultInterval = 10 * time.Second

// The ranges of a rule's fields.
const (
	MinInterval  = stat.MinInterval
	MaxThreshold = 1e9 // calls
	MaxMinCalls  = 1_000_000_000
	MaxProbes    = 1000
	MinPause     = time.Millisecond // Recovery, ProbeTimeout, Ramp
	MaxDuration  = stat.MaxInterval // any
)

// Normalized returns the rule with every default written out, or the first field that
// can't be honoured as a [spec.FieldError].
func (r Rule) Normalized() (Rule, error) {
	r.Exclude = spec.Names(r.Exclude)
	if err := cmp.Or(r.checkNames(), r.checkEnums()); err != nil {
		return r, err
	}
	if r.Strategy != ConsecutiveErrors {
		r.MinCalls = cmp.Or(r.MinCalls, 5)
		r.Interval = cmp.Or(r.Interval, DefaultInterval)
		r.Buckets = cmp.Or(r.Buckets, 10)
	}
	r.Recovery = cmp.Or(r.Recovery, 5*time.Second)
	r.Probes = cmp.Or(r.Probes, 1)
	r.ProbeTimeout = cmp.Or(r.ProbeTimeout, r.Recovery)
	if err := r.checkNumbers(); err != nil {
		return r, err
	}
	r.ID = cmp.Or(r.ID, r.Like())
	return r, nil
}

func (r Rule) checkNames() error {
	if r.Resource == "" {
		return spec.BadField("resource", `is required: name the resource that the breaker is for, or write "*" for all`)
	}
	return r.Info().Check()
}

func (r Rule) checkEnums() error {
	switch {
	case !strategyNames.Has(r.Strategy):
		return spec.BadField("strategy", "%d is unknown: use breaker.ErrorRatio, breaker.ErrorCount, breaker.SlowRatio or breaker.ConsecutiveErrors", r.Strategy)
	case r.Strategy == SlowRatio && r.SlowRT == 0:
		return spec.BadField("slowRT", "is required by strategy slowRatio: say what a slow call takes longer than")
	case r.Strategy != SlowRatio && r.SlowRT != 0:
		return spec.BadField("slowRT", "has no meaning for strategy %s: remove it, or set strategy to slowRatio", r.Strategy)
	case r.Strategy == ConsecutiveErrors:
		return r.checkRow()
	}
	return nil
}

// checkRow is for a rule that looks at the run of failures up to the latest call, however long ago.
func (r Rule) checkRow() error {
	field := ""
	switch {
	case r.MinCalls != 0:
		field = "minCalls"
	case r.Interval != 0:
		field = "interval"
	case r.Buckets != 0:
		field = "buckets"
	default:
		return nil
	}
	return spec.BadField(field, "has no meaning for strategy consecutiveErrors, which counts until a call goes well: remove it, or set strategy to errorCount")
}

func (r Rule) checkNumbers() error {
	most, unit := 1.0, "a share of the calls"
	if r.Strategy.counts() {
		most, unit = MaxThreshold, "a number of calls"
	}
	switch {
	case !(r.Threshold >= 0) || r.Threshold > most:
		return spec.BadField("threshold", "is %v: use %s, from 0 to %g", r.Threshold, unit, most)
	case r.Probes < 1 || r.Probes > MaxProbes:
		return spec.BadField("probes", "is %d: use a whole number from 1 to %d", r.Probes, MaxProbes)
	}
	if r.Strategy != ConsecutiveErrors {
		if err := r.checkStatistics(); err != nil {
			return err
		}
	}
	if r.Strategy == SlowRatio {
		if err := spec.CheckDuration("slowRT", r.SlowRT, 1, MaxDuration); err != nil {
			return err
		}
	}
	if err := spec.CheckDuration("recovery", r.Recovery, MinPause, MaxDuration); err != nil {
		return err
	}
	if err := spec.CheckDuration("probeTimeout", r.ProbeTimeout, MinPause, MaxDuration); err != nil {
		return err
	}
	if r.Ramp != 0 {
		return spec.CheckDuration("ramp", r.Ramp, MinPause, MaxDuration)
	}
	return nil
}

func (r Rule) checkStatistics() error {
	if r.MinCalls < 1 || r.MinCalls > MaxMinCalls {
		return spec.BadField("minCalls", "is %d: use a whole number from 1 to %d", r.MinCalls, MaxMinCalls)
	}
	if err := spec.CheckDuration("interval", r.Interval, MinInterval, MaxDuration); err != nil {
		return err
	}
	if err := (stat.Shape{Interval: r.Interval, Buckets: r.Buckets}).Validate(); err != nil {
		return spec.BadField("buckets", "%v", err)
	}
	return nil
}

// Like names a rule by the fields that make it that rule, so that an edited
// threshold is still the same rule.
func (r Rule) Like() string {
	id := []string{"breaker", r.Resource}
	if r.Strategy != ErrorRatio {
		id = append(id, r.Strategy.String())
	}
	return strings.Join(id, ":")
}
