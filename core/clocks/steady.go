package clocks

import (
	"time"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// Steady turns a clock that may be set (a wall clock, or one that differs between processors) into
// a time that doesn't go backwards. Rules and counters only move forward: if the clock were set
// back by an hour and they followed it, they would stand still for that hour. It is safe for
// concurrent use.
//
// # A step back is ignored
//
// The time is the source's reading plus offset. If the source goes back, the offset grows by the
// same amount: time continues from where it was, at the pace of the source. The time between the
// last reading before the step and the first after it is lost; nothing is gained.
//
// A caller reads latest first, then the source. The source had already shown the time in latest; so
// an older reading doesn't mean that the caller was delayed: the source itself went back. Going
// back by up to stepTolerance counts as the difference between two processors, and time stands
// still for as long: less than the shortest interval of a rule. Readings that would differ by less
// than readingGrain are not written to latest, so that callers on many processors share a word that
// seldom changes. In return, time may go back for a caller by up to readingGrain, and by up to
// stepTolerance while the source goes back. All users of the time tolerate callers that are
// slightly late.
//
// line changes with the offset, and is odd during a change. A caller that finds it even and the
// same before and after has an offset and a reading that belong together; any other caller reads
// again under the lock.
//
// # A step forward counts as time, unless it reverses a step back
//
// Time that passed without calls can't be distinguished from a clock that was set forward, so a
// step forward counts: every rule sees an idle time, and admits accordingly. But a clock that is
// set back and corrected, or that alternates between the times of two processors, must not gain
// that much each time. So the offset before the latest step back is kept. If a reading with that
// offset also continues the current time, with less time passed, it counts as a return to that
// offset. It may fall short by stepTolerance, and time stands still for as long. So a step back by
// hardly more than the tolerance counts as corrected as soon as the time between two readings has
// made up for the excess.
//
// That happens once per step, and a difference between processors may precede it. So with a source
// that is never set, the loss is at most twice the tolerance, a grain and the time between two
// readings; after that, time passes as in the source.
type Steady struct {
	source Clock

	line   shared.Uint64
	offset shared.Int64 // from the source to the time
	latest shared.Int64 // reading of the source

	mu     shared.Mutex // guards changes of any of these
	before int64        // offset before the latest step back; a larger value after its correction
}

const (
	readingGrain  = int64(100 * time.Microsecond)
	stepTolerance = int64(stat.MinInterval)
)

// NewSteady returns nil for a clock that can't be set.
func NewSteady(source Clock) *Steady {
	switch source.(type) {
	case *System, *Coarse, *Manual:
		return nil
	}
	s := &Steady{source: source}
	s.latest.Store(s.read())
	return s
}

// read returns the source's reading, within the range of times.
func (s *Steady) read() int64 { return inRange(s.source.Now()) }

// time returns the time of a reading, at most lastTime.
func (s *Steady) time(reading, offset int64) int64 { return reading + min(offset, lastTime-reading) }

// Now returns a time that doesn't go back.
func (s *Steady) Now() int64 {
	line, offset, latest := s.line.Load(), s.offset.Load(), s.latest.Load()
	reading := s.read()
	if reading < latest && !within(reading, latest, stepTolerance) || reading > latest && !within(latest, reading, readingGrain) {
		return s.advance()
	}
	if line%2 == 1 || s.line.Load() != line {
		return s.advance()
	}
	return s.time(max(reading, latest), offset)
}

// advance takes another reading, under the lock, and makes it the latest.
func (s *Steady) advance() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	offset, latest := s.offset.Load(), s.latest.Load()
	now := s.time(latest, offset)
	reading := s.read()
	switch {
	case reading >= latest:
		if s.before < offset && s.time(reading, s.before) >= now-stepTolerance {
			return s.turnLocked(s.before, max(reading, now-s.before))
		}
		s.latest.Store(reading)
		return s.time(reading, offset)
	case within(reading, latest, stepTolerance):
		return now
	default:
		return s.turnLocked(now-reading, reading)
	}
}

// turnLocked continues with another offset. The caller holds mu.
func (s *Steady) turnLocked(offset, latest int64) int64 {
	s.before = s.offset.Load()
	s.line.Add(1)
	s.offset.Store(offset)
	s.latest.Store(latest)
	s.line.Add(1)
	return s.time(latest, offset)
}

// within reports whether to is at most d after from and not before it, even if their difference
// overflows.
func within(from, to, d int64) bool { return uint64(to)-uint64(from) <= uint64(d) }
