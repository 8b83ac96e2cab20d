package breaker

import (
	"cmp"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/stat"
)

// Rule is one breaker for a resource, or one for each resource that matches. Resource and Threshold
// are enough:
//
//	breaker.Rule{Resource: "GET /orders", Threshold: 0.5}
//
// opens when half of the calls in ten seconds fail, if there were at least five. Equal rules are
// one rule; a rule that differs from an older one with the same ID takes over its state.
type Rule struct {
	// ID names the rule in errors, logs and statistics, and links it to its predecessor on a
	// reload. If empty, it is derived from the other fields.
	ID string `yaml:"id,omitempty"`
	// Resource is the name passed to api.Entry, or a pattern; see Match. Required. "*" applies to
	// every resource that no other enforced breaker rule applies to. Each resource has its own
	// breaker.
	Resource string `yaml:"resource"`
	// Match determines how Resource names resources. The zero value is api.MatchExact. api.MatchPrefix
	// matches all names that begin with the text before the star at the end of Resource, as in "GET
	// /users/*". api.MatchPath compares the parts between slashes, where a star matches any part,
	// as in "GET /users/*/orders". A rule of these two kinds applies to a name only if no enforced
	// breaker rule matches it more specifically. api.MatchRegex is a regular expression (RE2) that
	// must match the whole name, where a dot matches every character; it applies to every name that
	// it matches.
	Match spec.Match `yaml:"match,omitempty"`
	// Exclude lists names that "*", a prefix or a path does not apply to.
	Exclude []string `yaml:"exclude,omitempty"`
	// Strategy decides what trips the breaker. The zero value is ErrorRatio.
	Strategy Strategy `yaml:"strategy,omitempty"`
	// Threshold trips the breaker when reached: a share from 0 to 1, or a number of calls for
	// ErrorCount and ConsecutiveErrors, up to 10⁹. At least one bad call is always needed, so with
	// 0 the first one trips it.
	Threshold float64 `yaml:"threshold"`
	// SlowRT is the duration above which a call is slow, not counting its waits for rules. Up to 24
	// h. Required by SlowRatio, refused by the others.
	SlowRT time.Duration `yaml:"slowRT,omitempty"`
	// MinCalls is the number of calls that must complete within Interval before the breaker can
	// trip. 1 to 10⁹; 0 means 5. Refused by ConsecutiveErrors, as are Interval and Buckets: a run
	// of failures lasts until a call succeeds.
	MinCalls int `yaml:"minCalls,omitempty"`
	// Interval is the period over which calls count. 10 ms to 24 h; 0 means ten seconds.
	Interval time.Duration `yaml:"interval,omitempty"`
	// Buckets divide Interval; when a bucket begins, the counts of the oldest expire. 0 means 10.
	// With 1, counting restarts at every multiple of Interval.
	Buckets int `yaml:"buckets,omitempty"`
	// Recovery is the time the breaker stays open before it admits probes. 1 ms to 24 h; 0 means 5
	// s.
	Recovery time.Duration `yaml:"recovery,omitempty"`
	// Probes is the number of calls that must succeed in a row while the breaker is half-open, and
	// the maximum number that run at the same time. 1 to 1000; 0 means 1.
	Probes int `yaml:"probes,omitempty"`
	// ProbeTimeout is the time after which a probe that has not completed frees its slot for another
	// call. 1 ms to 24 h; 0 means Recovery.
	ProbeTimeout time.Duration `yaml:"probeTimeout,omitempty"`
	// Ramp makes the breaker close in steps: 1 %, then 10 %, then 50 % of the calls pass, each for
	// this long. 1 ms to 24 h; 0 means that it closes immediately.
	Ramp time.Duration `yaml:"ramp,omitempty"`
	// Refusal is the response that adapters give to refused calls. The zero value means that of the
	// family.
	Refusal spec.Response `yaml:"refusal,omitempty"`
	// Mode determines whether the rule is enforced. The zero value is api.Enforce.
	Mode spec.Mode `yaml:"mode,omitempty"`
}

// DefaultInterval is the default of Interval. It is long enough that a resource that is called once
// per second has the five calls that a breaker needs by default.
const DefaultInterval = 10 * time.Second

// The ranges of a rule's fields.
const (
	MinInterval  = stat.MinInterval
	MaxThreshold = 1e9 // calls
	MaxMinCalls  = 1_000_000_000
	MaxProbes    = 1000
	MinPause     = time.Millisecond // Recovery, ProbeTimeout, Ramp
	MaxDuration  = stat.MaxInterval // for all of them
)

// Normalized returns the rule with every default filled in. It returns a [spec.FieldError] for the
// first invalid field.
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
		return spec.BadField("resource", `is required: name the resource, or use "*" for all`)
	}
	return r.Info().Check()
}

func (r Rule) checkEnums() error {
	switch {
	case !strategyNames.Has(r.Strategy):
		return spec.BadField("strategy", "%d is unknown: use breaker.ErrorRatio, breaker.ErrorCount, breaker.SlowRatio or breaker.ConsecutiveErrors", r.Strategy)
	case r.Strategy == SlowRatio && r.SlowRT == 0:
		return spec.BadField("slowRT", "is required by strategy slowRatio: set the duration above which a call is slow")
	case r.Strategy != SlowRatio && r.SlowRT != 0:
		return spec.BadField("slowRT", "has no meaning for strategy %s: remove it, or set strategy to slowRatio", r.Strategy)
	case r.Strategy == ConsecutiveErrors:
		return r.checkRow()
	}
	return nil
}

// checkRow checks the fields of a rule that counts consecutive failures, without an interval.
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
	return spec.BadField(field, "has no meaning for strategy consecutiveErrors, which counts until a call succeeds: remove it, or set strategy to errorCount")
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

// Like identifies a rule by the fields that make it that rule, so that a rule with an edited
// threshold is still the same.
func (r Rule) Like() string {
	id := []string{"breaker", r.Resource}
	if r.Strategy != ErrorRatio {
		id = append(id, r.Strategy.String())
	}
	return strings.Join(id, ":")
}
