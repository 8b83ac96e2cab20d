package cluster

import (
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/stat"
)

// Rule says how a cluster shares the limit of a rule. The zero value keeps the limit to this
// process. In a rule file it is
//
//	cluster: {scope: global, onFailure: local, timeout: 20ms}
//
// where each may be left out; `cluster: {}` is a global limit.
type Rule struct {
	// Scope says whether the cluster shares the limit, and how. The zero value is None.
	Scope Scope `yaml:"scope,omitempty"`
	// OnFailure is what happens to calls while the store is away. The zero value is Local.
	OnFailure OnFailure `yaml:"onFailure,omitempty"`
	// Timeout is the longest that a call waits for the store in total, however many rules it
	// lacks something for. 1 ms to 1 s; 0 means 20 ms.
	Timeout time.Duration `yaml:"timeout,omitempty"`
}

// Buckets is how many buckets a shared window has unless its rule says otherwise.
const Buckets = 10

// The ranges of Rule.Timeout.
const (
	DefaultTimeout = 20 * time.Millisecond
	MinTimeout     = time.Millisecond
	MaxTimeout     = time.Second
)

// Shared reports whether the cluster shares the limit.
func (r Rule) Shared() bool { return r.Scope != None }

// Begin is called before the fields of a file are read: a mapping without a scope is global.
func (r *Rule) Begin() { r.Scope = Global }

// Check returns the first field that can't be honoured, as a [spec.FieldError] for a rule with that
// ID.
func (r Rule) Check(id string) error {
	switch {
	case !scopeNames.Has(r.Scope):
		return spec.BadField("cluster.scope", "%d is unknown: use cluster.Global or cluster.PerMember", r.Scope)
	case !onFailureNames.Has(r.OnFailure):
		return spec.BadField("cluster.onFailure", "%d is unknown: use cluster.Local, cluster.Open or cluster.Closed", r.OnFailure)
	case !r.Shared() && r != Rule{}:
		return spec.BadField("cluster.scope", "is none, under which onFailure and timeout have no meaning: remove them, or set scope to global or perMember")
	case !r.Shared():
		return nil
	case id == "":
		return spec.BadField("id", "is required by cluster: every member must call the rule the same")
	case r.Timeout != 0:
		return spec.CheckDuration("cluster.timeout", r.Timeout, MinTimeout, MaxTimeout)
	}
	return nil
}

// CheckWindow returns why members can't share a window of that shape under a threshold, as a
// [spec.FieldError]. The rule has passed Check.
func (r Rule) CheckWindow(shape stat.Shape, threshold float64) error {
	least := 4 * r.Normalized().Timeout
	switch width := shape.Width(); {
	case width < least:
		return spec.BadField("buckets", "are of %v each: those of a limit that a cluster shares last at least %v, four times the longest wait for the store; use fewer, or a longer interval", width, least)
	case width%time.Microsecond != 0:
		return spec.BadField("buckets", "are of %v each: those of a limit that a cluster shares last whole microseconds; use an interval that divides into such", width)
	}
	return r.CheckThreshold(threshold)
}

// CheckTurns returns why members can't share a throttle that lets threshold units pass per interval, as a
// [spec.FieldError]. The rule has passed Check.
func (r Rule) CheckTurns(threshold float64, interval time.Duration) error {
	if threshold <= 0 {
		return nil // none passes
	}
	switch spacing := float64(interval) / threshold; {
	case spacing > float64(maxSpacing):
		return spec.BadField("threshold", "is %v per %v: members share turns that are at most %v apart; use a higher threshold, or a shorter interval", threshold, interval, maxSpacing)
	case spacing < float64(minSpacing):
		return spec.BadField("threshold", "is %v per %v: members share turns that are at least %v apart; use a lower threshold, or a longer interval", threshold, interval, minSpacing)
	}
	return r.CheckThreshold(threshold)
}

// The spacing of turns is in whole nanoseconds: at the closest spacing the rate is still right to
// one in a thousand.
const (
	minSpacing = time.Microsecond
	maxSpacing = 24 * time.Hour
)

// MaxThreshold is the highest limit that members can share.
const MaxThreshold = 1 << 30

// CheckThreshold returns why members can't share a limit, as a [spec.FieldError].
func (r Rule) CheckThreshold(threshold float64) error {
	if threshold > MaxThreshold {
		return spec.BadField("threshold", "is %v: a cluster shares limits up to %d; use a lower one, or count in larger units", threshold, MaxThreshold)
	}
	return nil
}

// Normalized returns the rule with its defaults written out.
func (r Rule) Normalized() Rule {
	if r.Shared() && r.Timeout == 0 {
		r.Timeout = DefaultTimeout
	}
	return r
}

// Scope says who shares a limit.
type Scope uint8

// The scopes.
const (
	None      Scope = iota // not shared: only this process has it
	Global                 // all members together have it
	PerMember              // all members together have it as many times as there are members
)

var scopeNames = shown.NewEnum[Scope]("scope", "none", "global", "perMember")

// String returns the name used in rule files.
func (s Scope) String() string { return scopeNames.Name(s) }

// MarshalText writes the name used in rule files.
func (s Scope) MarshalText() ([]byte, error) { return scopeNames.Marshal(s) }

// UnmarshalText reads the name used in rule files.
func (s *Scope) UnmarshalText(text []byte) error { return scopeNames.Parse(text, s) }

// OnFailure is what happens to calls while the store is away.
type OnFailure uint8

// The ways to go on without the store.
const (
	Local  OnFailure = iota // each member has its share: the limit divided by the number of members
	Open                    // all pass
	Closed                  // only calls with a lease that is still good pass
)

var onFailureNames = shown.NewEnum[OnFailure]("onFailure", "local", "open", "closed")

// String returns the name used in rule files.
func (f OnFailure) String() string { return onFailureNames.Name(f) }

// MarshalText writes the name used in rule files.
func (f OnFailure) MarshalText() ([]byte, error) { return onFailureNames.Marshal(f) }

// UnmarshalText reads the name used in rule files.
func (f *OnFailure) UnmarshalText(text []byte) error { return onFailureNames.Parse(text, f) }
