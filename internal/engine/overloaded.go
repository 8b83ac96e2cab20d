package engine

import (
	"errors"
	"time"

	"github.com/penstock-go/penstock/core"
)

// Overloaded marks an error as that of a server with too much to do; see api.Overloaded.
func Overloaded(err error, retryAfter time.Duration) error {
	if err == nil {
		return nil
	}
	return &overloaded{err, retryAfter}
}

type overloaded struct {
	error
	retryAfter time.Duration
}

func (e *overloaded) Unwrap() error { return e.error }

// Hearer is a [Completer] that learns how long the server of a running call wants to be left alone.
type Hearer interface {
	// Hear may run on any goroutine, at most once at a time for a call, and before Complete. It must
	// not call custom code. retryAfter is 0 if the server gave no time.
	Hear(inv *Invocation, now int64, retryAfter time.Duration)
}

// HearAnswers makes the engine look for [Overloaded] in the errors of calls while the revision is in
// force, and pass it to their Hearers.
func (b *SnapshotBuilder) HearAnswers() { b.next.hears = true }

// hear records that the call's server had too much to do, or didn't answer in time, and passes that
// to the completers at once: the call may not exit before its caller has read a long body. A refusal
// of a rule comes from no server.
func (e *Engine) hear(entry Entry, err error) {
	if errors.Is(err, core.ErrBlocked) {
		return
	}
	var retryAfter time.Duration
	if o, ok := errors.AsType[*overloaded](err); ok {
		retryAfter = o.retryAfter
	} else if !timedOut(err) {
		return
	}
	now := e.Now() // a custom clock, so it is read while the entry isn't busy
	if !entry.set(flagBusy) {
		return
	}
	inv := entry.inv
	defer inv.word.And(^uint64(flagBusy))
	inv.overloaded = true
	for _, c := range inv.completions {
		if h, ok := c.Completer.(Hearer); ok {
			h.Hear(inv, now, retryAfter)
		}
	}
}

// timedOut reports whether an error is that of a deadline, as of a context, a connection or an
// http.Client.
func timedOut(err error) bool {
	type timeout interface {
		error
		Timeout() bool
	}
	t, ok := errors.AsType[timeout](err)
	return ok && t.Timeout()
}
