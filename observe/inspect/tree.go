package inspect

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// Tree is a copy of an engine's counts. It never changes, so goroutines may share it as long as none
// writes to it.
type Tree struct {
	// At is the time of all counts, by the engine's clock.
	At time.Time
	// Root is the parent of the entrances, each with its calls.
	Root Node
	// Resources are the resources that a call has asked for, by name, each with its callers.
	// Resources that only rules name are not included.
	Resources []Node
	// Inbound counts the inbound calls of all resources.
	Inbound Node

	// Rules holds the counts of each rule since it was loaded, in the order of declaration.
	Rules []core.RuleStats

	// Waiting is the number of calls that a rule was delaying when the copy was made.
	Waiting int64
	// Failures is the number of panics of slots. The calls continued without the slot.
	Failures int64
	// Leaked is the number of calls reported because they did not exit in time, if
	// api.Config.LeakAfter is set.
	Leaked int64
	// Caps is the use of the tree's limits.
	Caps Caps
}

// Node is one node of a [Tree].
type Node struct {
	Name string
	Kind NodeKind
	// Overflow reports that the node stands for all names beyond a cap.
	Overflow bool

	Stats

	// Children are sorted by name: below the root the entrances, below an entrance and a call the
	// nested calls. Calls below the 100th level are siblings of their callers.
	Children []Node
	// Origins are the callers of a resource, sorted by name.
	Origins []Node
	// Percentiles are of a resource's response times within the last minute. They are zero if
	// api.Config.Percentiles is off or no call completed.
	Percentiles stat.Percentiles
	// Details are the rules' reports on a resource, in the order of the rules; their types are in
	// the families' packages.
	Details []core.ResourceDetails
	// Units counts what calls of a resource reserved and used of each unit that a rule counts; see
	// api.Cost.
	Units []core.UnitStats
}

// Caps is the number of nodes of each kind, its limit, and the number of overflows. Names in rules,
// and the default context, don't count.
type Caps struct {
	Resources Usage
	Contexts  Usage
	Calls     Usage // pairs of context and resource
	Origins   Usage // pairs of resource and caller
}

// Usage shows how much of a cap is in use.
type Usage struct {
	Used int
	Cap  int
	// Overflows is the number of times that there was no room for a name and its call counted on
	// an overflow node. A name that is used again counts again.
	Overflows int64
}

// Walk yields the root and all nodes below it with their depth, 0 for the root: parents before
// children, children by name.
func (t Tree) Walk() iter.Seq2[int, *Node] {
	return t.Root.all()
}

func (n *Node) all() iter.Seq2[int, *Node] {
	return func(yield func(int, *Node) bool) { n.walk(0, yield) }
}

func (n *Node) walk(depth int, yield func(int, *Node) bool) bool {
	if !yield(depth, n) {
		return false
	}
	for i := range n.Children {
		if !n.Children[i].walk(depth+1, yield) {
			return false
		}
	}
	return true
}

// Resource returns the node of a resource over all contexts, if a call has asked for it.
func (t Tree) Resource(name string) (*Node, bool) { return find(t.Resources, name) }

// Origin returns the node of a caller of a resource.
func (t Tree) Origin(resource, origin string) (*Node, bool) {
	r, ok := t.Resource(resource)
	if !ok {
		return nil, false
	}
	return find(r.Origins, origin)
}

// Entrance returns the node of a context; "" is the default one.
func (t Tree) Entrance(context string) (*Node, bool) {
	return find(t.Root.Children, cmp.Or(context, node.DefaultContext))
}

// Call returns the node of a resource in a context, at any depth; "" is the default context.
func (t Tree) Call(context, resource string) (*Node, bool) {
	entrance, ok := t.Entrance(context)
	if !ok {
		return nil, false
	}
	for _, n := range entrance.all() {
		if n.Kind == NodeCall && n.Name == resource {
			return n, true
		}
	}
	return nil, false
}

func find(sorted []Node, name string) (*Node, bool) {
	i, ok := slices.BinarySearchFunc(sorted, name, func(n Node, name string) int {
		return strings.Compare(n.Name, name)
	})
	if !ok {
		return nil, false
	}
	return &sorted[i], true
}
