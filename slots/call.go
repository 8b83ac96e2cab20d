package slots

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/engine"
)

// Call is a call on its way through the chain, as a slot sees it. It is valid only until the slot's
// method returns, on the goroutine that makes the call.
type Call struct{ inv *engine.Invocation }

// Resource returns the name of the call's resource; for names beyond the cap of the tree, the
// shared overflow name.
func (c Call) Resource() string { return c.inv.Resource().Name() }

// Origin returns the name of the caller, or "" if there is none.
func (c Call) Origin() string { return c.inv.Origin() }

// ContextName returns the name of the context through which the call entered.
func (c Call) ContextName() string { return c.inv.ContextName() }

// Context returns the caller's context, never nil. A slot may read its values.
func (c Call) Context() context.Context { return c.inv.Context() }

// Args returns the arguments given with the call.
func (c Call) Args() []any { return c.inv.Args() }

// Param returns the value attached under a name, or false if there is none, or several.
func (c Call) Param(name string) (argument.Value, bool) {
	if v, _ := c.inv.ParamValue(name); v != nil {
		return *v, true
	}
	return argument.Value{}, false
}

// Endpoint returns the server of the call, or "" if the caller didn't name it.
func (c Call) Endpoint() string { return c.inv.Endpoint() }

// Units returns the units that the call takes, at least 1.
func (c Call) Units() int64 { return c.inv.Units() }

// Inbound reports whether the call comes from outside.
func (c Call) Inbound() bool { return c.inv.Inbound() }

// Prioritized reports whether the call may borrow from a later bucket.
func (c Call) Prioritized() bool { return c.inv.Prioritized() }

// LongLived reports whether the call has no response time.
func (c Call) LongLived() bool { return c.inv.LongLived() }

// Failed reports whether the call was marked failed, which is known when it completes.
func (c Call) Failed() bool { return c.inv.Failed() }

// Now returns the time of the current phase: when the call asked to enter, was released after a
// wait, or exited. Slots don't read the clock.
func (c Call) Now() time.Time { return time.Unix(0, c.inv.Now()) }

// Took returns the time since the call asked to enter; at the end of the call, that is its response
// time. It is never negative.
func (c Call) Took() time.Duration { return time.Duration(max(0, c.inv.Now()-c.inv.Began())) }

// Lane returns a number, from 0, that usually identifies the processor that the call runs on, for
// custom counters on which processors should not contend.
func (c Call) Lane() uint32 { return c.inv.Lane() }

// Refuse returns the verdict that rejects the call for a reason: its error is of core.KindCustom
// and has the reason in place of a rule's ID. The rejection is counted and logged like that of a
// rule, and allocates nothing, except for the first call of a resource with that reason. So there
// should be few reasons, such as "tenant is suspended"; beyond 64 pairs of reason and status on one
// resource, all others are reported as "other reasons", with 503.
func (c Call) Refuse(reason string) Verdict { return Verdict{Block: c.inv.Refuse(reason).Block} }

// RefuseWith is like [Call.Refuse], but sets the HTTP status, 400 to 599, that adapters return, as
// it is or as the corresponding gRPC code. Any other status counts as 503.
func (c Call) RefuseWith(reason string, status int) Verdict {
	return Verdict{Block: c.inv.RefuseWith(reason, status).Block}
}

// Hold records units that a slot has granted the call: the holder gets them back when the call
// exits, or immediately if the call is rejected after all.
func (c Call) Hold(h Holder, units int64) {
	c.inv.Reserve(engine.Reservation{Holder: holder{h}, Units: units, UntilExit: true})
}

// Holder takes back units that it granted a call; now is the time on the Guard's clock. It must be
// safe for concurrent use.
type Holder interface {
	GiveBack(units int64, now time.Time)
}

// OnComplete makes a completer be called at the end of the call, if the call is admitted. The token
// belongs to the completer.
func (c Call) OnComplete(to Completer, token int64) { c.inv.OnComplete(completer{to}, token) }

// Completer is notified when an admitted call ends, with the token passed to [Call.OnComplete]. By
// then the call's reservations have been given back, and other rules may be in force. It must be
// safe for concurrent use.
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
