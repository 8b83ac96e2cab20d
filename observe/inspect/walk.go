package inspect

import "iter"

// visit is a node on a walk through a tree, in the order of output: parents before children. The
// node is valid until the next visit; its descendants are visited separately, and need not be in
// its fields.
type visit struct {
	*Node
	depth int
	below int  // number of children
	last  bool // no sibling in the text follows
}

// view is a tree that is rendered node by node, so that it need not be in memory as a whole.
type view struct {
	head      *Tree // without the descendants of the root, and without resources
	details   details
	times     times
	units     units
	calls     iter.Seq[visit] // the root and its descendants
	resources iter.Seq[visit] // each followed by its callers
}

func (t *Tree) view() view {
	return view{
		head:      t,
		details:   newDetails(t.Rules),
		times:     newTimes(t.Resources),
		units:     newUnits(t.Resources),
		calls:     t.Root.visits,
		resources: func(yield func(visit) bool) { visitAll(t.Resources, 0, yield) },
	}
}

// visits yields the node and its descendants.
func (n *Node) visits(yield func(visit) bool) { n.visit(0, true, yield) }

func (n *Node) visit(depth int, last bool, yield func(visit) bool) bool {
	return yield(visit{n, depth, len(n.Children) + len(n.Origins), last}) &&
		visitAll(n.Children, depth+1, yield) && visitAll(n.Origins, depth+1, yield)
}

func visitAll(nodes []Node, depth int, yield func(visit) bool) bool {
	last := len(nodes) - 1
	for last > 0 && nodes[last].Kind == NodeEntrance && len(nodes[last].Children) == 0 {
		last--
	}
	for i := range nodes {
		if !nodes[i].visit(depth, i == last, yield) {
			return false
		}
	}
	return true
}
