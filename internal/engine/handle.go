package engine

import (
	"context"

	"github.com/penstock-go/penstock/internal/shared"
)

// Handle is the name of a resource together with the last resource found for it, so that a call by
// handle needs no lookup. It works with every engine and never expires: if the resource has left
// the tree, or another engine is used, it is looked up again. It is safe for concurrent use, and
// must not be copied once used.
//
// It doesn't keep the resource in the tree: an idle resource leaves as if there were no handle, and
// returns with the next call. The handle then still points to the resource that a lookup of its
// name would return; see [node.Registry].
type Handle struct {
	name  string
	found shared.Pointer[Resource]
}

// NewHandle returns a handle that has found nothing yet.
func NewHandle(name string) *Handle { return &Handle{name: name} }

// Name returns the resource's name.
func (h *Handle) Name() string { return h.name }

// EnterBy is like [Engine.Enter], but takes a handle instead of a name.
func (e *Engine) EnterBy(ctx context.Context, h *Handle, opts []Option) (Entry, error) {
	inv, err := e.begin(ctx, h.name, opts)
	if err != nil {
		return Entry{}, err
	}
	r := h.found.Load()
	if r == nil || r.engine != e || r.Retired() {
		r = h.find(e, inv.now)
	}
	return inv.enter(r, h.name)
}

// find looks the resource up again. The overflow resource is not kept: there may be room for the
// name later.
func (h *Handle) find(e *Engine, now int64) *Resource {
	r := e.resource(h.name, now)
	if r != e.resources.overflow {
		h.found.Store(r)
	}
	return r
}
