package inspect

import "iter"

// visit is a node on the way through a tree, in the order in which it is written:
// parents before children. The node is valid until the next visit; what is below it is visited
// separately, and need not be in its fields.
type visit struct {
	*Node
	depth int
	below int  // how many nodes hang right below
	last  bool // no sibling that is shown as text follows
}

// view is a tree as the renderings see it, one node after the other, so that it need
// not be in memory as a whole.
type view struct {
	head      *Tree // without what hangs below the root, and without resources
	details   details
	times     times
	calls     iter.Seq[visit] // the root and all below
	resources iter.Seq[visit] // each followed by its callers
}

func (t *Tree) view() view {
	return view{
		head:      t,
		details:   newDetails(t.Rules),
		times:     newTimes(t.Resources),
		calls:     t.Root.visits,
		resources: func(yield func(visit) bool) { visitAll(t.Resources, 0, yield) },
	}
}

// visits yields the node and all below it.
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
