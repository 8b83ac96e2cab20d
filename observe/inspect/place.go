package inspect

import (
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
)

// maxDepth is the deepest level of a tree. It keeps renderings from growing with the square of the
// nesting.
const maxDepth = 100

// place is a node of the engine and its position in a tree.
type place struct {
	kind     NodeKind
	name     string
	overflow bool
	counted  *node.StatisticNode // nil if the counts are sums
	branch   *node.Branch        // the descendants of an entrance or a call
	resource *engine.Resource    // of a resource
}

// reader finds and reads the nodes of an engine as of one time. It appends places in the order of
// the tree.
type reader struct {
	engine   *engine.Engine
	now      int64
	interval time.Duration
	overflow *node.ClusterNode // of the resources beyond the cap
}

func newReader(e *engine.Engine) reader {
	overflow, _ := e.FindResource(node.OverflowName)
	return reader{engine: e, now: e.Now(), interval: e.Tree().Layout().Interval(), overflow: overflow.ClusterNode}
}

// head returns the tree without entrances and resources.
func (r reader) head() Tree {
	tree := r.engine.Tree()
	t := Tree{
		At:       time.Unix(0, r.now).UTC(),
		Root:     Node{Name: node.RootName, Kind: NodeRoot, Stats: Stats{Interval: r.interval}},
		Inbound:  Node{Name: node.InboundName, Kind: NodeInbound},
		Rules:    append(r.engine.Rules().RuleStats(), r.engine.CustomStats()...),
		Waiting:  r.engine.Waiting(),
		Failures: r.engine.Failures(),
		Leaked:   r.engine.Leaked(),
		Caps: Caps{
			Resources: usage(tree.Resources()),
			Contexts:  usage(tree.Contexts()),
			Calls:     usage(tree.Calls()),
			Origins:   usage(tree.Origins()),
		},
	}
	t.Inbound.read(&tree.Inbound().StatisticNode, r.now, r.interval)
	return t
}

func usage(b *node.Budget) Usage {
	return Usage{Used: b.Used(), Cap: b.Cap(), Overflows: b.Overflows()}
}

func (r reader) entrances() (places []place) {
	tree := r.engine.Tree()
	for _, e := range tree.Entrances().All() {
		places = append(places, place{kind: NodeEntrance, name: e.Name(), branch: &e.Branch})
	}
	if e := tree.OverflowEntrance(); e.Len() > 0 {
		places = append(places, place{kind: NodeEntrance, name: e.Name(), overflow: true, branch: &e.Branch})
	}
	sortPlaces(places)
	return places
}

// calls appends the calls of one level, the children of branch. At the last level, deeper calls
// join them.
func (r reader) calls(places []place, branch *node.Branch, depth int) []place {
	calls := branch.Children()
	for i := 0; depth == maxDepth && i < len(calls); i++ {
		calls = append(calls, calls[i].Children()...)
	}
	first := len(places)
	places = slices.Grow(places, len(calls))
	for _, c := range calls {
		places = append(places, place{
			kind: NodeCall, name: c.Name(), overflow: c.Cluster() == r.overflow,
			counted: &c.StatisticNode, branch: &c.Branch,
		})
	}
	sortPlaces(places[first:])
	return places
}

func (r reader) resources(places []place) []place {
	first := len(places)
	places = slices.Grow(places, r.engine.Tree().Resources().Used())
	r.engine.EachResource(func(res *engine.Resource) {
		if res.Entered() {
			places = append(places, place{
				kind: NodeResource, name: res.Name(), overflow: res.ClusterNode == r.overflow,
				counted: &res.StatisticNode, resource: res,
			})
		}
	})
	sortPlaces(places[first:])
	return places
}

func (r reader) origins(places []place, c *node.ClusterNode) []place {
	first := len(places)
	for name, o := range c.Origins().All() {
		places = append(places, place{kind: NodeOrigin, name: name, counted: &o.StatisticNode})
	}
	if o := c.OverflowOrigin(); o != nil {
		places = append(places, place{kind: NodeOrigin, name: o.Name(), overflow: true, counted: &o.StatisticNode})
	}
	sortPlaces(places[first:])
	return places
}

// below appends the children of a place at depth.
func (r reader) below(places []place, p *place, depth int) []place {
	switch {
	case p.resource != nil:
		return r.origins(places, p.resource.ClusterNode)
	case p.branch != nil && depth < maxDepth:
		return r.calls(places, p.branch, depth+1)
	}
	return places
}

// sortPlaces sorts by name. An overflow node follows an ordinary one with the same name.
func sortPlaces(places []place) {
	slices.SortFunc(places, func(a, b place) int {
		if c := strings.Compare(a.name, b.name); c != 0 || a.overflow == b.overflow {
			return c
		}
		if a.overflow {
			return 1
		}
		return -1
	})
}
