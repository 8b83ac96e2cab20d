package api

import "github.com/penstock-go/penstock/internal/engine"

// Ignore marks an error, such as "not found", as an answer of the guarded code: [Admitted.Fail] does
// nothing for it or for an error that wraps it, and breakers take the call for one that went well.
// Otherwise the error is unchanged. Ignore(nil) is nil.
func Ignore(err error) error { return engine.Ignore(err) }

// Certain marks an error that was judged a failure already, by the function that a user gave an
// adapter, say, or because it stands for a panic: [Admitted.Fail] doesn't ask whether the call was
// cancelled. [Guard.FailWhen] and [Config].Failure are asked about err itself, as usual. Pass it to
// Fail as it is: within another error it isn't recognized. Certain(nil) is nil.
func Certain(err error) error { return engine.Certain(err) }

// FailWhen says which errors of a resource of the default Guard are failures; see
// [Guard.FailWhen].
func FailWhen(resource string, failed func(error) bool) { Default().FailWhen(resource, failed) }

// FailWhen says which errors of the calls of one resource, of exactly that name, are failures, in
// place of [Config].Failure: those for which failed is true. Any other error counts as a call
// that went well. The function decides alone: it is asked about calls that their callers cancelled,
// too, and breakers then don't leave them out. Where they should, mark answers by [Ignore] instead.
// nil undoes an earlier call.
//
// It applies to errors that are reported from now on, whatever rules are loaded and whether or not
// the resource exists. Like Config.Failure it is not asked about refusals, errors marked by
// [Ignore] and panics, and must be safe for concurrent use; an error that makes it panic is a
// failure.
func (g *Guard) FailWhen(resource string, failed func(error) bool) {
	g.engine.FailWhen(resource, failed)
}
