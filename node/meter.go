package node

import (
	"github.com/penstock-go/penstock/stat"
)

// Meter names one window of a node. Rules that agree on the shape share a
// window, in which every call of the node counts. A rule that is not to count them
// all has one to itself, named by Owner, in which counts what it admits. So has one
// that changed its shape, in which every call counts all the same, see [Era].
type Meter struct {
	Shape stat.Shape
	Owner any // nil for the shared window; otherwise a comparable value
	Era   Era
}

// Era tells windows of one shape apart. A rule that comes to another shape goes on in a
// window that no rule had before it, and that it shares with none: what is there is
// exactly what was handed over and what the rule took. Calls that still stand under
// older rules may use the windows that these had.
type Era struct {
	Rule     string // empty for the first
	Revision uint64
}

// MeteredWindow is a window of a node.
type MeteredWindow struct {
	*stat.Window
	Meter
}

// MeteredGauge is a gauge of a node, with the rule it is for as in [Meter]. In one
// that nobody owns, or [Everybody], every call of the node counts.
type MeteredGauge struct {
	*stat.Gauge
	Owner any
	all   bool
}

// Everybody is the owner of a gauge in which every call of the node counts, beside the
// one that nobody owns: for a family whose permits a call does not hold while it waits
// for them. The text tells families apart.
type Everybody string

// All reports whether every call of the node counts in the gauge.
func (g *MeteredGauge) All() bool { return g.all }

func countsAll(owner any) bool {
	if owner == nil {
		return true
	}
	_, all := owner.(Everybody)
	return all
}

// meters are what a node meters. They don't change once published.
type meters struct {
	windows []MeteredWindow
	gauges  []MeteredGauge
}

func (n *StatisticNode) metersIdle(now int64) bool {
	m := n.meters.Load()
	if m == nil {
		return true
	}
	for _, w := range m.windows {
		if w.Sum(now) != 0 || w.Waiting(now) != 0 {
			return false
		}
	}
	for _, g := range m.gauges {
		n.Settle(g.Gauge)
		if g.InUse() != 0 || g.InLine() != 0 {
			return false
		}
	}
	return true
}

func (m *meters) window(meter Meter) *stat.Window {
	if m == nil {
		return nil
	}
	for i := range m.windows {
		if m.windows[i].Meter == meter {
			return m.windows[i].Window
		}
	}
	return nil
}

func (m *meters) gauge(owner any) *stat.Gauge {
	if m == nil {
		return nil
	}
	for i := range m.gauges {
		if m.gauges[i].Owner == owner {
			return m.gauges[i].Gauge
		}
	}
	return nil
}

// Windows are the windows of the node. The slice must not be changed.
func (n *StatisticNode) Windows() []MeteredWindow {
	if m := n.meters.Load(); m != nil {
		return m.windows
	}
	return nil
}

// Gauges are the gauges of the node. The slice must not be changed.
func (n *StatisticNode) Gauges() []MeteredGauge {
	if m := n.meters.Load(); m != nil {
		return m.gauges
	}
	return nil
}

// Metered reports whether any rule looks at the node.
func (n *StatisticNode) Metered() bool { return n.meters.Load() != nil }

// Window returns the window that meters as told, made if there is none.
//
// A new window is published first and seeded then, from what the node counted
// lately (or from seed, the window of the same rule in another shape): a call
// that passes in between is counted twice, never not at all, and the error is
// gone after one interval. Who wants to decide by the window waits until it is
// seeded. The shape must be valid.
func (n *StatisticNode) Window(now int64, meter Meter, seed *stat.Window) *stat.Window {
	if w := n.FindWindow(meter); w != nil {
		return w
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.meters.Load()
	if w := old.window(meter); w != nil {
		return w
	}
	w, err := stat.NewWindow(meter.Shape)
	if err != nil {
		panic(err) // rules are validated before they get here
	}
	n.seeding.Store(true)
	defer n.seeding.Store(false)
	n.replaceMeters(old, func(m *meters) {
		m.windows = append(m.windows, MeteredWindow{Window: w, Meter: meter})
	})
	if seed != nil {
		w.SeedFrom(seed, now)
	} else {
		n.SeedWindow(w, now)
	}
	return w
}

// FindWindow returns the window that meters as told, or nil.
func (n *StatisticNode) FindWindow(meter Meter) *stat.Window {
	return n.seeded().window(meter)
}

// seeded are the meters that a decision may look at. They are loaded before the
// flag: one that is published but not seeded is behind a raised flag, and its maker
// holds mu until it is.
func (n *StatisticNode) seeded() *meters {
	m := n.meters.Load()
	if !n.seeding.Load() {
		return m
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.meters.Load()
}

// Gauge returns the node's gauge for owner (see [Meter]), or nil. It is for who
// counts a call there; who decides wants [StatisticNode.NeedGauge].
func (n *StatisticNode) Gauge(owner any) *stat.Gauge { return n.meters.Load().gauge(owner) }

// NeedGauge returns the node's gauge for owner, made if there is none. Like a
// window it is published first and seeded then, with the units in flight. Who
// counts a call counts it first and looks for a gauge then, so every call that did
// not see the gauge is in the seed. Others may be in it as well, see
// [StatisticNode.Settle].
func (n *StatisticNode) NeedGauge(owner any) *stat.Gauge {
	if g := n.seeded().gauge(owner); g != nil {
		return g
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.meters.Load()
	if g := old.gauge(owner); g != nil {
		return g
	}
	g := new(stat.Gauge)
	if countsAll(owner) {
		g.Begin()
		n.seeding.Store(true)
		defer n.seeding.Store(false)
	}
	n.replaceMeters(old, func(m *meters) {
		m.gauges = append(m.gauges, MeteredGauge{Gauge: g, Owner: owner, all: countsAll(owner)})
	})
	if countsAll(owner) { // calls that never saw a shadow gauge never leave it either
		g.Seed(n.UnitsInFlight())
		n.Settle(g) // who came or went since the number was read did so in vain
	}
	return g
}

// Settle corrects what the node's gauge holds for calls that it never saw, if it
// holds any, and reports whether it did. A rule that would refuse does this first.
func (n *StatisticNode) Settle(g *stat.Gauge) bool {
	if !g.Settling() {
		return false
	}
	g.Settle(n.UnitsBeside(g.Confirmed))
	return true
}

// KeepMeters drops every window and gauge that is not wanted. Calls that hold
// something there give it back to what was dropped.
func (n *StatisticNode) KeepMeters(window func(Meter) bool, gauge func(owner any) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.meters.Load()
	if old == nil {
		return
	}
	next := new(meters)
	for _, w := range old.windows {
		if window(w.Meter) {
			next.windows = append(next.windows, w)
		}
	}
	for _, g := range old.gauges {
		if gauge(g.Owner) {
			next.gauges = append(next.gauges, g)
		} else {
			g.Retire()
		}
	}
	if len(next.windows)+len(next.gauges) == 0 {
		next = nil
	}
	n.meters.Store(next)
}

// replaceMeters publishes a changed copy. The caller holds mu.
func (n *StatisticNode) replaceMeters(old *meters, change func(*meters)) {
	next := new(meters)
	if old != nil {
		next.windows = append(next.windows, old.windows...)
		next.gauges = append(next.gauges, old.gauges...)
	}
	change(next)
	n.meters.Store(next)
}
