//go:build sim

package schedules

import "slices"

// access is what a caller is about to do.
type access struct {
	object any
	write  bool
	lock   bool // takes the lock that object is
	alone  bool // may depend on anything
}

// clash reports whether it matters which of two accesses comes first.
func (a access) clash(b access) bool {
	return a.alone || b.alone || a.object == b.object && a.object != nil && (a.write || b.write)
}

// Access lets the chooser decide who goes on. It implements [shared.Scheduler].
func (s *Schedule) Access(object any, write bool) {
	if s.running == nil {
		return // setting up, or checking
	}
	s.step("")
	s.running.pending = access{object: object, write: write}
	s.switchTo(s.choose(s.running))
}

// Lock lets the chooser decide who goes on among those who can: the caller can
// while nobody has the lock. It implements [shared.Scheduler].
func (s *Schedule) Lock(mutex any) {
	me := s.running
	if me == nil {
		return
	}
	s.step("")
	me.pending = access{object: mutex, write: true, lock: true}
	if s.locked(mutex) {
		me.blocked = mutex
		s.drop(me)
		s.switchTo(s.choose(nil))
	} else {
		s.switchTo(s.choose(me))
	}
	s.Took(mutex)
}

// Took notes that a lock is taken. Who is about to take it can't go on.
func (s *Schedule) Took(mutex any) {
	if s.running == nil {
		return
	}
	s.locks = append(s.locks, mutex)
	for _, t := range s.tasks {
		if t != s.running && !t.done && t.blocked == nil && t.pending.lock && t.pending.object == mutex {
			t.blocked = mutex
			s.drop(t)
		}
	}
}

// Unlocked notes that a lock is free.
func (s *Schedule) Unlocked(mutex any) {
	i := slices.Index(s.locks, mutex)
	if i < 0 {
		return
	}
	s.locks = slices.Delete(s.locks, i, i+1)
	for _, t := range s.tasks {
		if t.blocked == mutex {
			t.blocked = nil
			s.ready = append(s.ready, t)
		}
	}
}

func (s *Schedule) locked(mutex any) bool { return slices.Contains(s.locks, mutex) }
