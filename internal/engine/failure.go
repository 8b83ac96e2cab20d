package engine

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/penstock-go/penstock/core"
)

// Ignore marks an error as a regular response of the guarded code; see api.Ignore.
func Ignore(err error) error {
	if err == nil {
		return nil
	}
	return &ignored{err}
}

type ignored struct{ error }

func (e *ignored) Unwrap() error { return e.error }

// Certain marks an error as a certain failure; see api.Certain.
func Certain(err error) error {
	if err == nil {
		return nil
	}
	return &certain{err}
}

type certain struct{ error }

func (e *certain) Unwrap() error { return e.error }

// failWhen has the functions that replace [Config].Failure for resources, by name. A map is
// immutable once published.
type failWhen map[string]func(error) bool

// FailWhen sets the function that decides which errors of the calls of one resource are failures;
// see api.Guard.FailWhen.
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

// failureOf returns the function that decides which errors of a resource's calls are failures, or
// nil if none was set.
func (e *Engine) failureOf(resource string) func(error) bool {
	if named := e.failWhen.Load(); named != nil && len(*named) > 0 {
		if failed := (*named)[resource]; failed != nil {
			return failed
		}
	}
	return e.config.Failure
}

// judge returns the flag that this error sets on an entry's call: flagFailed, flagNeutral, or 0 if
// the error is a regular response. If the deciding function panics, the call failed. The context is
// custom code, so it is asked while the entry isn't busy: Exit waits for a busy entry.
func (e *Engine) judge(entry Entry, err error) (flag uint64) {
	flag = flagFailed
	judged := false
	if e.rules.Load().hears {
		e.Shield(func() { e.hear(entry, err) })
	}
	for marked := true; marked; { // by marks for Fail, which nobody wraps
		switch x := err.(type) { //nolint:errorlint // see there
		case *certain:
			judged, err = true, x.error
		case *overloaded:
			err = x.error
		default:
			marked = false
		}
	}
	e.Shield(func() {
		if _, ignore := errors.AsType[*ignored](err); ignore {
			flag = 0
			return
		} else if errors.Is(err, core.ErrBlocked) {
			flag = flagNeutral
			return
		}
		name, ctx := entry.origins()
		if failed := e.failureOf(name); failed != nil {
			if !failed(err) {
				flag = 0
			}
		} else if !judged && ctx != nil {
			flag = byContext(ctx, err)
		}
	})
	return flag
}

// byContext returns the flag of an error that no function decides on. It ignores the cause of a
// cancel, which may be a timeout of another call.
func byContext(ctx context.Context, err error) uint64 {
	switch ended := ctx.Err(); {
	case errors.Is(ended, context.Canceled):
		return flagNeutral
	case ended == nil && errors.Is(err, context.Canceled): // of something else
		return 0
	}
	return flagFailed
}

// Shield calls f, which is custom code. A panic of f is counted and logged like the panic of a slot
// (see [Engine.Failures]), and Shield returns.
func (e *Engine) Shield(f func()) {
	defer func() {
		if r := recover(); r != nil {
			e.failed(r, e.Now(), nil)
		}
	}()
	f()
}
