package slots

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// statistic counts the outcome of a call on each of its nodes, and meters the call in those of
// their windows and semaphores in which no rule has reserved it.
type statistic struct{}

// Name returns "statistic".
func (statistic) Name() string { return "statistic" }

// Passed counts the admission.
func (statistic) Passed(inv *engine.Invocation) {
	if inv.HasCosts() {
		inv.CountCosts()
	}
	for i, n := range inv.Nodes() {
		if inv.Writes(i) {
			n.AddPass(inv.Lane(), inv.Now(), inv.Units())
			if inv.Borrowed() {
				n.AddOccupied(inv.Lane(), inv.Now(), inv.Units())
			}
		}
		inv.MarkCounted()
		if n.Metered() { // after counting: see node.StatisticNode.NeedSemaphore
			if w := n.Meters().SoleWindow(); w == nil || inv.HeldBucket(w) == nil { // nearly all calls hold it
				meterCall(inv, n)
			}
		}
	}
}

// Blocked counts the rejection.
func (statistic) Blocked(inv *engine.Invocation, _ *core.BlockError) {
	if inv.HasCosts() {
		inv.CountRefusedCosts()
	}
	for i, n := range inv.Nodes() {
		if inv.Writes(i) {
			n.AddBlock(inv.Lane(), inv.Now(), inv.Units())
		}
	}
}

// Completed counts the end of the call on the nodes where its admission was counted.
func (statistic) Completed(inv *engine.Invocation) {
	if inv.HasCosts() {
		inv.CountSettledCosts()
	}
	if inv.LongLived() {
		longLived(inv)
		return
	}
	rt := inv.Now() - inv.Began()
	for i, n := range inv.Counted() {
		if inv.Writes(i) {
			n.AddComplete(inv.Lane(), inv.Now(), inv.Units(), rt, inv.Failed())
		}
	}
}

// longLived is like Completed, but for a call without a response time.
func longLived(inv *engine.Invocation) {
	for i, n := range inv.Counted() {
		if inv.Writes(i) {
			n.AddLongLived(inv.Lane(), inv.Now(), inv.Units(), inv.Failed())
		}
	}
}

// meterCall meters the call on a node on which it was just counted. Windows made in the meantime
// either continue from windows that counted it, or count it too: twice rather than not at all.
func meterCall(inv *engine.Invocation, n *node.StatisticNode) {
	windows := n.Meters().Windows()
	if len(windows) > manyWindows {
		countMore(inv, windows, nil)
	} else {
		for i := range windows {
			if w := &windows[i]; w.All() && inv.HeldBucket(w.Window) == nil {
				inv.MeterBucket(w.Window)
			}
		}
	}
	for now := n.Meters().Windows(); !same(now, windows); now = n.Meters().Windows() {
		countMore(inv, now, windows)
		windows = now
	}
	semaphores := n.Meters().Semaphores()
	for i := range semaphores {
		if g := &semaphores[i]; g.All() {
			inv.MeterSemaphore(g.Semaphore)
			if g.Settling() {
				n.Settle(g.Semaphore) // a call that settled in the meantime mistook this one for another
			}
		}
	}
}

// manyWindows is the number of windows at which meterCall no longer searches the call's
// reservations for each.
const manyWindows = 32

// countMore meters the call in the new windows, if they count all calls and no rule has reserved it
// there.
func countMore(inv *engine.Invocation, windows, before []meter.MeteredWindow) {
	counted := make(map[*stat.Window]bool, len(before))
	for i := range before {
		counted[before[i].Window] = true
	}
	for i := range windows {
		if w := &windows[i]; w.All() && inv.FindBucket(w.Window) == nil && !counted[w.Window] {
			inv.MeterBucket(w.Window)
		}
	}
}

// same reports whether two lists of a node's windows are the same list: they are immutable once
// published.
func same(a, b []meter.MeteredWindow) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
