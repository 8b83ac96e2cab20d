package core

import (
	"context"
	"errors"
	"maps"
	"strings"
)

// Ignore marks an error as no failure of the guarded code, such as "not found":
// [Entry.Fail] does nothing for it or for an error that wraps it, and breakers don't
// count it. The error is the same otherwise. Ignore(nil) is nil.
func Ignore(err error) error {
	if err == nil {
		return nil
	}
	return &ignored{err}
}

type ignored struct{ error }

func (e *ignored) Unwrap() error { return e.error }

// failWhen is what resources have in place of [Config].Failure, by name. A map that is
// published is not changed any more.
type failWhen map[string]func(error) bool

// FailWhen says which errors of the calls of one resource, of exactly that name, are failures, in
// place of [Config].Failure: those for which failed is true. Any other error counts as a call
// that went well, so failed should separate what the resource is responsible for from what its
// callers do, such as context.Canceled. nil takes back what was said before.
//
// It holds for errors that are reported from now on, whatever rules are loaded and whether the
// resource is there or not. As Config.Failure it is not asked about refusals, errors marked by
// [Ignore] and panics, and must be safe for concurrent use; an error about which it panics is
// a failure.
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

// failureOf is what says which errors of an entry's call are failures, nil if nobody has said so.
func (e *Engine) failureOf(entry Entry) func(error) bool {
	if named := e.failWhen.Load(); named != nil && len(*named) > 0 {
		if failed := (*named)[entry.resource()]; failed != nil {
			return failed
		}
	}
	return e.config.Failure
}

// isFailure says whether the call of an entry failed, which this error comes from. If whoever is
// to say so panics, it did.
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

// Shield calls f, which is the user's. If it panics, that is counted and logged like
// the panic of a slot (see [Engine.Failures]), and Shield returns.
func (e *Engine) Shield(f func()) {
	defer func() {
		if r := recover(); r != nil {
			e.failed(r, e.Now(), nil)
		}
	}()
	f()
}
