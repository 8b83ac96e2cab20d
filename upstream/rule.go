package upstream

import (
	"cmp"
	"time"

	"github.com/penstock-go/penstock/core/spec"
)

// Rule limits what one resource of a client, or each resource that matches, is sent. At least one of
// Obey, Retries and Throttle is required:
//
//	upstream.Rule{Resource: "GET api.example.com", Obey: true}
//
// Equal rules are one rule; a rule that differs from an older one with the same ID takes over its
// pauses, its retries in flight and its counts.
type Rule struct {
	// ID names the rule in errors, logs and statistics, and links it to its predecessor on a
	// reload. If empty, it is derived from the other fields.
	ID string `yaml:"id,omitempty"`
	// Resource is the name passed to api.Entry, or a pattern; see Match. Required. "*" applies to
	// every resource that no other enforced upstream rule applies to, those of servers included.
	// Each resource has its own retries and throttle.
	Resource string `yaml:"resource"`
	// Match determines how Resource names resources. The zero value is api.MatchExact. api.MatchPrefix
	// matches all names that begin with the text before the star at the end of Resource, as in "GET
	// api.*". api.MatchPath compares the parts between slashes, where a star matches any part, as in
	// "/shop.Orders/*". A rule of these two kinds applies to a name only if no enforced upstream rule
	// matches it more specifically. api.MatchRegex is a regular expression (RE2) that must match the
	// whole name, where a dot matches every character; it applies to every name that it matches.
	Match spec.Match `yaml:"match,omitempty"`
	// Exclude lists names that "*", a prefix or a path does not apply to.
	Exclude []string `yaml:"exclude,omitempty"`
	// Obey pauses after an answer that says when to come back, for the whole process: Retry-After or
	// a RateLimit field with r=0 and t, with status 429 or 503, or gRPC's RetryInfo. Switching it off
	// ends all pauses.
	Obey bool `yaml:"obey,omitempty"`
	// Scope decides which calls an answer pauses. The zero value is PerResource. Needs Obey.
	Scope Scope `yaml:"scope,omitempty"`
	// MaxPause bounds the pause that an answer may ask for, from 1 s to 24 h; 0 means 5 minutes. It
	// applies to later answers. Needs Obey.
	MaxPause time.Duration `yaml:"maxPause,omitempty"`
	// Retries bounds the retries in flight. The zero value doesn't.
	Retries Retries `yaml:"retries,omitempty"`
	// Throttle refuses calls of a server that accepts few. The zero value refuses none.
	Throttle Throttle `yaml:"throttle,omitempty"`
	// Mode determines whether the rule is enforced. The zero value is api.Enforce.
	Mode spec.Mode `yaml:"mode,omitempty"`
}

// Retries admits a retry while no more than the greater of Least and Share · calls in flight are in
// flight, itself included. Calls are retries if api.Retry or api.WithRetry says so. In a rule file,
// the defaults are
//
//	retries: {}
type Retries struct {
	// Share of the calls in flight, above 0 and up to 1; 0 means 0.2.
	Share float64 `yaml:"share,omitempty"`
	// Least is the number of retries that is always admitted, from 1 to 1,000,000; 0 means 3.
	Least int `yaml:"least,omitempty"`
}

// Throttle refuses calls with probability (requests - K·accepts) / (requests + 1); see the package's
// documentation. In a rule file, the defaults are
//
//	throttle: {}
type Throttle struct {
	// K is the number of requests for each accepted one up to which none is refused, from 1 to 100;
	// 0 means 2. More sends more to a server that refuses, and notices sooner that it recovers.
	K float64 `yaml:"k,omitempty"`
	// Interval is the period over which calls count, from 1 s to an hour; 0 means 2 minutes.
	Interval time.Duration `yaml:"interval,omitempty"`
}

// The defaults and ranges of a rule's fields.
const (
	DefaultMaxPause = 5 * time.Minute
	DefaultShare    = 0.2
	DefaultLeast    = 3
	DefaultK        = 2
	DefaultInterval = 2 * time.Minute

	MinMaxPause = time.Second
	MaxMaxPause = 24 * time.Hour
	MaxLeast    = 1_000_000
	MaxK        = 100
	MinInterval = time.Second
	MaxInterval = time.Hour
)

// Begin is called before the fields of a file are read: a mapping without fields has the defaults.
func (r *Retries) Begin() { *r = Retries{DefaultShare, DefaultLeast} }

// Begin is called before the fields of a file are read: a mapping without fields has the defaults.
func (t *Throttle) Begin() { *t = Throttle{DefaultK, DefaultInterval} }

func (r Retries) given() bool  { return r != Retries{} }
func (t Throttle) given() bool { return t != Throttle{} }

// Normalized returns the rule with every default filled in. It returns a [spec.FieldError] for the
// first invalid field.
func (r Rule) Normalized() (Rule, error) {
	r.Exclude = spec.Names(r.Exclude)
	if r.Obey {
		r.MaxPause = cmp.Or(r.MaxPause, DefaultMaxPause)
	}
	if r.Retries.given() {
		r.Retries.Share = cmp.Or(r.Retries.Share, DefaultShare)
		r.Retries.Least = cmp.Or(r.Retries.Least, DefaultLeast)
	}
	if r.Throttle.given() {
		r.Throttle.K = cmp.Or(r.Throttle.K, DefaultK)
		r.Throttle.Interval = cmp.Or(r.Throttle.Interval, DefaultInterval)
	}
	if err := cmp.Or(r.checkNames(), r.checkObey(), r.checkRetries(), r.checkThrottle()); err != nil {
		return r, err
	}
	r.ID = cmp.Or(r.ID, r.Like())
	return r, nil
}

func (r Rule) checkNames() error {
	if r.Resource == "" {
		return spec.BadField("resource", `is required: name the resource of a client, as in "GET api.example.com", or use "*" for all`)
	}
	if err := r.Info().Check(); err != nil {
		return err
	}
	if !r.Obey && !r.Retries.given() && !r.Throttle.given() {
		return spec.BadField("obey", "is false, and the rule has neither retries nor throttle, so it does nothing: set one of them")
	}
	return nil
}

func (r Rule) checkObey() error {
	switch {
	case !scopeNames.Has(r.Scope):
		return spec.BadField("scope", "%d is unknown: use upstream.PerResource or upstream.PerHost", r.Scope)
	case r.Obey:
		return spec.CheckDuration("maxPause", r.MaxPause, MinMaxPause, MaxMaxPause)
	case r.Scope != PerResource:
		return spec.BadField("scope", "has no meaning without obey: set obey to true, or remove scope")
	case r.MaxPause != 0:
		return spec.BadField("maxPause", "has no meaning without obey: set obey to true, or remove maxPause")
	}
	return nil
}

func (r Rule) checkRetries() error {
	switch x := r.Retries; {
	case !x.given():
	case !(x.Share > 0) || x.Share > 1:
		return spec.BadField("retries.share", "is %v: use a share of the calls in flight above 0, up to 1, as in 0.2", x.Share)
	case x.Least < 1 || x.Least > MaxLeast:
		return spec.BadField("retries.least", "is %d: use a whole number from 1 to %d", x.Least, MaxLeast)
	}
	return nil
}

func (r Rule) checkThrottle() error {
	x := r.Throttle
	if !x.given() {
		return nil
	}
	if !(x.K >= 1) || x.K > MaxK {
		return spec.BadField("throttle.k", "is %v: use a number from 1 to %d, as in 2", x.K, MaxK)
	}
	if err := spec.CheckDuration("throttle.interval", x.Interval, MinInterval, MaxInterval); err != nil {
		return err
	}
	if x.Interval%throttleBuckets != 0 {
		return spec.BadField("throttle.interval", "is %v: use a multiple of %d ns", x.Interval, throttleBuckets)
	}
	return nil
}

// Like identifies a rule by the fields that make it that rule, so that a rule with an edited share is
// still the same.
func (r Rule) Like() string { return "upstream:" + r.Resource }
