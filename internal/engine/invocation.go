package engine

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
)

// Invocation is one call on its way through the chain. Slots read it, and record their findings and
// reservations on it. It belongs to the goroutine that makes the call, is pooled, and must not be
// kept.
type Invocation struct {
	// word has the generation and flags; see Entry. It outlives the call.
	word        shared.Uint64
	engine      *Engine
	lane        uint32 // nearly an index of the processor, since the pool keeps objects per processor
	valued      bool   // values were asked for
	held        []Reservation
	completions []Completion
	last        *Resource // of the previous call
	beyond      string    // name of the call, set only if that is beyond the cap
	leak        *watched  // nil unless leaks are watched for; it belongs to the state, as held does
	params      []param
	costs       []cost
	values      []Occurrence           // last result of ArgValues
	key         argument.Tuple         // for the keys of several parts
	places      map[argument.Value]int // index of values, if those are many
	index       *places                // of held and completions, if those are many
	turns       []*turn                // turns that the call waits for; then unused turns of earlier calls
	nap         clocks.Nap
	fetching    *fetching // nil until some call that the invocation served had wants

	ahead, behind *Invocation // its neighbors among the calls that sleep; see drain
	homes         []*Resource // of the rules that count the call together with others; see together.go

	_ [48]byte

	// The size is a whole number of cache lines (on 64 bits; a test pins it), so that the
	// invocations of two processors, side by side on the heap, never share one.

	call // everything about the current call; reset as a whole
}

type call struct {
	ctx      context.Context
	context  *Context
	resource *Resource
	bound    *binding

	began  int64         // when the call asked to enter
	now    int64         // when it is decided on, released or exits
	runs   int64         // when a call that borrowed is to run, 0 for others
	waited int64         // its wait before it ran; see ServiceTime
	firm   time.Duration // minimum wait, regardless of its turns
	units  int64
	args   []any

	endpoint string // server of the call, "" if not given

	step  int   // number of the step in the stage
	stage stage // progress through the chain; see steps

	inbound     bool
	prioritized bool
	failed      bool
	waits       bool // a rule makes it wait, or queues it
	queues      bool // the current checker has put it into a queue for a turn that it awaits
	shares      bool // it waits for a turn in a share

	level level // its own criticality; see Level

	waiter *waiter                                     // its place in the queue; nil for nearly all calls
	left   func(context.Context) (time.Duration, bool) // see InboundWithin; nil for no limit

	entrance *node.EntranceNode
	node     *node.DefaultNode
	origin   *node.OriginNode
	nodes    [4]*node.StatisticNode
	nodeLen  int
	counted  int  // number of nodes on which the call is counted as passed
	joint    bool // the second of nodes is the resource's, and includes the counts of the call node

	asksMore  bool // for a running call; see [Entry.More]
	uncosted  bool // see NamesNoCost
	longLived bool // these are here because they make no call larger
	neutral   bool

	retry      bool // by option; see [Invocation.Retry]
	overloaded bool // see [Invocation.Overloaded]

	wants         bool // it has wants, or had
	later         bool // it still has wants, to fetch after its wait or after taking
	holdsFleeting bool // it holds units that it must not keep through a wait
	fetches       bool // it has fetched units
	fetched       bool // it has done so after a wait
}

// Engine returns the engine that the call runs through.
func (inv *Invocation) Engine() *Engine { return inv.engine }

// Lane returns the lane on which the call is counted; see [stat.Counters].
func (inv *Invocation) Lane() uint32 { return inv.lane }

// Now returns the time of the current phase: when the call asked to enter, was released after a
// wait, or exited. Slots don't read the clock.
func (inv *Invocation) Now() int64 { return inv.now }

// Began returns the time at which the call asked to enter.
func (inv *Invocation) Began() int64 { return inv.began }

// Runs returns the time whose bucket the call is metered in: Now, or for a call that borrowed the
// start of the bucket that it borrowed from.
func (inv *Invocation) Runs() int64 { return max(inv.now, inv.runs) }

// LongLived reports whether the call has no response time; see the option of that name.
func (inv *Invocation) LongLived() bool { return inv.longLived }

// RT returns the response time of the call, which exits now, since it asked to enter: never
// negative, except for [Untimed].
func (inv *Invocation) RT() time.Duration {
	if inv.longLived {
		return Untimed
	}
	return time.Duration(max(0, inv.now-inv.began))
}

// ServiceTime is [Invocation.RT] less the call's own waits for rules: in a throttle or a queue, for
// a borrowed bucket, for the store of a shared limit. It includes waits of nested calls.
func (inv *Invocation) ServiceTime() time.Duration {
	if inv.longLived {
		return Untimed
	}
	return time.Duration(max(0, inv.now-inv.began-inv.waited))
}

// Untimed is the response time of calls that have none; see [LongLived].
const Untimed time.Duration = -1

// Borrowed reports whether the call waits, or waited, for a borrowed bucket.
func (inv *Invocation) Borrowed() bool { return inv.runs != 0 }

// Units returns the units that the call takes, at least 1.
func (inv *Invocation) Units() int64 { return inv.units }

// Inbound reports whether the call comes from outside.
func (inv *Invocation) Inbound() bool { return inv.inbound }

// Prioritized reports whether the call may borrow.
func (inv *Invocation) Prioritized() bool { return inv.prioritized }

// Retry reports whether the call is another attempt of one that failed.
func (inv *Invocation) Retry() bool {
	return inv.retry || inv.context != nil && inv.context.retry
}

// Args returns the arguments given with the call.
func (inv *Invocation) Args() []any { return inv.args }

// Endpoint returns the server of the call, or "" if the caller didn't name it; see [Endpoint].
func (inv *Invocation) Endpoint() string { return inv.endpoint }

// Failed reports whether the call was marked failed, which is known when it completes.
func (inv *Invocation) Failed() bool { return inv.failed }

// Neutral reports whether the call's result says nothing about the resource, because its own
// context was cancelled or a nested call was rejected; see [Entry.Fail]. It is known when the call
// completes. A call that failed is not neutral.
func (inv *Invocation) Neutral() bool { return inv.neutral }

// Overloaded reports whether the server had too much to do for the call, or didn't answer in time;
// see [Overloaded]. It is known when the call completes.
func (inv *Invocation) Overloaded() bool { return inv.overloaded }

// Name returns the name that the call asked for, which differs from the resource's beyond the cap.
func (inv *Invocation) Name() string {
	if inv.resource == inv.engine.resources.overflow {
		return inv.beyond
	}
	return inv.resource.Name()
}

// Resource returns the resource of the call.
func (inv *Invocation) Resource() *Resource { return inv.resource }

// Origin returns the name of the caller, or "" if there is none.
func (inv *Invocation) Origin() string {
	if inv.context == nil {
		return ""
	}
	return inv.context.origin
}

// Context returns the caller's context, never nil. Slots may read its values; they must not keep
// it.
func (inv *Invocation) Context() context.Context { return inv.ctx }

// ContextName returns the name of the context that the call came in through.
func (inv *Invocation) ContextName() string {
	if inv.context == nil || inv.context.name == "" {
		return node.DefaultContext
	}
	return inv.context.name
}

// Waits reports whether a rule that took earlier makes the call wait, or has queued it, so that
// rules will be asked again before it runs (see [Rechecker]).
func (inv *Invocation) Waits() bool { return inv.waits }

// Rules returns the rules of a family for the resource, as returned by the family's Bind, or nil.
func (inv *Invocation) Rules(kind core.Kind) Checker { return inv.bound.rules[kind] }

// Place finds the call node: in its context, below the enclosing call. It is the first of the
// nodes, so that the call is counted there before anything reads the meters of the resource's node,
// which may include it.
func (inv *Invocation) Place() {
	tree := inv.engine.tree
	entrance, parent := inv.context.place(tree, inv.now)
	inv.entrance = entrance
	inv.node = tree.Call(entrance, inv.resource.ClusterNode, parent, inv.now)
	alone := inv.nodeLen == 0
	if !alone { // in this chain the cluster builder comes first
		copy(inv.nodes[1:], inv.nodes[:inv.nodeLen])
	}
	inv.nodes[0] = &inv.node.StatisticNode
	inv.nodeLen++
	if inv.joint = inv.node.Joint(); inv.joint && alone {
		inv.addNode(&inv.resource.StatisticNode) // counted there even without a cluster builder
	}
}

// PlaceCluster adds the resource's node, the caller's, and the inbound root to the nodes on which
// the call is counted, if they apply.
func (inv *Invocation) PlaceCluster() {
	inv.resource.MarkEntered()
	if !inv.joint {
		inv.addNode(&inv.resource.StatisticNode)
	}
	if origin := inv.Origin(); origin != "" {
		inv.origin = inv.engine.tree.Origin(inv.resource.ClusterNode, origin, inv.now)
		inv.addNode(&inv.origin.StatisticNode)
	}
	if inv.inbound {
		inv.addNode(&inv.engine.tree.Inbound().StatisticNode)
	}
}

func (inv *Invocation) addNode(n *node.StatisticNode) {
	inv.nodes[inv.nodeLen] = n
	inv.nodeLen++
}

// Node returns the call node, or nil before the node selector ran.
func (inv *Invocation) Node() *node.DefaultNode { return inv.node }

// OriginNode returns the node of the caller, or nil if the call has none.
func (inv *Invocation) OriginNode() *node.OriginNode { return inv.origin }

// Nodes returns the nodes that the call is counted on; see [Invocation.Writes].
func (inv *Invocation) Nodes() []*node.StatisticNode { return inv.nodes[:inv.nodeLen] }

// Writes reports whether the call is to be counted on node i itself. If not, that node includes the
// counts of the call node; see [node.DefaultNode.Joint].
func (inv *Invocation) Writes(i int) bool { return i != 1 || !inv.joint }

// Counted returns the Nodes on which the call was counted as passed. Only there may its completion
// be counted.
func (inv *Invocation) Counted() []*node.StatisticNode { return inv.nodes[:inv.counted] }

// MarkCounted records that the call was counted as passed on one more node.
func (inv *Invocation) MarkCounted() { inv.counted++ }
