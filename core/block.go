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
	KindUpstream
	KindOutlier
	KindCustom // a custom slot, which is in no family
)

var kindNames = shown.NewEnum[Kind]("kind", "none", "authority", "system", "hotspot", "flow", "isolation", "adaptive", "breaker", "upstream", "outlier", "custom")

// String returns the family's name, as in rule files.
func (k Kind) String() string { return kindNames.Name(k) }

// MarshalText writes the family's name, as in rule files.
func (k Kind) MarshalText() ([]byte, error) { return kindNames.Marshal(k) }

// UnmarshalText reads the family's name, as in rule files.
func (k *Kind) UnmarshalText(text []byte) error { return kindNames.Parse(text, k) }

// ErrBlocked matches every rejection: errors.Is(err, ErrBlocked).
var ErrBlocked = errors.New("penstock: blocked")

// ErrInvalid matches the rejection of a call that names no resource, has a name of more than
// pattern.MaxName bytes or takes too many units: errors.Is(err, ErrInvalid). Such calls are not
// counted.
var ErrInvalid = errors.New("penstock: invalid call")

// ErrExited matches the error of a call that asks for more units, although it has exited or has
// settled them: errors.Is(err, ErrExited). See api.Admitted.
var ErrExited = errors.New("penstock: the call has exited, or has settled the unit")

// ErrDraining matches the error of a call that waited for a rule, or would have to wait, when the
// engine drained: errors.Is(err, ErrDraining). See api.Guard.Drain.
var ErrDraining = errors.New("the server is draining: calls no longer wait")

// ErrRetryBudget matches the rejection of a retry while too many others are in flight:
// errors.Is(err, ErrRetryBudget). Further retries of the call only take the place of others': give
// up. See the retries of upstream rules.
var ErrRetryBudget = errors.New("penstock: too many retries in flight")

// BlockError names the rule that rejected a call. There is one for each rule and resource (or one for
// the rule, if it counts all its resources together), made with the rule, and one for each rejected value or caller if a rule limits them individually. So a
// rejection allocates nothing, and an error contains nothing about a particular call.
type BlockError struct {
	Kind     Kind           // the family of the rule
	Resource string         // resource of the call, or the pattern of a rule that counts all its resources together
	Rule     string         // the rule's ID; for KindCustom, the reason passed to Refuse
	Origin   string         // for a flow rule, its origin as declared; otherwise ""
	Value    argument.Value // for a hotspot rule, the rejected value, or a key with Parts; otherwise none
	Shed     string         // level of the call, if it was shed to leave room for higher levels; otherwise ""

	// Status is the HTTP status chosen by the rule, or by a custom slot (see RefuseWith of
	// slots.Call); 0 for none. Body is the body that the rule chose; empty for none.
	Status int
	Body   string

	rule Refuser // nil if there are no more details
}

// Refuser is the rule behind a rejection. [BlockError] has methods of the same names that call it.
// It is safe for concurrent use.
type Refuser interface {
	RetryAfter() (wait time.Duration, known bool)
	Limit() (limit float64, known bool)
}

// NewBlockError returns the rejection that b describes, by a rule that may be nil.
func NewBlockError(b BlockError, rule Refuser) *BlockError {
	b.rule = rule
	return &b
}

// Refuser returns the rule passed to NewBlockError. It is nil in an error made by hand.
func (e *BlockError) Refuser() Refuser { return e.rule }

// Error names the rule and the resource.
func (e *BlockError) Error() string {
	if e.Kind == KindCustom {
		return fmt.Sprintf("penstock: blocked %q: %s", e.Resource, e.Rule)
	}
	text := fmt.Sprintf("penstock: %s rule %q blocked %q", e.Kind, e.Rule, e.Resource)
	if e.Shed != "" {
		text += ", a " + e.Shed + " call, to leave room for others"
	}
	return text
}

// Is makes errors.Is(err, ErrBlocked) true, and errors.Is(err, ErrRetryBudget) for the rejections that
// it matches.
func (e *BlockError) Is(target error) bool {
	if target == ErrBlocked {
		return true
	}
	final, ok := e.rule.(interface{ SpendsRetries() bool })
	return ok && target == ErrRetryBudget && final.SpendsRetries()
}

// RetryAfter returns the time from now until the rule would admit one unit, if no other call is
// admitted first. It is known if waiting helps at all, and if the time doesn't depend on other
// calls completing. Other rules may still reject the call then.
func (e *BlockError) RetryAfter() (wait time.Duration, known bool) {
	if e.rule == nil {
		return 0, false
	}
	if wait, known = e.rule.RetryAfter(); !known {
		return 0, false
	}
	return max(0, wait), true
}

// RetryAfterIn is like RetryAfter, but in the form of HTTP headers: in whole units of time, rounded
// up, and at least 1, so that a rejected caller doesn't retry immediately even if there is room by
// now. unit must be above 0.
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

// Limit returns the rule's current limit: units per interval or concurrent units, depending on its
// threshold. It is not known for rules without a limit, such as breakers.
func (e *BlockError) Limit() (limit float64, known bool) {
	if e.rule == nil {
		return 0, false
	}
	if limit, known = e.rule.Limit(); !known {
		return 0, false
	}
	return limit, true
}

// Window returns the time to which a Limit applies. It is known for rules that limit units in time.
func (e *BlockError) Window() (window time.Duration, known bool) {
	if w, ok := e.rule.(interface{ Window() time.Duration }); ok {
		window = w.Window()
	}
	return window, window > 0
}

// KindOf returns the family of the rule that rejected a call, or KindCustom for a custom slot, or
// KindNone if err is not a rejection.
func KindOf(err error) Kind {
	if b, ok := errors.AsType[*BlockError](err); ok {
		return b.Kind
	}
	return KindNone
}
