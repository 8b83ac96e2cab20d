package core

import (
	"context"
	"errors"
	"maps"
	"strings"
)

// Ignore marks an error, such as "not found", as not being a failure of the guarded code:
// [Entry.Fail] does nothing for it or for an error that wraps it, and breakers don't count it.
// Otherwise the error is unchanged. Ignore(nil) is nil.
func Ignore(err error) error {
	if err == nil {
		return nil
	}
	return &ignored{err}
}

type ignored struct{ error }

func (e *ignored) Unwrap() error { return e.error }

// failWhen is what resources have in place of [Config].Failure, by name. A map is not changed once
// published.
type failWhen map[string]func(error) bool

// FailWhen says which errors of the calls of one resource, of exactly that name, are failures, in
// place of [Config].Failure: those for which failed is true. Any other error counts as a call
// that went well, so failed should separate what the resource is responsible for from what its
// callers do, such as context.Canceled. nil undoes an earlier call.
//
// It applies to errors that are reported from now on, whatever rules are loaded and whether or not
// the resource exists. Like Config.Failure it is not asked about refusals, errors marked by
// [Ignore] and panics, and must be safe for concurrent use; an error that makes it panic is a
// failure.
func (e *Engine) FailWhen(resource string, failed func(error) bool) {
	for {
		old := e.failWhen.Load()
		next := make(failWhen)
		if old != nil {
			maps.Copy(next, *old)
		}
		if next[strings.Clone(resource)] = failed; failed == nil {
			delete(next, resource)
		}
		if e.failWhen.CompareAndSwap(old, &next) {
			return
		}
	}
}

// failureOf is the function that says which errors of an entry's call are failures, nil if none was
// set.
func (e *Engine) failureOf(entry Entry) func(error) bool {
	if named := e.failWhen.Load(); named != nil && len(*named) > 0 {
		if failed := (*named)[entry.resource()]; failed != nil {
			return failed
		}
	}
	return e.config.Failure
}

// isFailure reports whether this error makes an entry's call a failed one. If the function that
// decides panics, it does.
func (e *Engine) isFailure(entry Entry, err error) (failure bool) {
	failure = true
	e.Shield(func() {
		if _, ignore := errors.AsType[*ignored](err); ignore || errors.Is(err, ErrBlocked) {
			failure = false
		} else if failed := e.failureOf(entry); failed != nil {
			failure = failed(err)
		} else {
			failure = !errors.Is(err, context.Canceled)
		}
	})
	return failure
}

// Shield calls f, which is the user's code. A panic of f is counted and logged like the panic of a
// slot (see [Engine.Failures]), and Shield returns.
func (e *Engine) Shield(f func()) {
	defer func() {
		if r := recover(); r != nil {
			e.failed(r, e.Now(), nil)
		}
	}()
	f()
}
