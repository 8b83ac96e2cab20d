package api

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/internal/engine"
)

// Option says something about one call, as [Inbound] does. Options are plain values: making and
// passing them allocates nothing, except for what [Args] boxes. The zero value changes nothing.
type Option = engine.Option

// Inbound marks a call that comes from outside: it counts towards the inbound root and is subject
// to system rules.
func Inbound() Option { return engine.Inbound() }

// InboundWithin is [Inbound] for servers that leave a call only so long for all of its answer: its waits end
// in time for that, counted from when the outermost call of that kind asked to enter. A call whose turn
// is known to come later is refused at once. left says how long, if that is known; it is asked when the
// call would wait, with its context, and must be safe for concurrent use. An adapter makes the option once,
// since that allocates.
func InboundWithin(left func(context.Context) (time.Duration, bool)) Option {
	return engine.InboundWithin(left)
}

// Units says how many units the call takes. 1 is the default, and anything below counts as 1. More
// than stat.MaxUnits (1,048,576) is refused with [ErrInvalid].
func Units(n int) Option { return engine.Units(n) }

// Prioritized lets the call borrow from a coming bucket, and wait until it
// begins, where a plain QPS rule would refuse it. Where a throttle or an isolation rule makes calls
// wait in a queue, prioritized calls go first, but while ordinary calls of as many units wait, every second
// call that leaves the queue is one of those. In a throttle, ordinary calls then wait for up to twice their
// announced wait plus the distance between two calls, which may be longer than the rule's MaxWait.
func Prioritized() Option { return engine.Prioritized() }

// LongLived says that how long the call takes says nothing about how well the resource does: it is
// a stream, say, or waits for messages. The call counts when it enters, holds what it was granted
// until it exits, and may fail, like any other. But it has no response time: the mean and the least
// leave it out, as do system rules for RT, breakers by slow calls and adaptive limits. Breakers by
// slow calls don't count it at all, and take it as good if it was a probe. Its end costs a lock, so
// it is meant for infrequent calls.
func LongLived() Option { return engine.LongLived() }

// Args are the arguments of the call, for rules that look at them: nil is no value, "" is
// one, see [Param]. They must not change before the call exits.
func Args(args ...any) Option { return engine.Args(args...) }

// Param attaches a value to the call under a name, for rules that look at it. A slice
// attaches each of its elements, as do several attachments of one name. For which values are equal,
// see argument.Value. nil is no value; "" is one, which all calls that attach it share, unless a
// rule says Missing. Strings, booleans and numbers allocate nothing.
func Param[T any](name string, value T) Option { return engine.Param(name, value) }

// Endpoint says which of the resource's servers the call goes to, such as an address, for outlier
// rules, which judge each of them. "" is none. A call without one is not judged, nor is one whose
// endpoint has more than 512 bytes.
func Endpoint(addr string) Option { return engine.Endpoint(addr) }
