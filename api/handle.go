package api

import (
	"context"

	"github.com/penstock-go/penstock/internal/engine"
)

// Handle refers to a resource by name. It looks the resource up on its first call, and again only
// after the resource was evicted, while it has no node in the tree, or on another Guard. Use it for
// guarded code that runs very often, or calls many resources in turn. Keep it in a variable:
//
//	var orders = api.Resource("GET /orders")
//
//	e, err := orders.Entry(ctx)
//
// It is safe for concurrent use, and stays valid when the rules, the tree or the default Guard
// change: a resource that was evicted as idle is created again by the next call. Creating a Handle
// starts nothing, and creates no Guard. With an empty name every Entry fails. [Call] has no
// counterpart: methods have no type parameters.
type Handle struct {
	guard *Guard // nil for the default one at the time of the call
	at    *engine.Handle
}

// Resource returns a handle for a resource of whichever Guard is the default at the time of each
// call.
func Resource(name string) *Handle { return &Handle{at: engine.NewHandle(name)} }

// Resource returns a handle for a resource.
func (g *Guard) Resource(name string) *Handle { return &Handle{guard: g, at: engine.NewHandle(name)} }

// Name returns the resource's name.
func (h *Handle) Name() string { return h.at.Name() }

// Entry asks for the resource; see the function [Entry].
func (h *Handle) Entry(ctx context.Context, opts ...Option) (Admitted, error) {
	e, err := h.on().engine.EnterBy(ctx, h.at, opts)
	return Admitted{e}, err
}

// Do runs fn as a guarded call; see the function [Do].
func (h *Handle) Do(ctx context.Context, fn func(context.Context) error, opts ...Option) (err error) {
	e, err := h.Entry(ctx, opts...)
	if err != nil {
		return err
	}
	defer e.ExitOn(&err)
	return fn(e.Context())
}

func (h *Handle) on() *Guard {
	if h.guard != nil {
		return h.guard
	}
	return Default()
}
