package slots

import (
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/node"
)

// Statistic counts what became of a call on each of its nodes, and meters it in
// those windows and gauges of theirs in which no rule has reserved it.
type Statistic struct{}

// Name is "statistic".
func (Statistic) Name() string { return "statistic" }

// Passed counts the admission.
func (Statistic) Passed(inv *core.Invocation) {
	for i, n := range inv.Nodes() {
		if inv.Writes(i) {
			n.AddPass(inv.Lane(), inv.Now(), inv.Units())
			if inv.Borrowed() {
				n.AddOccupied(inv.Lane(), inv.Now(), inv.Units())
			}
		}
		inv.MarkCounted()
		if n.Metered() { // after counting: see node.StatisticNode.NeedGauge
			meter(inv, n)
		}
	}
}

// Blocked counts the refusal.
func (Statistic) Blocked(inv *core.Invocation, _ *core.BlockError) {
	for i, n := range inv.Nodes() {
		if inv.Writes(i) {
			n.AddBlock(inv.Lane(), inv.Now(), inv.Units())
		}
	}
}

// Completed counts the end of the call where its admission was counted.
func (Statistic) Completed(inv *core.Invocation) {
	rt := inv.Now() - inv.Began()
	for i, n := range inv.Counted() {
		if inv.Writes(i) {
			n.AddComplete(inv.Lane(), inv.Now(), inv.Units(), rt, inv.Failed())
		}
	}
}

// meter meters the call on a node on which it was just counted. Windows that come while it
// does go on from those that it has counted in, or it counts in them too: twice rather
// than not at all.
func meter(inv *core.Invocation, n *node.StatisticNode) {
	windows := n.Windows()
	count(inv, windows, nil)
	for now := n.Windows(); !same(now, windows); now = n.Windows() {
		count(inv, now, windows)
		windows = now
	}
	gauges := n.Gauges()
	for i := range gauges {
		if g := &gauges[i]; g.All() {
			inv.MeterGauge(g.Gauge)
			if g.Settling() {
				n.Settle(g.Gauge) // who did so while the call was on its way here took it for one more
			}
		}
	}
}

// count meters the call in the windows of all calls in which no rule has reserved it,
// but for those that it was counted in before.
func count(inv *core.Invocation, windows, before []node.MeteredWindow) {
	for i := range windows {
		if w := &windows[i]; w.Owner == nil && inv.HeldBucket(w.Window) == nil && !slices.Contains(before, *w) {
			w.AddAt(inv.Now(), inv.Runs(), inv.Units())
		}
	}
}

// same reports whether two lists of a node's windows are one: they don't change once
// published.
func same(a, b []node.MeteredWindow) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
