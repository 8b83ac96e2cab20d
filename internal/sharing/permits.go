package sharing

import (
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shared"
)

// permits are those that the store counts for a member. Calls take them and give them back without
// the mutex of the [Semaphore]; where processors contend, its lanes keep them for the next call there.
//
// # Giving permits up
//
// The store counts at least good for the member until expires. Before the member tells the store of
// fewer, it stores the new good, and then reads what is in use, which it tells the store as well. A
// call takes within the good that it has loaded, then loads good once more, and gives back what it
// took if good is less by then. So a call that took before that read is counted in it, and one that
// took after it sees the new number when it looks again. So at every instant the store counts at least
// the permits that calls took within good.
//
// The call that gives back and looks again was never let in. While it has what it took, another call
// may find too few, and ask the store.
type permits struct {
	inUse   meter.Semaphore
	good    shared.Int64
	expires shared.Int64 // by the member's clock
	peak    shared.Int64 // the most that were in use since giveUp; permits that lanes keep count as well
}

// take takes n permits at now, if the member has as many.
func (p *permits) take(lane uint32, now, n int64) bool {
	for {
		good := p.good.Load()
		if now >= p.expires.Load() || !p.inUse.TryAcquire(lane, n, good) {
			return false
		}
		if p.good.Load() >= good {
			p.note()
			return true
		}
		p.inUse.Release(lane, n)
	}
}

// takeWithin takes n permits that the store doesn't know of, if so many calls may run.
func (p *permits) takeWithin(n, limit int64) bool {
	if !p.inUse.TryAcquire(0, n, limit) {
		return false
	}
	p.note()
	return true
}

// note notes how many are in use.
func (p *permits) note() {
	for n := p.inUse.Counted(); ; {
		if peak := p.peak.Load(); n <= peak || p.peak.CompareAndSwap(peak, n) {
			return
		}
	}
}

// goodAt returns the permits that calls may have at now, by the last reply.
func (p *permits) goodAt(now int64) int64 {
	if now >= p.expires.Load() {
		return 0
	}
	return p.good.Load()
}

// has reports whether take would take.
func (p *permits) has(now, n int64) bool {
	return now < p.expires.Load() && p.inUse.Fits(n, p.good.Load())
}

// giveUp gives up the permits that have not been in use since it was last called, and returns how many
// are in use then. It is for the holder of the semaphore's mutex.
func (p *permits) giveUp() (used int64) {
	used = p.inUse.InUse()
	spare := p.good.Load() - max(used, p.peak.Swap(used))
	p.good.Add(-max(0, spare))
	if used = p.inUse.InUse(); used == 0 {
		p.inUse.Rest()
	}
	return used
}
