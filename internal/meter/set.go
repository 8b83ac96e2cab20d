package meter

import (
	"slices"

	"github.com/penstock-go/penstock/stat"
)

// Set holds the windows and semaphores of a node. It is immutable once published: its successors
// append to the same lists, beyond the end of this set's. A nil Set is empty.
type Set struct {
	windows    []MeteredWindow
	semaphores []MeteredSemaphore

	// For nodes with many meters; nil for all others.
	windowAt    *index[Meter]
	semaphoreAt *index[any]
}

// Windows returns the windows. The slice must not be changed.
func (s *Set) Windows() []MeteredWindow {
	if s == nil {
		return nil
	}
	return s.windows
}

// Semaphores returns the semaphores. The slice must not be changed.
func (s *Set) Semaphores() []MeteredSemaphore {
	if s == nil {
		return nil
	}
	return s.semaphores
}

// SoleWindow returns the window in which every call of the node counts, if there is no other meter;
// otherwise it returns nil.
func (s *Set) SoleWindow() *stat.Window {
	if s == nil || len(s.windows) != 1 || len(s.semaphores) != 0 || !s.windows[0].all {
		return nil
	}
	return s.windows[0].Window
}

// Judged reports whether any meter is for an enforced rule.
func (s *Set) Judged() bool {
	held := func(owner any) bool { return !isShadow(owner) }
	return slices.ContainsFunc(s.Windows(), func(w MeteredWindow) bool { return held(w.Owner) }) ||
		slices.ContainsFunc(s.Semaphores(), func(g MeteredSemaphore) bool { return held(g.Owner) })
}

// Window returns the window for m, or nil.
func (s *Set) Window(m Meter) *stat.Window {
	if s == nil {
		return nil
	}
	if s.windowAt != nil {
		if place := s.windowAt.find(m, len(s.windows), s.meterAt); place >= 0 {
			return s.windows[place].Window
		}
		return nil
	}
	for i := range s.windows {
		if s.windows[i].Meter == m {
			return s.windows[i].Window
		}
	}
	return nil
}

// Semaphore returns the semaphore for owner, or nil.
func (s *Set) Semaphore(owner any) *Semaphore {
	if s == nil {
		return nil
	}
	if s.semaphoreAt != nil {
		if place := s.semaphoreAt.find(owner, len(s.semaphores), s.ownerAt); place >= 0 {
			return s.semaphores[place].Semaphore
		}
		return nil
	}
	for i := range s.semaphores {
		if s.semaphores[i].Owner == owner {
			return s.semaphores[i].Semaphore
		}
	}
	return nil
}

func (s *Set) meterAt(place int) Meter { return s.windows[place].Meter }
func (s *Set) ownerAt(place int) any   { return s.semaphores[place].Owner }

// WithWindow returns the set with an additional window. A set has at most one successor.
func (s *Set) WithWindow(w *stat.Window, m Meter) *Set {
	next := s.grown()
	if next.windowAt != nil {
		next.windowAt.add(m, len(next.windows))
	}
	next.windows = append(next.windows, MeteredWindow{Window: w, Meter: m, all: CountsAll(m.Owner)})
	return next
}

// WithSemaphore returns the set with an additional semaphore. A set has at most one successor.
func (s *Set) WithSemaphore(g *Semaphore, owner any) *Set {
	next := s.grown()
	if next.semaphoreAt != nil {
		next.semaphoreAt.add(owner, len(next.semaphores))
	}
	next.semaphores = append(next.semaphores, MeteredSemaphore{Semaphore: g, Owner: owner, all: CountsAll(owner)})
	return next
}

// grown returns a copy with room in the indexes for one more of each.
func (s *Set) grown() *Set {
	next := new(Set)
	if s != nil {
		*next = *s
	}
	if n := len(next.windows); n >= manyMeters && (next.windowAt == nil || next.windowAt.full()) {
		next.windowAt = newIndex(n, next.meterAt)
	}
	if n := len(next.semaphores); n >= manyMeters && (next.semaphoreAt == nil || next.semaphoreAt.full()) {
		next.semaphoreAt = newIndex(n, next.ownerAt)
	}
	return next
}

// Keep returns the set without the windows and semaphores that are not wanted, which are retired.
// It returns nil if nothing remains.
func (s *Set) Keep(window func(Meter) bool, semaphore func(owner any) bool) *Set {
	if s == nil {
		return nil
	}
	next := new(Set)
	for _, w := range s.windows {
		if window(w.Meter) {
			next.windows = append(next.windows, w)
		} else {
			w.Retire()
		}
	}
	for _, g := range s.semaphores {
		if semaphore(g.Owner) {
			next.semaphores = append(next.semaphores, g)
		} else {
			g.Retire()
		}
	}
	switch {
	case len(next.windows)+len(next.semaphores) == 0:
		return nil
	case len(next.windows) < len(s.windows) || len(next.semaphores) < len(s.semaphores):
		return next.grown()
	}
	return s
}

// Idle reports whether nothing counts at now, except for rules in shadow mode. It is called when
// the node's counters are idle, so it releases memory needed only under contention. settle corrects
// the unseen units of a semaphore.
func (s *Set) Idle(now int64, settle func(*Semaphore) bool) bool {
	if s == nil {
		return true
	}
	s.Rest()
	for _, w := range s.windows {
		if !isShadow(w.Owner) && (w.Sum(now) != 0 || w.Waiting(now) != 0) {
			return false
		}
	}
	for _, g := range s.semaphores {
		if isShadow(g.Owner) {
			continue
		}
		settle(g.Semaphore)
		if g.InUse() != 0 || g.Queued() != 0 {
			return false
		}
	}
	return true
}

// Rest releases memory needed only under contention.
func (s *Set) Rest() {
	for _, w := range s.Windows() {
		w.Rest()
	}
	for _, g := range s.Semaphores() {
		g.Rest()
	}
}
