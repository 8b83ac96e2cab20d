package replay

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/observe/inspect"
	"github.com/penstock-go/penstock/stat"
)

// find returns the node that ref names, or nil if there is none.
func find(tree inspect.Tree, ref NodeRef) *inspect.Node {
	var n *inspect.Node
	switch ref.Kind {
	case "resource":
		n, _ = tree.Resource(ref.Resource)
	case "origin":
		n, _ = tree.Origin(ref.Resource, ref.Origin)
	case "call":
		n, _ = tree.Call(ref.Context, ref.Resource)
	case "entrance":
		n, _ = tree.Entrance(ref.Context)
	case "inbound":
		n = &tree.Inbound
	case "root":
		n = &tree.Root
	}
	return n
}

// named reports whether a node may exist only because a rule names it: nothing was ever counted on
// it.
func named(n *inspect.Node) bool {
	return n.Lifetime == stat.Counts{} && len(n.Children) == 0
}

// snapshotOf renders a node's figures in the traces' form.
func snapshotOf(n *inspect.Node) figures {
	rates := n.Rates()
	f := figures{
		"passQps": rates.Pass, "blockQps": rates.Block, "totalQps": n.TotalRate(),
		"successQps": rates.Complete, "exceptionQps": rates.Exception, "occupiedPassQps": rates.Occupied,
		"maxSuccessQps": n.MaxCompleteRate(), "avgRt": ms(n.AvgRT()), "minRt": math.NaN(),
		"curThreadNum": float64(n.InFlight), "waiting": float64(n.Waiting),
		"previousPassQps": float64(n.LastSecond.Pass), "previousBlockQps": float64(n.LastSecond.Block),
	}
	if rt, ok := n.MinRT(); ok {
		f["minRt"] = ms(rt)
	}
	totals(f, &n.Minute)
	f["totalRequest"] = float64(n.Minute.Total())
	return f
}

func totals(f figures, c *stat.Counts) {
	f["totalPass"], f["totalBlock"] = float64(c.Pass), float64(c.Block)
	f["totalSuccess"], f["totalException"] = float64(c.Complete), float64(c.Exception)
}

// historyOf renders the seconds with events. Their average response time is in whole milliseconds
// there.
func historyOf(n *inspect.Node, epoch int64) []figures {
	seconds := []figures{}
	for i := range n.History {
		b := &n.History[i]
		seconds = append(seconds, secondOf(b.Start-epoch, &b.Value))
	}
	return seconds
}

func secondOf(start int64, c *stat.Counts) figures {
	return figures{
		"t": float64(start / int64(time.Millisecond)), "pass": float64(c.Pass), "block": float64(c.Block),
		"success": float64(c.Complete), "exception": float64(c.Exception),
		"avgRt": math.Trunc(ms(c.AvgRT())), "occupiedPass": float64(c.Occupied),
	}
}

// treeOf renders a node and its subtree, without nodes that only rules name.
func treeOf(n *inspect.Node) *treeNode {
	all := snapshotOf(n)
	t := &treeNode{Name: n.Name, Kind: n.Kind.String(), Figures: make(figures)}
	if n.Kind == inspect.NodeEntrance && n.Name == defaultContext {
		t.Name = node.SentinelDefaultContext
	}
	for _, name := range treeFigures {
		t.Figures[name] = all[name]
	}
	for i := range n.Children {
		child := &n.Children[i]
		if child.Kind != inspect.NodeEntrance || !named(child) || child.Name == defaultContext {
			t.Children = append(t.Children, treeOf(child))
		}
	}
	slices.SortFunc(t.Children, func(a, b *treeNode) int { return cmp.Compare(a.Name, b.Name) })
	return t
}

var treeFigures = []string{
	"curThreadNum", "passQps", "blockQps", "successQps", "exceptionQps", "avgRt",
	"totalPass", "totalBlock", "totalSuccess", "totalException",
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
