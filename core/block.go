package core

import (
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
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
	kinds
)

var kindNames = []string{"none", "authority", "system", "hotspot", "flow", "isolation", "adaptive", "breaker", "outlier"}

// String returns the family's name, as in rule files.
func (k Kind) String() string { return EnumName("kind", kindNames, uint8(k)) }

// ErrBlocked is what every refusal is: errors.Is(err, ErrBlocked).
var ErrBlocked = errors.New("penstock: blocked")

// ErrInvalid is what a call is refused with that names no resource or takes too
// many units: errors.Is(err, ErrInvalid). It is counted nowhere.
var ErrInvalid = errors.New("penstock: invalid call")

// BlockError says which rule refused a call. There is one for each rule and
// resource, made when the rule is, so refusing allocates nothing.
type BlockError struct {
	Kind     Kind   // the family of the rule
	Resource string // what the call asked for
	Rule     string // the rule's ID

	retry    Retrier
	refusals *refusals
}

// refusals is how often a rule refused, and how far the block log has told it.
type refusals struct {
	total   stat.Tally
	told    shared.Int64 // of total
	nextLog shared.Int64
}

// Retrier knows when a refused call may come again. It is asked when a caller
// wants to know.
type Retrier interface {
	RetryAfter() time.Duration
}

// NewBlockError returns the refusal of a rule. retry may be nil.
func NewBlockError(kind Kind, resource, rule string, retry Retrier) *BlockError {
	return &BlockError{Kind: kind, Resource: resource, Rule: rule, retry: retry, refusals: new(refusals)}
}

// Apart returns the refusal for some of the calls that e is for, which knows by itself
// when those may come again. The two count together.
func (e *BlockError) Apart(retry Retrier) *BlockError {
	apart := *e
	apart.retry = retry
	return &apart
}

// Succeed makes e count on where old, the refusal of the same rule before it was
// changed, left off. It must come before e is used.
func (e *BlockError) Succeed(old *BlockError) { e.refusals = old.refusals }

// Error names the rule and the resource.
func (e *BlockError) Error() string {
	return fmt.Sprintf("penstock: %s rule %q blocked %q", e.Kind, e.Rule, e.Resource)
}

// Is makes errors.Is(err, ErrBlocked) true.
func (e *BlockError) Is(target error) bool { return target == ErrBlocked }

// RetryAfter is how long from now until the rule would admit one unit, as far as
// it can tell; 0 if it can't.
func (e *BlockError) RetryAfter() time.Duration {
	if e.retry == nil {
		return 0
	}
	return max(0, e.retry.RetryAfter())
}

// logPause is the time between two lines of the block log about one rule and
// resource.
const logPause = int64(time.Second)

// Note counts a refusal for the block log. When a line is due, at most once a
// second, it returns how many there were since the last one.
func (e *BlockError) Note(lane uint32, now int64) (refusals int64, due bool) {
	r := e.refusals
	r.total.Add(lane, 1)
	next := r.nextLog.Load()
	if next != 0 && now < next || !r.nextLog.CompareAndSwap(next, now+logPause) {
		return 0, false
	}
	return e.Unlogged(), true
}

// Unlogged returns the refusals that no line has told yet, which are told now.
func (e *BlockError) Unlogged() int64 {
	for r := e.refusals; ; {
		total, told := r.total.Load(), r.told.Load()
		if total <= told { // less if somebody tells what came since
			return 0
		}
		if r.told.CompareAndSwap(told, total) {
			return total - told
		}
	}
}

// Refusals is how many calls the rule has refused here since it was loaded first.
// It never decreases.
func (e *BlockError) Refusals() int64 { return e.refusals.total.Load() }

// KindOf is the family of the rule that refused a call, KindNone if err is no
// refusal.
func KindOf(err error) Kind {
	if b, ok := errors.AsType[*BlockError](err); ok {
		return b.Kind
	}
	return KindNone
}

// abandoned is the end of a call whose context ended while it waited for a rule.
type abandoned struct {
	*BlockError
	cause error
}

func (e *abandoned) Error() string {
	return fmt.Sprintf("penstock: gave up waiting for %s rule %q on %q: %v", e.Kind, e.Rule, e.Resource, e.cause)
}

// Unwrap makes both the refusal and the context's error known to errors.Is and
// errors.As.
func (e *abandoned) Unwrap() []error { return []error{e.BlockError, e.cause} }
