package core

import (
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/shown"
)

// Kind is a family of rules.
type Kind uint8

// The families, in the order of the chain.
const (
	KindNone Kind = iota
	KindAuthority
	KindSystem
	KindHotspot
	KindFlow
	KindIsolation
	KindAdaptive
	KindBreaker
	KindOutlier
	KindCustom // no family: a slot of the user's own
)

var kindNames = shown.NewEnum[Kind]("kind", "none", "authority", "system", "hotspot", "flow", "isolation", "adaptive", "breaker", "outlier", "custom")

// String returns the family's name, as in rule files.
func (k Kind) String() string { return kindNames.Name(k) }

// MarshalText writes the family's name, as in rule files.
func (k Kind) MarshalText() ([]byte, error) { return kindNames.Marshal(k) }

// UnmarshalText reads the family's name, as in rule files.
func (k *Kind) UnmarshalText(text []byte) error { return kindNames.Parse(text, k) }

// ErrBlocked matches every refusal: errors.Is(err, ErrBlocked).
var ErrBlocked = errors.New("penstock: blocked")

// ErrInvalid refuses a call that names no resource, has a name of more
// than pattern.MaxName bytes or takes too many units: errors.Is(err, ErrInvalid). It is
// counted nowhere.
var ErrInvalid = errors.New("penstock: invalid call")

// ErrDraining is in the error of a call that waited for a rule, or would have had to, when the engine
// drained: errors.Is(err, ErrDraining). See api.Guard.Drain.
var ErrDraining = errors.New("no call waits any longer, as the server is closing")

// BlockError says which rule refused a call. There is one for each rule and resource, made with the
// rule and, where a rule limits values or callers one by one, one for each of them that was refused.
// So refusing allocates nothing, and an error says nothing about a particular call.
type BlockError struct {
	Kind     Kind           // the family of the rule
	Resource string         // what the call asked for
	Rule     string         // the rule's ID; of KindCustom, the reason given
	Origin   string         // of a flow rule, as in the rule: whose calls it is about; otherwise ""
	Value    argument.Value // of a hotspot rule, the value that was refused; otherwise none

	// Status is the HTTP status that a slot of the user's own has chosen, see RefuseWith of
	// slots.Call; 0 for none.
	Status int

	rule Refuser // nil if there is nothing more to know
}

// Refuser is the rule behind a refusal, which is asked when a caller wants to know more; see the
// methods of the same names on [BlockError]. It is safe for concurrent use.
type Refuser interface {
	RetryAfter() (wait time.Duration, known bool)
	Limit() (limit float64, known bool)
}

// NewBlockError returns the refusal that b describes, of a rule that may be nil.
func NewBlockError(b BlockError, rule Refuser) *BlockError {
	b.rule = rule
	return &b
}

// Refuser is the rule that NewBlockError was given. It is nil in an error made by hand.
func (e *BlockError) Refuser() Refuser { return e.rule }

// Error names the rule and the resource.
func (e *BlockError) Error() string {
	if e.Kind == KindCustom {
		return fmt.Sprintf("penstock: blocked %q: %s", e.Resource, e.Rule)
	}
	return fmt.Sprintf("penstock: %s rule %q blocked %q", e.Kind, e.Rule, e.Resource)
}

// Is makes errors.Is(err, ErrBlocked) true.
func (e *BlockError) Is(target error) bool { return target == ErrBlocked }

// RetryAfter is how long it takes from now until the rule would admit one unit, if no other call
// comes first. It is known where that depends on time alone, not on calls that complete, and where
// waiting helps at all. Other rules may still refuse the call then.
func (e *BlockError) RetryAfter() (wait time.Duration, known bool) {
	if e.rule == nil {
		return 0, false
	}
	if wait, known = e.rule.RetryAfter(); !known {
		return 0, false
	}
	return max(0, wait), true
}

// RetryAfterIn is RetryAfter in the form that headers use: in whole units of time, rounded up, and
// at least 1; unit must be above 0. A caller that was refused a moment ago is not told to come back immediately, even if
// there is room by now.
func (e *BlockError) RetryAfterIn(unit time.Duration) (units int64, known bool) {
	wait, known := e.RetryAfter()
	if !known {
		return 0, false
	}
	units = int64(wait / unit)
	if wait%unit != 0 {
		units++
	}
	return max(1, units), true
}

// Limit is what the rule allows at the moment: units per interval or concurrently, depending on its
// threshold. It is not known where the rule has none, as with breakers.
func (e *BlockError) Limit() (limit float64, known bool) {
	if e.rule == nil {
		return 0, false
	}
	if limit, known = e.rule.Limit(); !known {
		return 0, false
	}
	return limit, true
}

// KindOf is the family of the rule that refused a call, KindCustom if a user's own slot did,
// KindNone if err is not a refusal.
func KindOf(err error) Kind {
	if b, ok := errors.AsType[*BlockError](err); ok {
		return b.Kind
	}
	return KindNone
}
