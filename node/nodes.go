package node

import (
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// DefaultNode counts the calls of one resource in one context. It is placed below the node it was
// first called from, and stays there until it is evicted.
type DefaultNode struct {
	entrance *EntranceNode
	cluster  *ClusterNode
	joint    bool // its cluster includes it
	StatisticNode
	Branch
	in    *Branch      // where it is in the tree; nil if nowhere. Guarded by Tree.placing
	below *DefaultNode // parent to place it below, until it is placed; nil for the entrance. Likewise guarded
}

// newCall returns the node of a resource's calls in a context. No call may see it before it is
// registered.
func newCall(e *EntranceNode, c *ClusterNode, below *DefaultNode, layout *stat.Layout) *DefaultNode {
	n := &DefaultNode{entrance: e, cluster: c, below: below}
	n.Init(layout)
	if n.joint = c.Include(&n.Counters); n.joint {
		c.included.Store(n)
	}
	return n
}

// Name returns the resource's name.
func (n *DefaultNode) Name() string { return n.cluster.name }

// Context returns the name of the context.
func (n *DefaultNode) Context() string { return n.entrance.name }

// Key returns the name of the context, which distinguishes the nodes of one resource.
func (n *DefaultNode) Key() string { return n.entrance.name }

// Cluster returns the node of the resource over all contexts.
func (n *DefaultNode) Cluster() *ClusterNode { return n.cluster }

// Joint reports whether the resource's node includes the counts of this node (see
// [stat.Counters.Include]); a call is then counted on this node and not on the resource's. That
// holds for the first context of each resource, and never changes.
func (n *DefaultNode) Joint() bool { return n.joint }

// Retire marks the node as leaving the tree, or removes the mark.
func (n *DefaultNode) Retire(leaving bool) {
	if !leaving {
		n.open()
	}
	n.retired.Store(leaving)
}

// Idle reports whether the node can be evicted: it is idle and has no children.
func (n *DefaultNode) Idle(now int64) bool {
	return n.Len() == 0 && n.StatisticNode.Idle(now)
}

// Close ends placing nodes below this one, unless one was placed: see [Member]. A node with a
// running call isn't idle and so never closes: nested calls find it open even while it is checked.
func (n *DefaultNode) Close() bool { return n.Branch.close() }

// ClusterNode counts the calls of one resource, regardless of their context.
type ClusterNode struct {
	name    string
	first   shared.Pointer[DefaultNode] // most resources have one context
	entered shared.Bool
	StatisticNode

	calls   Registry[DefaultNode, *DefaultNode] // by context
	origins Registry[OriginNode, *OriginNode]
	// overflowOrigin stands for all callers beyond the cap; made on first use.
	overflowOrigin shared.Pointer[OriginNode]

	included shared.Pointer[DefaultNode] // first of calls, permanently
}

// Name returns the resource's name.
func (n *ClusterNode) Name() string { return n.name }

// Key returns the name.
func (n *ClusterNode) Key() string { return n.name }

// Entered reports whether a call has ever asked for the resource. A resource that only rules name
// has a node, but was not entered.
func (n *ClusterNode) Entered() bool { return n.entered.Load() }

// MarkEntered records that a call has asked for the resource.
func (n *ClusterNode) MarkEntered() {
	if !n.entered.Load() {
		n.entered.Store(true)
	}
}

// Calls returns the nodes of the resource by context.
func (n *ClusterNode) Calls() *Registry[DefaultNode, *DefaultNode] { return &n.calls }

// Included returns the call node that the resource's node includes (see [DefaultNode.Joint]), even
// if that was removed from the tree; nil before the first call.
func (n *ClusterNode) Included() *DefaultNode { return n.included.Load() }

// Origins returns the nodes of the resource by caller.
func (n *ClusterNode) Origins() *Registry[OriginNode, *OriginNode] { return &n.origins }

// OverflowOrigin returns the node of the callers beyond the cap, or nil if there were none.
func (n *ClusterNode) OverflowOrigin() *OriginNode { return n.overflowOrigin.Load() }

// Retire marks the node as leaving, and the nodes of its calls and callers, which are evicted with
// it.
func (n *ClusterNode) Retire(leaving bool) {
	n.retired.Store(leaving)
	n.calls.Retire(leaving)
	n.origins.Retire(leaving)
}

// AnyLeft reports whether the resource's node, or one of the call's nodes, was removed from the
// tree. It is for callers that have counted a call on them.
//
// The resource is checked first. It is marked, found idle and removed, and then so are its call and
// origin nodes, all under one lock; a goroutine that brings it back does so afterwards, and brings
// only nodes of its own. So if the resource has no mark, either it is marked later and then found
// to be in use, or every node removed with it already has its mark.
func (n *ClusterNode) AnyLeft(nodes []*StatisticNode) bool {
	if n.Retired() {
		return true
	}
	for _, other := range nodes {
		if other.Retired() {
			return true
		}
	}
	return false
}

// Idle reports whether the node can be evicted: the node, its call nodes and its origin nodes are
// all idle, and none of its call nodes has children.
func (n *ClusterNode) Idle(now int64) bool {
	if !n.StatisticNode.Idle(now) {
		return false
	}
	for _, call := range n.calls.All() {
		if !call.Idle(now) {
			return false
		}
	}
	for _, origin := range n.origins.All() {
		if !origin.Idle(now) {
			return false
		}
	}
	overflow := n.overflowOrigin.Load()
	return overflow == nil || overflow.Idle(now)
}

// Close closes the call nodes, unless one has a child: see [Member].
func (n *ClusterNode) Close() bool {
	for _, call := range n.calls.All() {
		if !call.Close() {
			return false
		}
	}
	return true
}

// OriginNode counts the calls that one caller makes to one resource.
type OriginNode struct {
	StatisticNode
	name     string
	overflow bool
}

// Name returns the caller's name.
func (n *OriginNode) Name() string { return n.name }

// Key returns the name.
func (n *OriginNode) Key() string { return n.name }

// Retire marks the node as leaving.
func (n *OriginNode) Retire(leaving bool) { n.retired.Store(leaving) }

// Close reports true: nothing is placed below an origin.
func (n *OriginNode) Close() bool { return true }

// EntranceNode is the root of one context's calls. It has no counters: its counts are the sums of
// its direct children.
type EntranceNode struct {
	Branch
	name    string
	retired shared.Bool
}

// Name returns the context's name.
func (n *EntranceNode) Name() string { return n.name }

// Key returns the name.
func (n *EntranceNode) Key() string { return n.name }

// Retire marks the node as leaving, or removes the mark.
func (n *EntranceNode) Retire(leaving bool) {
	if !leaving {
		n.open()
	}
	n.retired.Store(leaving)
}

// Retired reports whether the node was removed from the tree.
func (n *EntranceNode) Retired() bool { return n.retired.Load() }

// Idle reports whether the node can be evicted: it has no children.
func (n *EntranceNode) Idle(int64) bool { return n.Len() == 0 }

// Close ends placing nodes below this one, unless one was placed: see [Member].
func (n *EntranceNode) Close() bool { return n.Branch.close() }

// Branch holds the children of a node. The zero value has none. It is safe for concurrent use.
type Branch struct {
	mu       shared.Mutex // guards the fields below it
	children map[*DefaultNode]struct{}
	closed   bool
}

// Children returns the children at this moment, in no particular order.
func (b *Branch) Children() []*DefaultNode {
	b.mu.Lock()
	defer b.mu.Unlock()
	children := make([]*DefaultNode, 0, len(b.children))
	for child := range b.children {
		children = append(children, child)
	}
	return children
}

// Len returns the number of children.
func (b *Branch) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.children)
}

// open allows children to be added.
func (b *Branch) open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = false
}

// close rejects children from now on, unless there are some.
func (b *Branch) close() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = len(b.children) == 0
	return b.closed
}

// add reports whether the branch accepted the child.
func (b *Branch) add(child *DefaultNode) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	if b.children == nil {
		b.children = make(map[*DefaultNode]struct{})
	}
	b.children[child] = struct{}{}
	return true
}

func (b *Branch) remove(child *DefaultNode) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if delete(b.children, child); len(b.children) == 0 {
		b.children = nil // the slice may be large, and the node may be kept
	}
}
