package breaker

import "github.com/penstock-go/penstock/internal/shown"

// Strategy decides what trips a breaker.
type Strategy uint8

// The strategies.
const (
	ErrorRatio Strategy = iota // the share of calls that fail
	ErrorCount                 // the number of calls that fail
	SlowRatio                  // the share of calls that take longer than SlowRT
	// ConsecutiveErrors is the number of calls that fail in a row, in the order in which they end.
	ConsecutiveErrors
)

var strategyNames = shown.NewEnum[Strategy]("strategy", "errorRatio", "errorCount", "slowRatio", "consecutiveErrors")

// String returns the name used in rule files.
func (s Strategy) String() string { return strategyNames.Name(s) }

// counts reports whether the threshold is a number of calls rather than a share.
func (s Strategy) counts() bool { return s == ErrorCount || s == ConsecutiveErrors }

// MarshalText writes the name used in rule files.
func (s Strategy) MarshalText() ([]byte, error) { return strategyNames.Marshal(s) }

// UnmarshalText reads the name used in rule files.
func (s *Strategy) UnmarshalText(text []byte) error { return strategyNames.Parse(text, s) }

// State decides what a breaker does with calls.
type State uint8

// The states.
const (
	Closed       State = iota // calls pass
	Open                      // calls are refused until the recovery time has elapsed
	HalfOpen                  // some calls pass as probes
	Recovering                // a rising share of the calls passes
	ForcedOpen                // all calls are refused
	ForcedClosed              // all calls pass, and none counts
	states
)

var stateNames = shown.NewEnum[State]("state", "closed", "open", "halfOpen", "recovering", "forcedOpen", "forcedClosed")

// String returns the state's name.
func (s State) String() string { return stateNames.Name(s) }

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return stateNames.Marshal(s) }

// UnmarshalText reads the state's name.
func (s *State) UnmarshalText(text []byte) error { return stateNames.Parse(text, s) }

// Legal reports whether a breaker can change from one state to another, by itself or by force. It
// never changes from a state to itself.
func Legal(from, to State) bool {
	switch {
	case from >= states || to >= states || from == to:
		return false
	case to == ForcedOpen || to == ForcedClosed:
		return true
	}
	switch from {
	case Closed:
		return to == Open
	case Open:
		return to == HalfOpen
	case HalfOpen:
		return to == Open || to == Recovering || to == Closed
	case Recovering:
		return to == Open || to == Closed
	case ForcedOpen:
		return to == Open
	}
	return to == Closed // from ForcedClosed
}

// Force overrides a breaker by hand.
type Force uint8

// The ways to force a breaker.
const (
	NotForced   Force = iota // the breaker decides by itself
	ForceOpen                // refuse every call
	ForceClosed              // admit every call
)

var forceNames = shown.NewEnum[Force]("force", "notForced", "forceOpen", "forceClosed")

// String returns the name.
func (f Force) String() string { return forceNames.Name(f) }

// MarshalText writes the name.
func (f Force) MarshalText() ([]byte, error) { return forceNames.Marshal(f) }

// UnmarshalText reads the name.
func (f *Force) UnmarshalText(text []byte) error { return forceNames.Parse(text, f) }
