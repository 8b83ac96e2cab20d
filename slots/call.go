package slots

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/engine"
)

// Call is a call on its way through the chain, as a slot sees it. It is good only until the slot's method
// returns, on the goroutine that makes the call.
type Call struct{ inv *engine.Invocation }

// Resource is the name of what the call asks for; that of all names beyond the cap of the tree, if it is one
// of them.
func (c Call) Resource() string { return c.inv.Resource().Name() }

// Origin is the name of the caller, "" if there is none.
func (c Call) Origin() string { return c.inv.Origin() }

// ContextName is the name of the context that the call came in through.
func (c Call) ContextName() string { return c.inv.ContextName() }

// Context is what the caller passed, never nil. A slot may read its values.
func (c Call) Context() context.Context { return c.inv.Context() }

// Args are the arguments given with the call.
func (c Call) Args() []any { return c.inv.Args() }

// Param is the value attached under a name; false if there is none, or several.
func (c Call) Param(name string) (argument.Value, bool) {
	if v, _ := c.inv.ParamValue(name); v != nil {
		return *v, true
	}
	return argument.Value{}, false
}

// Endpoint names what serves the call, "" if the caller didn't say.
func (c Call) Endpoint() string { return c.inv.Endpoint() }

// Units is how many units the call takes, at least 1.
func (c Call) Units() int64 { return c.inv.Units() }

// Inbound reports whether the call comes from outside.
func (c Call) Inbound() bool { return c.inv.Inbound() }

// Prioritized reports whether the call may borrow from a coming bucket.
func (c Call) Prioritized() bool { return c.inv.Prioritized() }

// LongLived reports whether the call has no response time.
func (c Call) LongLived() bool { return c.inv.LongLived() }

// Failed reports whether the call was marked failed, which is known when it completes.
func (c Call) Failed() bool { return c.inv.Failed() }

// Now is the time of the current phase: when the call asked to enter, was released after a wait, or
// exited. Slots read no clock.
func (c Call) Now() time.Time { return time.Unix(0, c.inv.Now()) }

// Took is how long the call has taken since it asked to enter; at its end that is its response time. It is
// never negative.
func (c Call) Took() time.Duration { return time.Duration(max(0, c.inv.Now()-c.inv.Began())) }

// Lane is nearly an index of the processor that the call runs on, from 0 on, for counters of your own
// that processors should not contend for.
func (c Call) Lane() uint32 { return c.inv.Lane() }

// Refuse is the verdict that refuses the call for a reason: its error is of core.KindCustom and has the
// reason where errors of other kinds have the rule's ID. The refusal is counted and logged like that of a
// rule, and allocates nothing, except for the first call of a resource that is refused for that reason.
// So there should be few reasons, such as "tenant is suspended"; beyond 64 pairs of reason and
// status on one resource, all others are reported as "other reasons", with 503.
func (c Call) Refuse(reason string) Verdict { return Verdict{Block: c.inv.Refuse(reason).Block} }

// RefuseWith is [Call.Refuse] with an HTTP status by which adapters tell it, from 400 to 599, or by the
// corresponding gRPC code. Without one, or with another, that is 503.
func (c Call) RefuseWith(reason string, status int) Verdict {
	return Verdict{Block: c.inv.RefuseWith(reason, status).Block}
}

// Hold notes units that a slot has granted the call: the holder gets them back when the call exits, or at
// once if the call is refused after all.
func (c Call) Hold(h Holder, units int64) {
	c.inv.Reserve(engine.Reservation{Holder: holder{h}, Units: units, UntilExit: true})
}

// Holder takes back, at now, units that it granted a call. It must be safe for concurrent use.
type Holder interface {
	GiveBack(units int64, now time.Time)
}

// OnComplete has a completer called at the end of the call, if the call is admitted after all.
// The token is the completer's own.
func (c Call) OnComplete(to Completer, token int64) { c.inv.OnComplete(completer{to}, token) }

// Completer is told when a call ends that it let in, with the token that was left by [Call.OnComplete]. By
// then what the call held has been given back, and other rules may be in force. It must be safe for
// concurrent use.
type Completer interface {
	Complete(c Call, token int64)
}

type holder struct{ Holder }

func (h holder) GiveBack(r *engine.Reservation, now int64) {
	h.Holder.GiveBack(r.Units, time.Unix(0, now))
}

type completer struct{ Completer }

func (c completer) Complete(inv *engine.Invocation, token int64) {
	c.Completer.Complete(Call{inv}, token)
}
