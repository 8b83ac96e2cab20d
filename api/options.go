package api

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/internal/engine"
)

// Option is an option of one call, such as [Inbound]. Options are plain values: creating and
// passing them allocates nothing, except for values that [Args] boxes. The zero value changes
// nothing.
type Option = engine.Option

// Inbound marks a call that comes from outside: it counts towards the inbound root and is subject
// to system rules.
func Inbound() Option { return engine.Inbound() }

// InboundWithin is like [Inbound], but for servers that limit the time for a call's whole response:
// its waits end in time for that, counted from when the outermost call of that kind asked to enter.
// A call whose turn is known to be later is refused at once. left returns the limit, if known; it is
// called with the call's context before the call waits, and must be safe for concurrent use. An
// adapter should create the option once, since that allocates.
func InboundWithin(left func(context.Context) (time.Duration, bool)) Option {
	return engine.InboundWithin(left)
}

// Units sets the number of units that the call takes. 1 is the default, and anything below counts
// as 1. More than stat.MaxUnits (1,048,576) is refused with [ErrInvalid].
func Units(n int) Option { return engine.Units(n) }

// Cost estimates what the call takes of a unit in addition to itself, such as "tokens", "bytes" or
// "microUSD". Rules with that unit reserve it on entry, together with all other rules or not at all;
// rules without a unit count the call, or its [Units]. [Admitted.Settle] replaces the estimate by
// the consumption. Below 1 counts as 1, for a call that is charged afterwards; naming a unit twice
// adds up.
//
// A unit has up to 64 letters, digits, '.', '_' or '-'. A call with more than 8 units, or with more
// than 2^40 (1.1 trillion) of one, is refused with [ErrInvalid].
func Cost(unit string, n int64) Option { return engine.Cost(unit, n) }

// Prioritized lets the call borrow from an upcoming bucket, and wait until it begins, if a plain QPS
// rule would refuse it. In the queue of a throttle or an isolation rule, prioritized calls go first,
// but while ordinary calls of the same number of units wait, every second call that leaves the queue
// is an ordinary one. In a throttle, ordinary calls then wait for up to twice their announced wait
// plus the spacing between two calls, which may be longer than the rule's MaxWait.
func Prioritized() Option { return engine.Prioritized() }

// Criticality says how much it matters that the call is served, regardless of its context: under
// overload, rules with a shed order refuse [Sheddable] calls first; see docs/criticality.md. It is not
// passed on to nested calls. [Prioritized] calls, of any level, overtake others in a queue.
func Criticality(level Level) Option { return engine.Criticality(level) }

// LongLived marks a call whose duration says nothing about the health of the resource: a stream,
// say, or a wait for messages. The call counts when it enters, holds its units and permits until it
// exits, and may fail, like any other. But it has no response time: the mean and the minimum
// exclude it, and so do system rules for RT, breakers by slow calls and adaptive limits. Breakers
// by slow calls don't count it at all, but take a long-lived probe as a success. Its end costs a
// lock, so it is meant for infrequent calls.
func LongLived() Option { return engine.LongLived() }

// Retry marks the call as another attempt of one that failed, for upstream rules with retries, which
// refuse it with [ErrRetryBudget] while too many others are in flight. See [WithRetry].
func Retry() Option { return engine.Retry() }

// Args sets the arguments of the call, for rules on them: nil is no value, but "" is a value; see
// [Param]. They must not change before the call exits.
func Args(args ...any) Option { return engine.Args(args...) }

// Param attaches a named value to the call, for rules on it. A slice attaches each of its elements,
// as do several attachments of one name. For the equality of values, see argument.Value. nil is no
// value; "" is a value, shared by all calls that attach it, unless a rule sets Missing. Strings,
// booleans and numbers don't allocate.
func Param[T any](name string, value T) Option { return engine.Param(name, value) }

// Plan names the plan of the call's user or tenant, such as "free" or "pro", for hotspot rules with
// Plans: it sets the limits of the call's values, until a later call of a value names another plan
// or none. It should come from an authenticated source. "" names none.
func Plan(name string) Option { return engine.Plan(name) }

// Endpoint sets the server of the resource that the call goes to, such as an address, for outlier
// rules, which watch each endpoint. "" means none. Outlier rules ignore calls without an endpoint,
// and those whose endpoint has more than 512 bytes.
func Endpoint(addr string) Option { return engine.Endpoint(addr) }
