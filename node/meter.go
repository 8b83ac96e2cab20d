package node

import (
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/stat"
)

// Meters returns the current windows and semaphores of the node, for code that counts a call there;
// code that decides needs [StatisticNode.FindWindow] and [StatisticNode.NeedSemaphore].
func (n *StatisticNode) Meters() *meter.Set { return n.meters.Load() }

// Metered reports whether any rule uses a meter of the node.
func (n *StatisticNode) Metered() bool { return n.meters.Load() != nil }

// Window returns the window for m, and makes it if there is none. The shape must be valid.
//
// A new window is published first and then seeded, from the node's recent counts (or from seed, the
// window of the same rule in another shape): a call that passes in between may be counted twice but
// is never missed, and the error is gone after one interval. A rule that needs the window to decide
// waits until it is seeded.
func (n *StatisticNode) Window(now int64, m meter.Meter, seed *stat.Window) *stat.Window {
	if w := n.FindWindow(m); w != nil {
		return w
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.meters.Load()
	if w := old.Window(m); w != nil {
		return w
	}
	w, err := stat.NewWindow(m.Shape)
	if err != nil {
		panic(err) // rules are validated before they get here
	}
	n.seeding.Store(true)
	defer n.seeding.Store(false)
	n.meters.Store(old.WithWindow(w, m))
	if seed != nil {
		w.SeedFrom(seed, now)
	} else {
		n.SeedWindow(w, now, n.past)
	}
	return w
}

// Remember makes windows that are made until [StatisticNode.Forget] begin with the node's counts as
// of now, for rules that are in force but reach the node later. If Remember is already in effect,
// it does nothing.
func (n *StatisticNode) Remember(now int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.past == nil {
		n.past = n.Past(now)
	}
}

// Forget ends the effect of Remember.
func (n *StatisticNode) Forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.past = nil
}

// FindWindow returns the window for m, or nil.
func (n *StatisticNode) FindWindow(m meter.Meter) *stat.Window {
	return n.seeded().Window(m)
}

// seeded returns the meters that a decision may use. They are loaded before the flag: while a meter
// is published but not seeded the flag is set, and its maker holds mu until it is seeded.
func (n *StatisticNode) seeded() *meter.Set {
	m := n.meters.Load()
	if !n.seeding.Load() {
		return m
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.meters.Load()
}

// NeedSemaphore returns the node's semaphore for owner, made if there is none. Like a window it is
// published first and then seeded with the units in flight. Code that counts a call counts it first
// and then looks for a semaphore, so every call that did not see the semaphore is in the seed.
// Other calls may be in it too; see [StatisticNode.Settle].
func (n *StatisticNode) NeedSemaphore(owner any) *meter.Semaphore {
	if g := n.seeded().Semaphore(owner); g != nil {
		return g
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.meters.Load()
	if g := old.Semaphore(owner); g != nil {
		return g
	}
	g := new(meter.Semaphore)
	if meter.CountsAll(owner) {
		g.Begin()
		n.seeding.Store(true)
		defer n.seeding.Store(false)
	}
	n.meters.Store(old.WithSemaphore(g, owner))
	if meter.CountsAll(owner) { // calls that didn't acquire a shadow semaphore don't release it either
		g.Seed(n.UnitsInFlight())
		n.Settle(g) // corrects for calls that started or ended since the number was read
	}
	return g
}

// Settle corrects the unseen units of a semaphore of the node, and reports whether there were any.
// A rule that would reject does this first.
func (n *StatisticNode) Settle(g *meter.Semaphore) bool {
	if !g.Settling() {
		return false
	}
	g.Settle(n.UnitsBeside(g.Confirmed))
	return true
}

// KeepMeters drops every window and semaphore that is not wanted. Calls that hold units there give
// them back to the dropped meter.
func (n *StatisticNode) KeepMeters(window func(meter.Meter) bool, semaphore func(owner any) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.meters.Store(n.meters.Load().Keep(window, semaphore))
}
