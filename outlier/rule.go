package outlier

import (
	"cmp"
	"strings"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
)

// Rule ejects endpoints of a resource, or of each resource that matches. Resource and Threshold are
// enough:
//
//	outlier.Rule{Resource: "payments", Threshold: 0.5}
//
// ejects an endpoint when half of its calls within ten seconds fail, if there were at least five,
// and at most half of the endpoints at the same time. Equal rules are one rule; a rule that differs
// from an older one with the same ID takes over its state.
type Rule struct {
	// ID names the rule in errors, logs and statistics, and links it to its predecessor on a
	// reload. If empty, it is derived from the other fields.
	ID string `yaml:"id,omitempty"`
	// Resource is the name passed to api.Entry, or a pattern; see Match. Required. "*" applies to
	// every resource that no other enforced outlier rule applies to. Each resource has its own
	// endpoints.
	Resource string `yaml:"resource"`
	// Match determines how Resource names resources. The zero value is api.MatchExact. api.MatchPrefix
	// matches all names that begin with the text before the star at the end of Resource, as in "GET
	// /users/*". api.MatchPath compares the parts between slashes, where a star matches any part,
	// as in "GET /users/*/orders". A rule of these two kinds applies to a name only if no enforced
	// outlier rule matches it more specifically. api.MatchRegex is a regular expression (RE2) that
	// must match the whole name, where a dot matches every character; it applies to every name that
	// it matches.
	Match spec.Match `yaml:"match,omitempty"`
	// Exclude lists names that "*", a prefix or a path does not apply to.
	Exclude []string `yaml:"exclude,omitempty"`
	// MaxEjected is the largest share of the endpoints that is ejected at the same time. Above 0, up
	// to 1; 0 means 0.5. At least one endpoint stays in service, regardless of the share.
	MaxEjected float64 `yaml:"maxEjected,omitempty"`
	// MaxEndpoints is the number of endpoints tracked for each resource; calls to further ones are
	// ignored. 2 to 10,000; 0 means 1000.
	MaxEndpoints int `yaml:"maxEndpoints,omitempty"`
	// ForgetAfter is the time after which an endpoint that is no longer chosen is dropped, and no
	// longer counts towards the share. From Interval to 24 h; 0 means a minute, or Interval or
	// Recovery if that is longer.
	ForgetAfter time.Duration `yaml:"forgetAfter,omitempty"`

	// Strategy decides what trips an endpoint's breaker. The zero value is breaker.ErrorRatio.
	Strategy breaker.Strategy `yaml:"strategy,omitempty"`
	// Threshold trips the breaker when reached: a share from 0 to 1, or a number of calls for
	// breaker.ErrorCount and breaker.ConsecutiveErrors. At least one bad call is always needed, so
	// with 0 the first one trips it.
	Threshold float64 `yaml:"threshold"`
	// SlowRT is the duration above which a call is slow, not counting its waits for rules. Up to 24
	// h. Required by breaker.SlowRatio, refused by the others.
	SlowRT time.Duration `yaml:"slowRT,omitempty"`
	// MinCalls is the number of calls that must complete within Interval before an endpoint can be
	// ejected. 1 to 10⁹; 0 means 5. Refused by breaker.ConsecutiveErrors, as are Interval and
	// Buckets.
	MinCalls int `yaml:"minCalls,omitempty"`
	// Interval is the period over which calls count. 10 ms to 24 h; 0 means ten seconds.
	Interval time.Duration `yaml:"interval,omitempty"`
	// Buckets divide Interval; when a bucket begins, the counts of the oldest expire. 0 means 10.
	// With 1, counting restarts at every multiple of Interval.
	Buckets int `yaml:"buckets,omitempty"`
	// Recovery is the time an endpoint stays ejected before it gets probes. 1 ms to 24 h; 0 means 5
	// s.
	Recovery time.Duration `yaml:"recovery,omitempty"`
	// Probes is the number of calls that must succeed in a row before an endpoint returns to
	// service, and the most that run at the same time. 1 to 1000; 0 means 1.
	Probes int `yaml:"probes,omitempty"`
	// ProbeTimeout is the time after which a probe that has not completed frees its slot for another
	// call. 1 ms to 24 h; 0 means Recovery.
	ProbeTimeout time.Duration `yaml:"probeTimeout,omitempty"`
	// Mode determines whether the rule is enforced. The zero value is api.Enforce.
	Mode spec.Mode `yaml:"mode,omitempty"`
}

const (
	defaultShare     = 0.5
	defaultEndpoints = 1000
	defaultForget    = time.Minute

	// MaxMaxEndpoints is the largest MaxEndpoints.
	MaxMaxEndpoints = 10_000

	// maxParts is the maximum number of buckets and probes of all endpoints together: about 32 MB.
	maxParts = 1_000_000
)

// Normalized returns the rule with every default filled in. It returns a [spec.FieldError] for the
// first invalid field.
func (r Rule) Normalized() (Rule, error) {
	r.Exclude = spec.Names(r.Exclude)
	if r.Resource == "" {
		return r, spec.BadField("resource", "is required: name the resource that the endpoints serve")
	}
	if r.Mode > spec.Off {
		return r, spec.BadField("mode", "%d is unknown: use api.Enforce, api.Shadow or api.Off", r.Mode)
	}
	b, err := r.breaker().Normalized()
	if err != nil {
		return r, err
	}
	r.MinCalls, r.Interval, r.Buckets = b.MinCalls, b.Interval, b.Buckets
	r.Recovery, r.Probes, r.ProbeTimeout = b.Recovery, b.Probes, b.ProbeTimeout
	r.MaxEjected = cmp.Or(r.MaxEjected, defaultShare)
	r.MaxEndpoints = cmp.Or(r.MaxEndpoints, defaultEndpoints)
	r.ForgetAfter = cmp.Or(r.ForgetAfter, max(defaultForget, r.Interval, r.Recovery))
	if err := r.check(); err != nil {
		return r, err
	}
	r.ID = cmp.Or(r.ID, r.Like())
	return r, nil
}

func (r Rule) check() error {
	parts := r.Buckets + r.Probes
	switch {
	case !(r.MaxEjected > 0) || r.MaxEjected > 1:
		return spec.BadField("maxEjected", "is %v: use a share of the endpoints above 0, up to 1", r.MaxEjected)
	case r.MaxEndpoints < 2 || r.MaxEndpoints > MaxMaxEndpoints:
		return spec.BadField("maxEndpoints", "is %d: use a whole number from 2 to %d", r.MaxEndpoints, MaxMaxEndpoints)
	case r.MaxEndpoints*parts > maxParts:
		return spec.BadField("maxEndpoints", "is %d: with %d buckets and %d probes each, at most %d endpoints can be tracked", r.MaxEndpoints, r.Buckets, r.Probes, maxParts/parts)
	case !fits(1, r.MaxEndpoints, r.MaxEjected):
		return spec.BadField("maxEjected", "is %v, which is less than one endpoint out of %d, so the rule would never act: use at least %v", r.MaxEjected, r.MaxEndpoints, 1/float64(r.MaxEndpoints))
	}
	return spec.CheckDuration("forgetAfter", r.ForgetAfter, max(r.Interval, breaker.MinInterval), breaker.MaxDuration)
}

// fits reports whether that many of n endpoints may be ejected at the same time. It divides, since
// a quotient such as 7/100 equals the share 0.07 exactly; a product may be slightly off.
func fits(ejected, n int, share float64) bool {
	return ejected < n && float64(ejected)/float64(n) <= share
}

// breaker returns the rule for a single endpoint.
func (r Rule) breaker() breaker.Rule {
	return breaker.Rule{
		ID: r.ID, Resource: r.Resource, Match: r.Match, Exclude: r.Exclude, Mode: r.Mode,
		Strategy: r.Strategy, Threshold: r.Threshold, SlowRT: r.SlowRT,
		MinCalls: r.MinCalls, Interval: r.Interval, Buckets: r.Buckets,
		Recovery: r.Recovery, Probes: r.Probes, ProbeTimeout: r.ProbeTimeout,
	}
}

// Like identifies a rule by the fields that make it that rule, so that a rule with an edited
// threshold is still the same.
func (r Rule) Like() string {
	id := []string{"outlier", r.Resource}
	if r.Strategy != breaker.ErrorRatio {
		id = append(id, r.Strategy.String())
	}
	return strings.Join(id, ":")
}
