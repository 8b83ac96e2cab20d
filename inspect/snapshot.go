package inspect

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/node"
)

// maxDepth is the deepest level of a tree, so that no rendering grows with the
// square of how deeply calls are nested.
const maxDepth = 100

// Snapshot copies everything that the engine counts, as of one reading of its
// clock. Each counter is exact; the nodes, and the counters of a node, are read
// one after the other while calls go on. No call waits for it: it takes the roll
// lock of one node after the other, and calls only try that.
func Snapshot(e *core.Engine) Tree {
	tree := e.Tree()
	overflow, _ := e.FindResource(node.OverflowName)
	r := reader{now: e.Now(), interval: tree.Layout().Interval(), overflow: overflow.ClusterNode}
	rules := e.Rules().RuleFigures()
	return Tree{
		At:        time.Unix(0, r.now).UTC(),
		Root:      r.root(tree),
		Resources: r.resources(e, rules),
		Inbound:   r.node(KindInbound, node.InboundName, &tree.Inbound().StatisticNode),
		Rules:     rules,
		Waiting:   e.Waiting(),
		Failures:  e.Failures(),
		Leaked:    e.Leaked(),
		Caps: Caps{
			Resources: usage(tree.Resources()),
			Contexts:  usage(tree.Contexts()),
			Calls:     usage(tree.Calls()),
			Origins:   usage(tree.Origins()),
		},
	}
}

// reader copies nodes as of one time.
type reader struct {
	now      int64
	interval time.Duration
	overflow *node.ClusterNode // of the resources beyond the cap
}

func (r reader) node(kind Kind, name string, n *node.StatisticNode) Node {
	return Node{Name: name, Kind: kind, Figures: read(n, r.now, r.interval)}
}

func (r reader) root(tree *node.Tree) Node {
	root := Node{Name: node.RootName, Kind: KindRoot}
	for _, e := range tree.Entrances().All() {
		root.Children = append(root.Children, r.entrance(e))
	}
	if overflow := tree.OverflowEntrance(); overflow.Len() > 0 {
		n := r.entrance(overflow)
		n.Overflow = true
		root.Children = append(root.Children, n)
	}
	sortByName(root.Children)
	root.Figures = sum(root.Children, r.interval)
	return root
}

func (r reader) entrance(e *node.EntranceNode) Node {
	n := Node{Name: e.Name(), Kind: KindEntrance, Children: r.calls(e.Children(), 2)}
	n.Figures = sum(n.Children, r.interval)
	return n
}

// calls copies call nodes of one level with all below them. At the last level,
// what is below joins it.
func (r reader) calls(level []*node.DefaultNode, depth int) []Node {
	calls := slices.Grow([]Node(nil), len(level))
	for len(level) > 0 {
		call := level[0]
		level = level[1:]
		n := r.node(KindCall, call.Name(), &call.StatisticNode)
		n.Overflow = call.Cluster() == r.overflow
		if depth < maxDepth {
			n.Children = r.calls(call.Children(), depth+1)
		} else {
			level = append(level, call.Children()...)
		}
		calls = append(calls, n)
	}
	sortByName(calls)
	return calls
}

func (r reader) resources(e *core.Engine, rules []core.RuleFigures) []Node {
	var resources []Node
	breakers := make(map[string][]core.BreakerFigures)
	for _, rule := range rules {
		for _, b := range rule.Breakers {
			breakers[b.Resource] = append(breakers[b.Resource], b)
		}
	}
	e.EachResource(func(res *core.Resource) {
		if !res.Entered() {
			return
		}
		n := r.node(KindResource, res.Name(), &res.StatisticNode)
		n.Overflow = res.ClusterNode == r.overflow
		n.Origins = r.origins(res.ClusterNode)
		n.Breakers = breakers[n.Name]
		resources = append(resources, n)
	})
	sortByName(resources)
	return resources
}

func (r reader) origins(c *node.ClusterNode) []Node {
	var origins []Node
	for name, o := range c.Origins().All() {
		origins = append(origins, r.node(KindOrigin, name, &o.StatisticNode))
	}
	if o := c.OverflowOrigin(); o != nil {
		n := r.node(KindOrigin, o.Name(), &o.StatisticNode)
		n.Overflow = true
		origins = append(origins, n)
	}
	sortByName(origins)
	return origins
}

func usage(b *node.Budget) Usage {
	return Usage{Used: b.Used(), Cap: b.Cap(), Overflows: b.Overflows()}
}
