package engine

import (
	"context"

	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
)

// Context is the origin of a call: the name of the context, the caller, and the enclosing call. It
// is immutable, and carried by a [context.Context].
type Context struct {
	marks
	parent *node.DefaultNode // enclosing call, or nil
	tree   *node.Tree        // tree of parent
	began  int64             // entry of the outermost call with the same server deadline; 0 if not known
	err    error             // error of calls from here, if a name is too long
	entry  Entry             // innermost call, which may have exited
	within *within           // calls that it is nested in; see together.go

	entrance shared.Pointer[placed] // found once for each engine
}

// marks are the properties of a context that its calls have, and those nested in them.
type marks struct {
	name   string
	origin string
	level  level // criticality
	retry  bool
}

// placed is an entrance node and its tree.
type placed struct {
	tree *node.Tree
	node *node.EntranceNode
}

type contextKey struct{}

// WithContext returns a context whose calls use the named context; see api.WithContext.
func WithContext(ctx context.Context, name string) context.Context {
	c := &Context{entry: EntryOf(ctx)}
	if from := ContextOf(ctx); from != nil {
		c.marks, c.within = from.marks, from.within
	}
	c.name = name
	return carrying(ctx, c)
}

// WithOrigin returns a context whose calls are made by origin; see api.WithOrigin.
func WithOrigin(ctx context.Context, origin string) context.Context {
	c := derived(ctx)
	c.origin = origin
	return carrying(ctx, c)
}

// WithRetry returns a context whose calls are retries; see api.WithRetry.
func WithRetry(ctx context.Context) context.Context {
	c := derived(ctx)
	c.retry = true
	return carrying(ctx, c)
}

// derived returns a Context like that of ctx, nested in the same call.
func derived(ctx context.Context) *Context {
	c := &Context{entry: EntryOf(ctx)}
	if from := ContextOf(ctx); from != nil {
		c.marks, c.parent, c.tree, c.began, c.within = from.marks, from.parent, from.tree, from.began, from.within
		c.entrance.Store(from.entrance.Load())
	}
	return c
}

func carrying(ctx context.Context, c *Context) context.Context {
	if ctx == nil {
		ctx = context.Background()
	}
	switch {
	case len(c.name) > pattern.MaxName:
		c.err = errLongContext
	case len(c.origin) > pattern.MaxName:
		c.err = errLongOrigin
	}
	return context.WithValue(ctx, contextKey{}, c)
}

// ContextOf returns the Context that ctx carries, or nil. A nil ctx carries none.
func ContextOf(ctx context.Context) *Context {
	if ctx == nil {
		return nil
	}
	c, _ := ctx.Value(contextKey{}).(*Context)
	return c
}

// EntryOf returns the innermost call that ctx belongs to, or the zero Entry.
func EntryOf(ctx context.Context) Entry {
	if c := ContextOf(ctx); c != nil {
		return c.entry
	}
	return Entry{}
}

// Name returns the name of the context, "" for the default one and for a nil Context.
func (c *Context) Name() string {
	if c == nil {
		return ""
	}
	return c.name
}

// Origin returns the caller, "" if there is none or c is nil.
func (c *Context) Origin() string {
	if c == nil {
		return ""
	}
	return c.origin
}

// place finds the tree nodes for calls made from this context.
func (c *Context) place(tree *node.Tree, now int64) (*node.EntranceNode, *node.DefaultNode) {
	if c == nil {
		return tree.Entrance("", now), nil
	}
	var parent *node.DefaultNode
	if c.tree == tree {
		parent = c.parent
	}
	if p := c.entrance.Load(); p != nil && p.tree == tree && !p.node.Retired() {
		return p.node, parent
	}
	p := &placed{tree, tree.Entrance(c.name, now)}
	if p.node != tree.OverflowEntrance() { // there may be room later
		c.entrance.Store(p)
	}
	return p.node, parent
}
