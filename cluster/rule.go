package cluster

import (
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/stat"
)

// Rule describes how a cluster shares a rule's limit. With the zero value the limit applies to this
// process only. In a rule file it is
//
//	cluster: {scope: global, onFailure: local, timeout: 20ms}
//
// All fields are optional; `cluster: {}` is a global limit.
type Rule struct {
	// Scope determines which members share the limit. The zero value is None.
	Scope Scope `yaml:"scope,omitempty"`
	// OnFailure decides calls while the store is unreachable. The zero value is Local.
	OnFailure OnFailure `yaml:"onFailure,omitempty"`
	// Timeout is the maximum time that a call waits for the store, for all its rules together: 1 ms
	// to 1 s; 0 means 20 ms.
	Timeout time.Duration `yaml:"timeout,omitempty"`
}

// Buckets is the default number of buckets of a shared window.
const Buckets = 10

// The range of Rule.Timeout.
const (
	DefaultTimeout = 20 * time.Millisecond
	MinTimeout     = time.Millisecond
	MaxTimeout     = time.Second
)

// Shared reports whether the cluster shares the limit.
func (r Rule) Shared() bool { return r.Scope != None }

// Begin is called before the fields of a file are read: a mapping without a scope means global.
func (r *Rule) Begin() { r.Scope = Global }

// Check returns an error for the first invalid field, a [spec.FieldError] for the rule with that
// ID.
func (r Rule) Check(id string) error {
	switch {
	case !scopeNames.Has(r.Scope):
		return spec.BadField("cluster.scope", "%d is unknown: use cluster.Global or cluster.PerMember", r.Scope)
	case !onFailureNames.Has(r.OnFailure):
		return spec.BadField("cluster.onFailure", "%d is unknown: use cluster.Local, cluster.Open or cluster.Closed", r.OnFailure)
	case !r.Shared() && r != Rule{}:
		return spec.BadField("cluster.scope", "is none, so onFailure and timeout have no effect: remove them, or set scope to global or perMember")
	case !r.Shared():
		return nil
	case id == "":
		return spec.BadField("id", "is required by cluster: it identifies the rule on all members")
	case r.Timeout != 0:
		return spec.CheckDuration("cluster.timeout", r.Timeout, MinTimeout, MaxTimeout)
	}
	return nil
}

// CheckWindow returns an error if members can't share a window of that shape and threshold, as a
// [spec.FieldError]. The rule has passed Check.
func (r Rule) CheckWindow(shape stat.Shape, threshold float64) error {
	least := 4 * r.Normalized().Timeout
	switch width := shape.Width(); {
	case width < least:
		return spec.BadField("buckets", "last %v each, but in a cluster must last at least %v, four times the timeout: use fewer, or a longer interval", width, least)
	case width%time.Microsecond != 0:
		return spec.BadField("buckets", "last %v each, but in a cluster must last whole microseconds: use an interval that divides evenly", width)
	}
	return r.CheckThreshold(threshold)
}

// CheckTurns returns an error if members can't share a throttle of threshold units per interval, as
// a [spec.FieldError]. The rule has passed Check.
func (r Rule) CheckTurns(threshold float64, interval time.Duration) error {
	if threshold <= 0 {
		return nil // no call passes
	}
	switch spacing := float64(interval) / threshold; {
	case spacing > float64(maxSpacing):
		return spec.BadField("threshold", "is %v per %v, but in a cluster calls must be at most %v apart: use a higher threshold, or a shorter interval", threshold, interval, maxSpacing)
	case spacing < float64(minSpacing):
		return spec.BadField("threshold", "is %v per %v, but in a cluster calls must be at least %v apart: use a lower threshold, or a longer interval", threshold, interval, minSpacing)
	}
	return r.CheckThreshold(threshold)
}

// Turns are spaced in whole nanoseconds: at the closest spacing the rate is right to one in a
// thousand.
const (
	minSpacing = time.Microsecond
	maxSpacing = 24 * time.Hour
)

// MaxThreshold is the highest limit that members can share.
const MaxThreshold = 1 << 30

// CheckThreshold returns an error if members can't share a limit, as a [spec.FieldError].
func (r Rule) CheckThreshold(threshold float64) error {
	if threshold > MaxThreshold {
		return spec.BadField("threshold", "is %v, but in a cluster must be at most %d: use a lower one, or count in larger units", threshold, MaxThreshold)
	}
	return nil
}

// Normalized returns the rule with its defaults filled in.
func (r Rule) Normalized() Rule {
	if r.Shared() && r.Timeout == 0 {
		r.Timeout = DefaultTimeout
	}
	return r
}

// Scope determines which members share a limit.
type Scope uint8

// The scopes.
const (
	None      Scope = iota // not shared: each process has its own limit
	Global                 // one limit for all members together
	PerMember              // one limit for all members together, multiplied by their number
)

var scopeNames = shown.NewEnum[Scope]("scope", "none", "global", "perMember")

// String returns the name used in rule files.
func (s Scope) String() string { return scopeNames.Name(s) }

// MarshalText writes the name used in rule files.
func (s Scope) MarshalText() ([]byte, error) { return scopeNames.Marshal(s) }

// UnmarshalText reads the name used in rule files.
func (s *Scope) UnmarshalText(text []byte) error { return scopeNames.Parse(text, s) }

// OnFailure decides calls while the store is unreachable.
type OnFailure uint8

// The values of OnFailure.
const (
	Local  OnFailure = iota // each member has its share: the limit divided by the number of members
	Open                    // all calls pass
	Closed                  // only calls with a valid lease pass
)

var onFailureNames = shown.NewEnum[OnFailure]("onFailure", "local", "open", "closed")

// String returns the name used in rule files.
func (f OnFailure) String() string { return onFailureNames.Name(f) }

// MarshalText writes the name used in rule files.
func (f OnFailure) MarshalText() ([]byte, error) { return onFailureNames.Marshal(f) }

// UnmarshalText reads the name used in rule files.
func (f *OnFailure) UnmarshalText(text []byte) error { return onFailureNames.Parse(text, f) }
