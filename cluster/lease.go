package cluster

import "github.com/penstock-go/penstock/internal/shared"

// lease is what calls spend: units of one lot, until a time.
//
// Lot and units are one word, so a unit is taken from the lot that the word names, or not at all: a
// call that is delayed between load and swap may find another lot there, and then its swap fails.
// The end is stored before the word that names its lot. So a call that loads the word first and the
// end then finds the end of that lot, or of a later one; and then the swap fails.
//
// Only the holder of the window's mutex adds units and takes the word away; calls take units, and
// give them back to the lot they came from.
type lease struct {
	word shared.Uint64 // the lot's number, 32 bits, and units, 32 bits
	end  shared.Int64  // the lot may be spent until then
	low  shared.Int64  // with fewer units than this, fetch more
	_    [128 - 3*8]byte
}

const (
	unitBits  = 32
	mostUnits = 1 << 30 // of a lot
)

func lotOf(word uint64) uint32  { return uint32(word >> unitBits) }
func unitsOf(word uint64) int64 { return int64(uint32(word)) }

// take takes n units at now. ran reports whether that left few.
func (l *lease) take(now, n int64) (number uint32, ran, ok bool) {
	for {
		word := l.word.Load()
		units := unitsOf(word)
		if units < n || now >= l.end.Load() {
			return 0, false, false
		}
		if l.word.CompareAndSwap(word, word-uint64(n)) {
			low := l.low.Load()
			return lotOf(word), units-n < low && units >= low, true
		}
	}
}

// has reports whether take would take.
func (l *lease) has(now, n int64) bool {
	return unitsOf(l.word.Load()) >= n && now < l.end.Load()
}

// giveBack gives n units back to a lot, unless the lot has ended.
func (l *lease) giveBack(number uint32, n int64) bool {
	for {
		word := l.word.Load()
		if lotOf(word) != number {
			return false
		}
		if l.word.CompareAndSwap(word, word+uint64(n)) {
			return true
		}
	}
}

// The methods below are for the holder of the window's mutex.

// open begins a lot. There must be none.
func (l *lease) open(number uint32, units, end int64) {
	l.end.Store(end)
	l.low.Store((units + 1) / 2)
	l.word.Store(uint64(number)<<unitBits | uint64(units))
}

// add adds units to the lot.
func (l *lease) add(units, end int64) {
	l.end.Store(max(l.end.Load(), end))
	l.low.Store((units + 1) / 2)
	l.word.Add(uint64(units))
}

// close ends the lot, and returns what is left of it.
func (l *lease) close() (unspent int64) { return unitsOf(l.word.Swap(0)) }
