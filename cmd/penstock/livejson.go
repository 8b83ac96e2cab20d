package main

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/observe/inspect"
	"github.com/penstock-go/penstock/stat"
)

// treeJSON is the tree in the JSON of package inspect.
type treeJSON struct {
	At                        time.Time
	Waiting, Failures, Leaked int64
	Caps                      inspect.Caps
	Root                      nodeJSON
	Resources                 []nodeJSON
	Rules                     []struct {
		Kind                   core.Kind
		ID, Resource           string
		Mode                   spec.Mode
		Asked                  bool
		Refused, ShadowBlocked int64
		ruleDetails
	}
}

// ruleDetails are the details of a rule's family, ready to be shown.
type ruleDetails struct {
	Told  []string `json:"lines"`
	Marks []mark
}

func (d ruleDetails) Lines(time.Time) []string {
	all := make([]string, len(d.Told))
	for i, line := range d.Told {
		all[i] = safe(line, mostShown)
	}
	return all
}

func (d ruleDetails) Resources() []core.ResourceDetails {
	all := make([]core.ResourceDetails, len(d.Marks))
	for i := range all {
		all[i] = d.Marks[i]
	}
	return all
}

// mark is a mark shown next to the calls of a resource.
type mark struct {
	Resource, Text string
	Urgency        int
}

func (m mark) About() string       { return m.Resource }
func (m mark) Mark() (string, int) { return safe(m.Text, mostShown), m.Urgency }

type nodeJSON struct {
	Name                       string
	Kind                       inspect.NodeKind
	Overflow                   bool
	InFlight, Waiting          int64
	Second, LastSecond, Minute countsJSON
	Children                   []nodeJSON
	Units                      []core.UnitStats
	percentilesJSON
}

type countsJSON struct {
	Pass, Block, Complete, Exception, Occupied, Entered, Exited, LongLived int64
	RTMs                                                                   float64
}

func (t treeJSON) tree() inspect.Tree {
	tree := inspect.Tree{At: t.At, Waiting: t.Waiting, Failures: t.Failures, Leaked: t.Leaked, Caps: t.Caps, Root: t.Root.node()}
	for _, r := range t.Resources {
		tree.Resources = append(tree.Resources, r.node())
	}
	for _, r := range t.Rules {
		tree.Rules = append(tree.Rules, core.RuleStats{
			Kind: r.Kind, ID: r.ID, Resource: r.Resource, Mode: r.Mode, Asked: r.Asked, Refused: r.Refused, ShadowBlocked: r.ShadowBlocked,
			Details: r.ruleDetails,
		})
	}
	return tree
}

func (n nodeJSON) node() inspect.Node {
	node := inspect.Node{Name: n.Name, Kind: n.Kind, Overflow: n.Overflow, Stats: inspect.Stats{
		Interval: time.Second, Second: n.Second.counts(), Minute: n.Minute.counts(), InFlight: n.InFlight, Waiting: n.Waiting,
	}, Units: n.Units}
	if n.P50Ms != nil && n.P95Ms != nil && n.P99Ms != nil {
		node.Percentiles = stat.Percentiles{Count: 1, P50: duration(*n.P50Ms), P95: duration(*n.P95Ms), P99: duration(*n.P99Ms)}
	}
	for _, c := range n.Children {
		node.Children = append(node.Children, c.node())
	}
	return node
}

func (c countsJSON) counts() stat.Counts {
	return stat.Counts{
		Pass: c.Pass, Block: c.Block, Complete: c.Complete, Exception: c.Exception, Occupied: c.Occupied,
		Entered: c.Entered, Exited: c.Exited, LongLived: c.LongLived, RT: duration(c.RTMs),
	}
}

func duration(ms float64) time.Duration {
	return time.Duration(math.Round(ms * float64(time.Millisecond)))
}
