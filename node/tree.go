package node

import (
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// Names in the tree. Sentinel's tools know the first two.
const (
	RootName       = "machine-root"
	InboundName    = "__total_inbound_traffic__"
	DefaultContext = "default"    // for calls without a context
	OverflowName   = "(overflow)" // for nodes that stand for all names beyond a cap
)

// SentinelDefaultContext is Sentinel's name for the default context, in its formats and in chain
// rules written for it.
const SentinelDefaultContext = "sentinel_default_context"

// Caps bound the number of nodes of a tree. Names in rules come in addition.
type Caps struct {
	Resources int // 0 means 10,000
	Contexts  int // 0 means 2,000
	Calls     int // (context, resource) pairs; 0 means 20,000
	Origins   int // (resource, caller) pairs; 0 means 10,000
}

func (c Caps) withDefaults() (Caps, error) {
	for _, field := range []struct {
		name  string
		value *int
		usual int
	}{
		{"resources", &c.Resources, 10_000},
		{"contexts", &c.Contexts, 2_000},
		{"call nodes", &c.Calls, 20_000},
		{"origins", &c.Origins, 10_000},
	} {
		if *field.value < 0 {
			return c, fmt.Errorf("node: a cap of %d %s: use a positive number, or 0 for %d", *field.value, field.name, field.usual)
		}
		if *field.value == 0 {
			*field.value = field.usual
		}
	}
	return c, nil
}

// sweepDepth is the number of levels of nested calls that one search for room can evict. The limit
// makes the search end even while new nodes keep being added.
const sweepDepth = 16

// sweepPause is the time between two searches of a full tree for idle nodes, so that a flood of new
// names doesn't become a flood of searches.
const sweepPause = int64(time.Second)

// Tree holds all nodes of an engine. It is safe for concurrent use.
type Tree struct {
	layout    *stat.Layout
	inbound   *ClusterNode
	entrances *Registry[EntranceNode, *EntranceNode]
	usual     *EntranceNode // for DefaultContext
	overflow  *EntranceNode // for contexts and call nodes beyond the caps
	contexts  *Budget
	calls     *Budget
	origins   *Budget
	names     *Budget
	resources Owner

	ofCalls   *policy[DefaultNode, *DefaultNode] // for the registries of all resources
	ofOrigins *policy[OriginNode, *OriginNode]

	placing   shared.Mutex // guards the places of call nodes in the tree
	sweeping  shared.Mutex
	nextSweep int64 // guarded by sweeping
}

// Owner keeps the cluster nodes of a tree.
type Owner interface {
	Clusters() iter.Seq[*ClusterNode]
	Evict(now int64) int
}

// NewTree returns a tree with a root, the default context and the inbound root. The cluster nodes,
// initialized by [Tree.InitCluster], stay with their owner.
func NewTree(layout *stat.Layout, caps Caps, resources Owner) (*Tree, error) {
	caps, err := caps.withDefaults()
	if err != nil {
		return nil, err
	}
	t := &Tree{
		layout:    layout,
		contexts:  newBudget(caps.Contexts),
		calls:     newBudget(caps.Calls),
		origins:   newBudget(caps.Origins),
		names:     newBudget(caps.Resources),
		resources: resources,
		overflow:  &EntranceNode{name: OverflowName},
		nextSweep: math.MinInt64,
	}
	t.ofCalls = &policy[DefaultNode, *DefaultNode]{budget: t.calls, room: t.MakeRoom, left: func(n *DefaultNode) {
		n.cluster.first.CompareAndSwap(n, nil)
		t.unplace(n)
	}}
	t.ofOrigins = &policy[OriginNode, *OriginNode]{budget: t.origins, room: t.MakeRoom, build: func(origin string) *OriginNode {
		return t.newOrigin(origin, false)
	}}
	t.inbound = t.newCluster(InboundName)
	t.entrances = NewRegistry(t.contexts, func(name string) *EntranceNode { return &EntranceNode{name: name} }, nil, t.MakeRoom)
	t.usual = t.entrances.Pin(DefaultContext)
	return t, nil
}

// newCluster allocates a node for InitCluster.
func (t *Tree) newCluster(name string) *ClusterNode {
	c := new(ClusterNode)
	t.InitCluster(c, name)
	return c
}

// InitCluster makes the zero ClusterNode the node of a resource, with no calls and no origins yet.
// It is for a caller that keeps the node together with other data of a call.
func (t *Tree) InitCluster(c *ClusterNode, name string) {
	c.name = name
	c.calls.policy, c.origins.policy = t.ofCalls, t.ofOrigins
	c.Init(t.layout)
}

func (t *Tree) newOrigin(name string, overflow bool) *OriginNode {
	o := &OriginNode{name: name, overflow: overflow}
	o.Init(t.layout)
	return o
}

// Inbound returns the node of all inbound calls.
func (t *Tree) Inbound() *ClusterNode { return t.inbound }

// Layout returns the layout of the nodes' counters.
func (t *Tree) Layout() *stat.Layout { return t.layout }

// Entrances returns the entrance nodes by context, without the overflow.
func (t *Tree) Entrances() *Registry[EntranceNode, *EntranceNode] { return t.entrances }

// OverflowEntrance returns the node above calls that arrived when contexts or call nodes were at
// their cap.
func (t *Tree) OverflowEntrance() *EntranceNode { return t.overflow }

// Resources returns the budget for cluster nodes.
func (t *Tree) Resources() *Budget { return t.names }

// Contexts returns the budget for entrance nodes.
func (t *Tree) Contexts() *Budget { return t.contexts }

// Calls returns the budget for call nodes.
func (t *Tree) Calls() *Budget { return t.calls }

// Origins returns the budget for origin nodes.
func (t *Tree) Origins() *Budget { return t.origins }

// Entrance returns the entrance node of a context; "" is the default context.
func (t *Tree) Entrance(context string, now int64) *EntranceNode {
	switch context {
	case "":
		return t.usual
	case OverflowName: // the name is taken
		return t.overflow
	}
	if e, ok := t.entrances.Obtain(context, now); ok {
		return e
	}
	return t.overflow
}

// Call returns the node of a resource's calls in a context. A new one is placed below parent if
// there is one, otherwise below the entrance.
func (t *Tree) Call(e *EntranceNode, c *ClusterNode, parent *DefaultNode, now int64) *DefaultNode {
	if n := c.first.Load(); n != nil && n.entrance == e {
		return n
	}
	if n, ok := c.calls.Find(e.name); ok {
		return n
	}
	build := func(string) *DefaultNode { return newCall(e, c, parent, t.layout) }
	var n *DefaultNode
	if e == t.overflow {
		n = c.calls.pin(e.name, build)
	} else {
		var ok bool
		back := func(n *DefaultNode) { t.moveBelow(n, parent) }
		if n, ok = c.calls.obtain(e.name, now, build, back); !ok {
			return t.Call(t.overflow, c, nil, now)
		}
	}
	c.first.CompareAndSwap(nil, n)
	t.place(n, now)
	return n
}

// place puts a call node into the tree, unless it is there already. It goes below the parent with
// which it was made or brought back, or below the entrance if that parent is in another context or
// was evicted, or if the entrance is that of the overflow.
//
// Another goroutine may find a node, and call from it, before the goroutine that made it has placed
// it. So a parent that isn't in the tree yet is placed first, as are its own parents. Each is asked
// for its parent once, so this ends even if nodes that were brought back name each other as
// parents.
//
// A node is removed from its registry first and from the tree second. So place checks at the end
// whether the node is still registered, and holds placing until then: a node that is restored in
// between must not be removed again.
func (t *Tree) place(n *DefaultNode, now int64) {
	t.placing.Lock()
	t.placeLocked(n, now)
	t.placing.Unlock()
}

// placeLocked is place for a caller that holds placing. It releases placing while it looks for an
// entrance.
func (t *Tree) placeLocked(n *DefaultNode, now int64) {
	parent := n.below
	n.below = nil
	if n.entrance == t.overflow || parent != nil && parent.Context() != n.Context() {
		parent = nil // below the overflow entrance all are siblings, so that none keeps another
	}
	if n.in == nil && parent != nil && parent.in == nil {
		t.placeLocked(parent, now)
	}
	for n.in == nil {
		switch {
		case parent != nil && parent.in != nil && parent.Branch.add(n):
			n.in = &parent.Branch
		case n.entrance.Branch.add(n):
			n.in = &n.entrance.Branch
		default: // the entrance was evicted: there is another by now, or soon will be
			t.placing.Unlock()
			e := t.Entrance(n.entrance.name, now)
			t.placing.Lock()
			if n.in == nil && e.Branch.add(n) {
				n.in = &e.Branch
			}
		}
	}
	if registered, _ := n.cluster.calls.Find(n.entrance.name); registered != n {
		n.takeOutLocked()
		if n.below == nil {
			n.below = parent // for the goroutine that is just bringing it back
		}
	}
}

// moveBelow prepares a node that is brought back: it is placed below the node that calls it now,
// and other goroutines that find it may place nodes below it at once.
func (t *Tree) moveBelow(n, parent *DefaultNode) {
	n.open()
	t.placing.Lock()
	n.below = parent
	t.placing.Unlock()
}

func (t *Tree) unplace(n *DefaultNode) {
	t.placing.Lock()
	defer t.placing.Unlock()
	n.takeOutLocked()
}

// takeOutLocked removes the node from the tree. The caller holds Tree.placing.
func (n *DefaultNode) takeOutLocked() {
	if n.in != nil {
		n.in.remove(n)
		n.in = nil
	}
}

// Origin returns the node of a caller of the resource.
func (t *Tree) Origin(c *ClusterNode, name string, now int64) *OriginNode {
	if o := c.origins.items.one.Load(); o != nil && o.name == name {
		return o // as Obtain would find first, without the cost of its generic code
	}
	if o, ok := c.origins.Obtain(name, now); ok {
		return o
	}
	return t.overflowOriginOf(c)
}

func (t *Tree) overflowOriginOf(c *ClusterNode) *OriginNode {
	if c.overflowOrigin.Load() == nil {
		c.overflowOrigin.CompareAndSwap(nil, t.newOrigin(OverflowName, true))
	}
	return c.overflowOrigin.Load()
}

// RestoreCall brings back a call node that was found retired after a call was counted on it: below
// the node that the call came from, as in [Tree.Call].
func (t *Tree) RestoreCall(n, parent *DefaultNode, now int64) {
	n.cluster.calls.restore(n.entrance.name, n, func(n *DefaultNode) { t.moveBelow(n, parent) })
	t.place(n, now)
}

// MakeRoom evicts idle nodes, at most once per second and by one caller at a time.
func (t *Tree) MakeRoom(now int64) {
	if !t.sweeping.TryLock() {
		return
	}
	defer t.sweeping.Unlock()
	if now >= t.nextSweep {
		t.nextSweep = now + sweepPause
		t.sweepLocked(now, sweepDepth)
	}
}

// Evict removes every idle node now and returns their number.
func (t *Tree) Evict(now int64) int {
	t.sweeping.Lock()
	defer t.sweeping.Unlock()
	return t.sweepLocked(now, math.MaxInt)
}

// sweepLocked evicts idle nodes until none is left, in at most depth passes: a node can be evicted
// only after its children. The caller holds sweeping.
func (t *Tree) sweepLocked(now int64, depth int) int {
	evicted := 0
	for range depth {
		n := 0
		for c := range t.resources.Clusters() {
			n += c.calls.Evict(now) + c.origins.Evict(now)
		}
		n += t.resources.Evict(now) + t.entrances.Evict(now)
		evicted += n
		if n == 0 {
			break
		}
	}
	return evicted
}
