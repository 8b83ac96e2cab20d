package core

import "time"

// RuleFigures is what a rule has done since it was loaded, over all resources.
type RuleFigures struct {
	Kind     Kind
	ID       string
	Resource string // as in the rule: a name or a pattern
	Mode     Mode
	Refused  int64 // calls
	// Rehearsed is the calls that a shadow rule would have refused.
	Rehearsed int64

	// Threshold is what holds at the moment, of a rule whose threshold moves with the
	// memory in use, and Memory what that was when it was sampled last: a share, or bytes
	// if the rule has its marks in bytes; [Unknown] if it can't be read. Of other rules both are 0.
	Threshold float64
	Memory    float64

	// The rest is of rules that tell values apart: how many they know at the moment,
	// the units of all of them in flight where the rule limits those, how often a value
	// found no place among them and was judged together with others, and those that are
	// asked for most, the most first.
	Values     int
	InFlight   int64
	Overflowed int64
	Top        []ValueFigures

	// Limits are what a rule that learns its limit has learned, by resource.
	Limits []LimitFigures

	// Breakers are those of a breaker rule, one for each resource that needed one; and
	// those of an outlier rule whose callee is ejected. They are sorted by resource and
	// callee.
	Breakers []BreakerFigures
}

// BreakerFigures is what a breaker does at the moment.
type BreakerFigures struct {
	Rule     string // its ID
	Resource string
	Callee   string // "" where it is that of the whole resource
	State    string // as in rule files and listeners: closed, open, halfOpen and so on
	Mode     Mode
	Since    time.Time // when the state began; zero if it never was another
	RetryAt  time.Time // when the next call is let in; zero if that can't be told
	// Calls that completed in the last interval and count, and those of them that failed
	// or were slow.
	Calls, Bad int64
	Probes     int // that are out and waited for
}

// LimitFigures is what a rule has learned of one resource.
type LimitFigures struct {
	Resource string
	Limit    int64 // the learned one, in units
	// InForce is the limit at the moment, which is moved up and down around Limit to see
	// what that does; 0 if the rule limits nobody, being in shadow mode.
	InForce int64
	// FloorRT is how long a call takes when fewer are in flight than the limit, and
	// LimitRT when there are more; 0 as long as that isn't known.
	FloorRT, LimitRT time.Duration
	Throughput       float64 // units completed a second when it looked last
}

// ValueFigures is what a rule has done with one value of a resource since it got to know
// it.
type ValueFigures struct {
	Resource string
	Value    string // as [Value.String] shows it
	Passed   int64  // calls
	Refused  int64
	InFlight int64 // units, where the rule limits those
}

// RuleFigures are the figures of every rule, family by family, in the order in
// which they were declared.
func (s *Ruleset) RuleFigures() []RuleFigures {
	var figures []RuleFigures
	for _, family := range s.families {
		if family != nil {
			figures = append(figures, family.Figures()...)
		}
	}
	return figures
}
