//go:build sim

package schedules

import "slices"

// access is the next step of a caller.
type access struct {
	object any
	write  bool
	lock   bool // acquires the lock in object
	alone  bool // may depend on anything
}

// clash reports whether the order of two accesses matters.
func (a access) clash(b access) bool {
	return a.alone || b.alone || a.object == b.object && a.object != nil && (a.write || b.write)
}

// Access lets the chooser decide which caller continues. It implements [shared.Scheduler].
func (s *Schedule) Access(object any, write bool) {
	if s.running == nil {
		return // setup or final checks
	}
	s.step("")
	s.running.pending = access{object: object, write: write}
	s.switchTo(s.choose(s.running))
}

// Lock lets the chooser decide among callers that can continue: this one can while nobody holds the
// lock. It implements [shared.Scheduler].
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

// Took records that a lock is held. Callers about to acquire it can't continue.
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

// Unlocked records that a lock is free.
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
