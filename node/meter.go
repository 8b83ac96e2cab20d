package node

import (
	"slices"

	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/stat"
)

// Meter names one window of a node. Rules that agree on the shape share a
// window, in which every call of the node counts. A rule that must not count all calls has a
// window to itself, named by Owner, in which only what it admits counts. A rule that changed its
// shape has one too, but there every call counts; see [Era].
type Meter struct {
	Shape stat.Shape
	Owner any // nil for the shared window; otherwise a comparable value
	Era   Era
}

// Era distinguishes windows of one shape. A rule that changes to another shape continues in a
// window that no rule had before it and that it shares with none: this holds exactly what was
// handed over and what the rule took. Calls that are still judged by older rules may use the older
// rules' windows.
type Era struct {
	Rule     string // empty for the first
	Revision uint64
}

// MeteredWindow is a window of a node.
type MeteredWindow struct {
	*stat.Window
	Meter
	all bool
}

// All reports whether every call of the node counts in the window.
func (w *MeteredWindow) All() bool { return w.all }

// MeteredSemaphore is a semaphore of a node. Owner names the rule it is for, as in [Meter]. If it
// has no owner, or its owner is [Shared], every call of the node counts in it.
type MeteredSemaphore struct {
	*meter.Semaphore
	Owner any
	all   bool
}

// Shared is the owner of a semaphore in which every call of the node counts, in addition to the one
// without an owner: for a family whose permits a call does not hold while it waits for them. The
// text distinguishes families.
type Shared string

// All reports whether every call of the node counts in the semaphore.
func (g *MeteredSemaphore) All() bool { return g.all }

// ShadowOwner owns a meter for a rule in shadow mode. Of is the owner that the meter would have
// otherwise: if that is nil, every call of the node counts there, separately from what enforced
// rules look at. A node may leave whatever such a meter holds, as if the meter didn't exist.
type ShadowOwner struct{ Of any }

func isShadow(owner any) bool {
	_, is := owner.(ShadowOwner)
	return is
}

func countsAll(owner any) bool {
	switch owner := owner.(type) {
	case nil, Shared:
		return true
	case ShadowOwner:
		return countsAll(owner.Of)
	}
	return false
}

// meters are what a node meters. They don't change once published: their successors continue in the
// same lists, beyond the end of these.
type meters struct {
	windows    []MeteredWindow
	semaphores []MeteredSemaphore

	// For nodes with many; nil for all others.
	windowAt    *index[Meter]
	semaphoreAt *index[any]
}

func (m *meters) meterAt(place int) Meter { return m.windows[place].Meter }
func (m *meters) ownerAt(place int) any   { return m.semaphores[place].Owner }

// grown is a copy with room in the indexes for one more of each.
func (m *meters) grown() *meters {
	next := new(meters)
	if m != nil {
		*next = *m
	}
	if n := len(next.windows); n >= manyMeters && (next.windowAt == nil || next.windowAt.full()) {
		next.windowAt = newIndex(n, next.meterAt)
	}
	if n := len(next.semaphores); n >= manyMeters && (next.semaphoreAt == nil || next.semaphoreAt.full()) {
		next.semaphoreAt = newIndex(n, next.ownerAt)
	}
	return next
}

func (m *meters) addWindow(w MeteredWindow) {
	if m.windowAt != nil {
		m.windowAt.add(w.Meter, len(m.windows))
	}
	m.windows = append(m.windows, w)
}

func (m *meters) addSemaphore(g MeteredSemaphore) {
	if m.semaphoreAt != nil {
		m.semaphoreAt.add(g.Owner, len(m.semaphores))
	}
	m.semaphores = append(m.semaphores, g)
}

// metersIdle is Idle for the meters of a node whose counters are.
func (n *StatisticNode) metersIdle(now int64) bool {
	m := n.meters.Load()
	if m == nil {
		return true
	}
	m.rest()
	for _, w := range m.windows {
		if !isShadow(w.Owner) && (w.Sum(now) != 0 || w.Waiting(now) != 0) {
			return false
		}
	}
	for _, g := range m.semaphores {
		if isShadow(g.Owner) {
			continue
		}
		n.Settle(g.Semaphore)
		if g.InUse() != 0 || g.Queued() != 0 {
			return false
		}
	}
	return true
}

// rest releases what the meters need only while processors contend for them. The node's counters
// are idle.
func (m *meters) rest() {
	for _, w := range m.windows {
		w.Rest()
	}
	for _, g := range m.semaphores {
		g.Rest()
	}
}

func (m *meters) window(meter Meter) *stat.Window {
	if m == nil {
		return nil
	}
	if m.windowAt != nil {
		if place := m.windowAt.find(meter, len(m.windows), m.meterAt); place >= 0 {
			return m.windows[place].Window
		}
		return nil
	}
	for i := range m.windows {
		if m.windows[i].Meter == meter {
			return m.windows[i].Window
		}
	}
	return nil
}

func (m *meters) semaphore(owner any) *meter.Semaphore {
	if m == nil {
		return nil
	}
	if m.semaphoreAt != nil {
		if place := m.semaphoreAt.find(owner, len(m.semaphores), m.ownerAt); place >= 0 {
			return m.semaphores[place].Semaphore
		}
		return nil
	}
	for i := range m.semaphores {
		if m.semaphores[i].Owner == owner {
			return m.semaphores[i].Semaphore
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

// Semaphores are the semaphores of the node. The slice must not be changed.
func (n *StatisticNode) Semaphores() []MeteredSemaphore {
	if m := n.meters.Load(); m != nil {
		return m.semaphores
	}
	return nil
}

// Metered reports whether any rule looks at the node.
func (n *StatisticNode) Metered() bool { return n.meters.Load() != nil }

// SoleWindow returns the window in which every call of the node counts, if the node meters
// nothing else; otherwise nil.
func (n *StatisticNode) SoleWindow() *stat.Window {
	m := n.meters.Load()
	if m == nil || len(m.windows) != 1 || len(m.semaphores) != 0 || !m.windows[0].all {
		return nil
	}
	return m.windows[0].Window
}

// Judged reports whether an enforced rule looks at the node.
func (n *StatisticNode) Judged() bool {
	held := func(owner any) bool { return !isShadow(owner) }
	return slices.ContainsFunc(n.Windows(), func(w MeteredWindow) bool { return held(w.Owner) }) ||
		slices.ContainsFunc(n.Semaphores(), func(g MeteredSemaphore) bool { return held(g.Owner) })
}

// Window returns the window for meter, and makes it if there is none.
//
// A new window is published first and then seeded, from what the node counted lately (or from
// seed, the window of the same rule in another shape): a call that passes in between may be
// counted twice but is never missed, and the error is gone after one interval. A rule that needs
// the window to decide waits until it is seeded. The shape must be valid.
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
	next := old.grown()
	next.addWindow(MeteredWindow{Window: w, Meter: meter, all: countsAll(meter.Owner)})
	n.meters.Store(next)
	if seed != nil {
		w.SeedFrom(seed, now)
	} else {
		n.SeedWindow(w, now, n.past)
	}
	return w
}

// Remember makes the windows that are made until [StatisticNode.Forget] begin with what the node
// has counted by now. They are for rules that are in force and will get to the node later. What
// is already remembered is kept.
func (n *StatisticNode) Remember(now int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.past == nil {
		n.past = n.Past(now)
	}
}

// Forget ends what Remember began.
func (n *StatisticNode) Forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.past = nil
}

// FindWindow returns the window for meter, or nil.
func (n *StatisticNode) FindWindow(meter Meter) *stat.Window {
	return n.seeded().window(meter)
}

// seeded are the meters that a decision may look at. They are loaded before the flag: a meter that
// is published but not seeded has the flag raised, and its maker holds mu until it is seeded.
func (n *StatisticNode) seeded() *meters {
	m := n.meters.Load()
	if !n.seeding.Load() {
		return m
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.meters.Load()
}

// Semaphore returns the node's semaphore for owner (see [Meter]), or nil. It is for code that
// counts a call there; code that decides needs [StatisticNode.NeedSemaphore].
func (n *StatisticNode) Semaphore(owner any) *meter.Semaphore {
	return n.meters.Load().semaphore(owner)
}

// NeedSemaphore returns the node's semaphore for owner, made if there is none. Like a window it
// is published first and then seeded with the units in flight. Code that counts a call counts it
// first and then looks for a semaphore, so every call that did not see the semaphore is in the
// seed. Others may be in it too, see [StatisticNode.Settle].
func (n *StatisticNode) NeedSemaphore(owner any) *meter.Semaphore {
	if g := n.seeded().semaphore(owner); g != nil {
		return g
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.meters.Load()
	if g := old.semaphore(owner); g != nil {
		return g
	}
	g := new(meter.Semaphore)
	if countsAll(owner) {
		g.Begin()
		n.seeding.Store(true)
		defer n.seeding.Store(false)
	}
	next := old.grown()
	next.addSemaphore(MeteredSemaphore{Semaphore: g, Owner: owner, all: countsAll(owner)})
	n.meters.Store(next)
	if countsAll(owner) { // calls that never saw a shadow semaphore never leave it either
		g.Seed(n.UnitsInFlight())
		n.Settle(g) // corrects for calls that came or went since the number was read
	}
	return g
}

// Settle corrects what the node's semaphore holds for calls that it never saw, if it
// holds any, and reports whether it did. A rule that would refuse does this first.
func (n *StatisticNode) Settle(g *meter.Semaphore) bool {
	if !g.Settling() {
		return false
	}
	g.Settle(n.UnitsBeside(g.Confirmed))
	return true
}

// KeepMeters drops every window and semaphore that is not wanted. Calls that hold something there
// give it back to the dropped meter.
func (n *StatisticNode) KeepMeters(window func(Meter) bool, semaphore func(owner any) bool) {
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
		} else {
			w.Retire()
		}
	}
	for _, g := range old.semaphores {
		if semaphore(g.Owner) {
			next.semaphores = append(next.semaphores, g)
		} else {
			g.Retire()
		}
	}
	switch {
	case len(next.windows)+len(next.semaphores) == 0:
		n.meters.Store(nil)
	case len(next.windows) < len(old.windows) || len(next.semaphores) < len(old.semaphores):
		n.meters.Store(next.grown())
	}
}
