package api

import (
	"time"

	"github.com/penstock-go/penstock/internal/engine"
)

// Ignore marks an error, such as "not found", as a success of the guarded code: [Admitted.Fail]
// does nothing for it or for an error that wraps it, and breakers count the call as a success.
// Otherwise the error is unchanged. Ignore(nil) is nil.
func Ignore(err error) error { return engine.Ignore(err) }

// Certain marks an error that is already known to be a failure, for example because a function that
// a user passed to an adapter says so, or because it stands for a panic: [Admitted.Fail] doesn't ask
// whether the call was cancelled. [Guard.FailWhen] and [Config].Failure are asked about err itself,
// as usual. Pass it to Fail as it is: wrapped in another error it isn't recognized. Certain(nil) is
// nil.
func Certain(err error) error { return engine.Certain(err) }

// Overloaded marks an error that comes from a server with too much to do, as HTTP says it by 429 or
// 503, or that stands for no answer at all. Upstream rules learn from it as soon as [Admitted.Fail]
// gets it: the call doesn't count as accepted by the server, and if retryAfter is above 0, rules with
// obey pause for that long, unless that is more than 366 days. The mark doesn't change whether the
// call failed, which err alone decides: see [Ignore]. Timeouts need no mark, and a refusal by a rule
// is never one, even if marked. The adapters of clients mark their errors by themselves.
// Overloaded(nil, ...) is nil.
//
//	e.Fail(api.Overloaded(err, 30*time.Second))
func Overloaded(err error, retryAfter time.Duration) error {
	return engine.Overloaded(err, retryAfter)
}

// FailWhen sets which errors of a resource of the default Guard are failures; see [Guard.FailWhen].
func FailWhen(resource string, failed func(error) bool) { Default().FailWhen(resource, failed) }

// FailWhen replaces [Config].Failure for the resource of exactly this name: errors for which failed
// returns true are failures. Any other error counts as a success. The function decides alone: it is
// also asked about calls that their callers cancelled, and breakers then count them. To exclude
// errors, mark them by [Ignore] instead. nil undoes an earlier call.
//
// It applies to errors that are reported from now on, regardless of the rules, and even if the
// resource doesn't exist yet. Like Config.Failure it is not asked about refusals, errors marked by
// [Ignore] and panics, and must be safe for concurrent use; an error that makes it panic is a
// failure.
func (g *Guard) FailWhen(resource string, failed func(error) bool) {
	g.engine.FailWhen(resource, failed)
}
