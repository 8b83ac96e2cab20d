package clocks

import (
	"time"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// Steady turns a clock that may be set (a wall clock, or one that differs from processor to
// processor) into a time that doesn't go back. Rules and counters only move forward, so if the
// clock were set back by an hour and they followed, they would stand still for that hour. It is
// safe for concurrent use.
//
// # A step back is no time
//
// The time is what the source shows plus offset. Where the source goes back, the offset grows by as
// much: time continues from where it was, at the pace of the source. What passed between the last
// reading before the step and the first after it is lost; nothing is gained.
//
// A caller reads latest first, then the source. The source had already shown whatever is in latest;
// so an older reading doesn't mean that the caller was delayed: the source itself went back. Going
// back by up to stepTolerance counts as the difference between two processors, and time stands
// still for as long: less than the shortest interval that a rule can have. Readings that would
// differ by less than readingGrain are not written to latest, so that callers on many processors
// share a word that seldom changes. The price: time may go back for a caller by as much as that,
// and by the tolerance while a source does. Everything here is built to cope with callers that are
// a little late.
//
// line changes with the offset and is odd meanwhile. A caller that finds it even and the same
// before and after has an offset and a reading that belong together; any other caller reads again,
// under the lock.
//
// # A step forward is time, unless it takes a step back
//
// Time that passed without calls can't be distinguished from a clock that was set forward, so a
// step forward counts: every rule sees an idle time, and admits what it would after that. But a
// clock that is set back and corrected, or that shows the time of one processor now and of another
// later, must not gain that much each time. So the offset before the latest step back is kept, and
// a reading that continues the current time by that offset too, with less time passed, counts as
// being back there. It may fall short by stepTolerance, and time stands still for as long. So a
// step back by hardly more than the tolerance counts as corrected as soon as what passes between
// two readings has made up for the rest.
//
// That happens once for a step, and a difference between processors may come before it. So with a
// source that is never set, at most twice the tolerance, a grain and what passes between two
// readings are lost; after that, time passes as it does at the source.
type Steady struct {
	source Clock

	line   shared.Uint64
	offset shared.Int64 // of the time from the source
	latest shared.Int64 // reading of the source

	mu     shared.Mutex // guards changing any of these
	before int64        // the offset before the latest step back; larger after its correction
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

// read is what the source shows, within the range of times.
func (s *Steady) read() int64 { return inRange(s.source.Now()) }

// time is the time of a reading, at most the last one.
func (s *Steady) time(reading, offset int64) int64 { return reading + min(offset, lastTime-reading) }

// Now is a time that doesn't go back.
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

// advance takes one more reading, alone, and makes it the latest.
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
