package sharing

import (
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/internal/lending"
	"github.com/penstock-go/penstock/internal/shared"
)

// lease holds the units that calls spend until a time; all are of one lot.
//
// Lot and units share one word, so a unit is taken from the lot that the word names, or not at all:
// if a call is delayed between load and swap and the lot changes, its swap fails. The end is stored
// before the word that names its lot. So a call that loads the word and then the end sees the end
// of that lot or of a later one, and in the latter case its swap fails.
//
// # Lanes
//
// When processors contend for the word, the lease lends: a call that finds nothing on its lane
// moves a part of the units there, under the window's mutex, and later calls on that lane spend it.
// They write to the lane's cell and only read the word.
//
//  1. The units on lanes belong to the lot that the word names: they are collected before the word names
//     another lot, or none.
//  2. If the word doesn't say that the lease lends, lanes hold no units.
//
// A call that spends on its lane loads the credit, then the word, then the end, and then swaps the
// loaded credit for a new one. If that succeeds nothing was collected meanwhile, or the credit
// would have another version (see [lending.Credit]); by (1) the units are of the loaded word's lot,
// and the end is that lot's. By (2) no call is refused, and none asks the store, while another lane
// has the units: as long as the word says that the lease lends, only the holder of the mutex can
// find that there are none.
//
// Only the holder of the window's mutex lends, collects, adds units and closes the lot; calls take
// units, and give them back to the word if it still names their lot.
type lease struct {
	word   shared.Uint64                   // lot number (32 bits), lends (1), units (31)
	end    shared.Int64                    // the lot may be spent until then
	low    shared.Int64                    // with fewer units in the word, fetch more
	lanes  shared.Pointer[lending.Credits] // nil without recent contention
	failed shared.Uint32                   // failed swaps of the word since the lot began
	_      [4]byte
	lentAt int64 // latest lending; guarded by the mutex
	_      [128 - 6*8]byte
}

const (
	lotShift  = 32
	lends     = 1 << 31
	unitsMask = lends - 1
	mostUnits = cluster.MaxThreshold // of a lot
)

func lotOf(word uint64) uint32  { return uint32(word >> lotShift) }
func unitsOf(word uint64) int64 { return int64(word & unitsMask) }

// take takes n units at now. ranLow reports whether few remain. If it fails, the holder of the mutex
// may still find some, see draw.
func (l *lease) take(lane uint32, now, n int64) (number uint32, ranLow, ok bool) {
	for all := l.lanes.Load(); all != nil; {
		cell := all.Of(lane)
		credit := cell.Load() // first, see above
		word := l.word.Load()
		if now >= l.end.Load() {
			return 0, false, false
		}
		if lending.Held(credit) < max(n, 1) {
			if n <= all.Part(unitsOf(word)) {
				return 0, false, false // more is lent under the mutex
			}
			break
		}
		if cell.Spend(credit, n) {
			return lotOf(word), false, true
		}
	}
	return l.takeShared(now, n)
}

// takeShared takes n units from the word.
func (l *lease) takeShared(now, n int64) (number uint32, ranLow, ok bool) {
	for {
		word := l.word.Load()
		units := unitsOf(word)
		if units < n || now >= l.end.Load() {
			return 0, false, false
		}
		if l.word.CompareAndSwap(word, word-uint64(n)) {
			return lotOf(word), l.leavesFew(units, n), true
		}
		if l.failed.Add(1) == lending.After && lending.Units(units, lending.Lanes(lending.Procs())) > 0 {
			l.lanes.CompareAndSwap(nil, lending.NewCredits())
		}
	}
}

// leavesFew reports whether taking n units brings the word below low, and it wasn't before.
func (l *lease) leavesFew(units, n int64) bool {
	low := l.low.Load()
	return units-n < low && units >= low
}

// few reports whether the word has fewer units than low.
func (l *lease) few() bool { return unitsOf(l.word.Load()) < l.low.Load() }

// has reports whether the word has n units at now.
func (l *lease) has(now, n int64) bool {
	return unitsOf(l.word.Load()) >= n && now < l.end.Load()
}

// giveBack returns n units to a lot, and reports false if the lot has ended.
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

// The methods below must be called with the window's mutex held.

// open begins a lot. The previous one, if any, must have been closed.
func (l *lease) open(number uint32, units, end int64) {
	if l.failed.Load() != 0 {
		l.failed.Store(0)
	}
	if lending.Always && l.lanes.Load() == nil {
		l.lanes.Store(lending.NewCredits())
	}
	l.end.Store(end)
	l.low.Store((units + 1) / 2)
	l.word.Store(uint64(number)<<lotShift | uint64(units))
}

// add adds units to the lot.
func (l *lease) add(units, end int64) {
	l.end.Store(max(l.end.Load(), end))
	l.low.Store((units + 1) / 2)
	l.word.Add(uint64(units))
}

// close ends the lot and returns its unspent units.
func (l *lease) close(now int64) (unspent int64) {
	l.collect()
	if l.lanes.Load() != nil && !lending.Always && now-l.lentAt > idleLanes {
		l.lanes.Store(nil) // they are empty: a call that still has a cell finds nothing to spend
	}
	return unitsOf(l.word.Swap(0))
}

// idleLanes is the time without contention after which lanes are removed.
const idleLanes = int64(time.Minute)

// units returns all units, including those on lanes.
func (l *lease) units() (units int64) {
	word := l.word.Load()
	if units = unitsOf(word); word&lends != 0 {
		units += l.lanes.Load().Held()
	}
	return units
}

// draw is take from the word and all lanes. It fails only if all together are too few.
func (l *lease) draw(now, n int64) (number uint32, ranLow, ok bool) {
	if number, ranLow, ok = l.takeShared(now, n); !ok {
		l.collect()
		number, ranLow, ok = l.takeShared(now, n)
	}
	return number, ranLow, ok
}

// drain takes up to n units from the word and all lanes, and returns how many.
func (l *lease) drain(now, n int64) (taken int64) {
	if now >= l.end.Load() {
		return 0
	}
	l.collect()
	for {
		word := l.word.Load()
		taken = min(n, unitsOf(word))
		if l.word.CompareAndSwap(word, word-uint64(taken)) {
			return taken
		}
	}
}

// lend moves a part of the units to a lane that has fewer than n, if there are lanes, and reports
// whether few remain.
func (l *lease) lend(lane uint32, now, n int64) (ranLow bool) {
	all := l.lanes.Load()
	if all == nil || lending.Held(all.Of(lane).Load()) >= n {
		return false
	}
	for {
		word := l.word.Load()
		units := unitsOf(word)
		part := all.Part(units)
		if part == 0 {
			return false
		}
		if l.word.CompareAndSwap(word, word-uint64(part)|lends) {
			all.Of(lane).Lend(part)
			l.lentAt = now
			return l.leavesFew(units, part)
		}
	}
}

// collect moves the units on lanes back to the word.
func (l *lease) collect() {
	if l.word.Load()&lends == 0 {
		return
	}
	for n := uint64(l.lanes.Load().Collect()); ; { // no call spends on a lane from here on
		if word := l.word.Load(); l.word.CompareAndSwap(word, word&^lends+n) {
			return
		}
	}
}
