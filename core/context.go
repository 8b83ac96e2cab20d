package core

import (
	"context"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
)

// Context is where a call comes from: the name of the context, the caller, and
// the call it is nested in. It doesn't change once made and travels in a
// [context.Context].
type Context struct {
	name   string
	origin string
	parent *node.DefaultNode // the call that this one is nested in, or nil
	tree   *node.Tree        // the tree parent stands in

	entrance shared.Pointer[placed] // found once for each engine
}

// placed is an entrance node and the tree it stands in.
type placed struct {
	tree *node.Tree
	node *node.EntranceNode
}

type contextKey struct{}

// WithContext returns a context whose calls come in through the named context
// ("" is the default one) and are made by origin ("" is nobody in particular).
// A nil ctx is [context.Background].
//
// Names that an outsider can choose are bounded by the engine's caps; still, an
// origin should come from something trusted, not from a header of the request.
func WithContext(ctx context.Context, name, origin string) context.Context {
	if ctx == nil {
		ctx = context.Background()
	}
	return context.WithValue(ctx, contextKey{}, &Context{name: name, origin: origin})
}

// ContextOf returns the Context that ctx carries, or nil. A nil ctx carries none.
func ContextOf(ctx context.Context) *Context {
	if ctx == nil {
		return nil
	}
	c, _ := ctx.Value(contextKey{}).(*Context)
	return c
}

// Name is the name of the context, "" for the default one.
func (c *Context) Name() string { return c.name }

// Origin is the caller, "" if there is none.
func (c *Context) Origin() string { return c.origin }

// place finds where calls from here stand in a tree.
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
