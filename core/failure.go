package core

import (
	"context"
	"errors"
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

// isFailure says whether the call failed that this error comes from. If whoever is to
// say so panics, it did.
func (e *Engine) isFailure(err error) (failure bool) {
	failure = true
	e.Shield(func() {
		_, ignore := errors.AsType[*ignored](err)
		switch {
		case ignore, errors.Is(err, ErrBlocked):
			failure = false
		case e.config.Failure != nil:
			failure = e.config.Failure(err)
		default:
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
