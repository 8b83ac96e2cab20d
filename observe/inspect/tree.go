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

// Tree is a copy of everything that an engine counts. It doesn't change by itself, so goroutines
// may share one as long as none writes to it.
type Tree struct {
	// At is the time of all figures, by the engine's clock.
	At time.Time
	// Root is above the entrances, each with the calls that came in there.
	Root Node
	// Resources are those that a call has asked for, by name, each with its callers.
	// What only a rule names is not among them.
	Resources []Node
	// Inbound is the inbound calls of all resources.
	Inbound Node

	// Rules is what each rule has done since it was loaded, in the order in which
	// they were declared.
	Rules []core.RuleStats

	// Waiting is how many calls were asleep when the copy was made, because a rule told them to
	// wait.
	Waiting int64
	// Failures is how often a slot panicked. The call went on without that slot.
	Failures int64
	// Leaked is how many calls were reported because they did not exit in time, where
	// api.Config.LeakAfter says to watch for that.
	Leaked int64
	// Caps is how full the tree is.
	Caps Caps
}

// Node is one node of a [Tree].
type Node struct {
	Name string
	Kind NodeKind
	// Overflow marks a node that represents all names beyond a cap.
	Overflow bool

	Stats

	// Children are sorted by name: below the root the entrances, below an entrance
	// and a call the calls nested there. Calls below the 100th level are beside
	// their caller instead of below it.
	Children []Node
	// Origins are the callers of a resource, sorted by name.
	Origins []Node
	// Percentiles are of the response times of a resource within the last minute, the zero value
	// where api.Config.Percentiles is off or nothing completed.
	Percentiles stat.Percentiles
	// Details are what rules report of a resource, in the order of the rules, in types of their
	// families.
	Details []core.ResourceDetails
}

// Caps is how many nodes there are of each kind, how many there may be, and how
// often a name found no place. What rules name, and the default context, is
// outside the caps.
type Caps struct {
	Resources Usage
	Contexts  Usage
	Calls     Usage // pairs of context and resource
	Origins   Usage // pairs of resource and caller
}

// Usage is how far a cap is used up.
type Usage struct {
	Used int
	Cap  int
	// Overflows is how often a name found no place, and so a call was counted on an
	// overflow node. A name that comes again counts again.
	Overflows int64
}

// Walk yields the root and all below it with their depth, the root's being 0:
// parents before children, children by name.
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

// Resource returns the node of a resource over all contexts, if a call has asked
// for it.
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

// Call returns the node of a resource in a context, however deep it is; "" is
// the default context.
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
