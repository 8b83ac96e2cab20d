package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock-go/penstock/core"
)

// abandoned is the error of a call that gave up waiting for a rule: its context ended, or the
// engine drains.
type abandoned struct {
	*core.BlockError
	cause, ended error // the context's cause and its error, which may be equal; or ErrDraining twice
}

func abandon(b *core.BlockError, cause error, ctx context.Context) error {
	if cause == errDisplaced { //nolint:errorlint // it is the error itself
		return displaced{b}
	}
	e := &abandoned{b, cause, cause}
	if ended := context.Cause(ctx); ended != nil && cause != core.ErrDraining { //nolint:errorlint // it is the error itself
		e.ended = ended
	}
	return e
}

func (e *abandoned) Error() string {
	cause, ended := e.cause.Error(), e.ended.Error() // a custom error may not be comparable
	text := fmt.Sprintf("penstock: gave up waiting for %s rule %q on %q: %s", e.Kind, e.Rule, e.Resource, cause)
	if ended != cause {
		text += " (" + ended + ")"
	}
	return text
}

// ContextCause returns the [context.Cause] of the call's context. It isn't named Cause, because
// some errors have a method Cause that returns the wrapped error.
func (e *abandoned) ContextCause() error { return e.ended }

// Unwrap exposes the rejection and the context's error to errors.Is and errors.As.
func (e *abandoned) Unwrap() []error { return []error{e.BlockError, e.cause} }

// errDisplaced is the cause of the rejection of a call that lost its place in a queue.
var errDisplaced = errors.New("displaced")

// displaced is the rejection of a call that lost its place in a queue to a call of another tenant, or of
// a higher level.
type displaced struct{ *core.BlockError }

func (e displaced) Error() string {
	return e.BlockError.Error() + ": the queue was full, and a call of another tenant, a higher level or a higher priority took its place"
}

// Unwrap exposes the rejection to errors.Is and errors.As.
func (e displaced) Unwrap() error { return e.BlockError }
