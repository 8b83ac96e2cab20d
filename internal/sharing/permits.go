package sharing

import (
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shared"
)

// permits are the permits that the store counts for a member. Calls take and release them without
// the mutex of the [Semaphore]; under contention, lanes keep them for the next call there.
//
// # Giving permits up
//
// The store counts at least good permits for the member until expires. Before the member reports
// fewer permits to the store, it sets good to the new number, and then reads the number in use,
// which it reports as well. A call takes permits within the good that it has loaded, then loads good
// again, and gives its permits back if good is now lower. So permits taken before the member's read
// are included in the number it reports, and a call that takes permits after that read sees the new
// good on its second look. At every instant the store counts at least the permits that calls took
// within good.
//
// A call that gives its permits back after its second look was never let in. While it holds them,
// another call may find too few permits, and ask the store.
type permits struct {
	inUse   meter.Semaphore
	good    shared.Int64
	expires shared.Int64 // by the member's clock
	peak    shared.Int64 // the most in use since giveUp, including permits kept by lanes
}

// take takes n permits at now, if the member has them.
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

// takeWithin takes n permits beyond the store's count, if at most limit are then in use.
func (p *permits) takeWithin(n, limit int64) bool {
	if !p.inUse.TryAcquire(0, n, limit) {
		return false
	}
	p.note()
	return true
}

// note updates the peak.
func (p *permits) note() {
	for n := p.inUse.Counted(); ; {
		if peak := p.peak.Load(); n <= peak || p.peak.CompareAndSwap(peak, n) {
			return
		}
	}
}

// goodAt returns the permits available to calls at now, by the latest reply.
func (p *permits) goodAt(now int64) int64 {
	if now >= p.expires.Load() {
		return 0
	}
	return p.good.Load()
}

// has reports whether take would succeed.
func (p *permits) has(now, n int64) bool {
	return now < p.expires.Load() && p.inUse.Fits(n, p.good.Load())
}

// giveUp gives up the permits unused since its previous call, and returns the number in use. The
// caller holds the semaphore's mutex.
func (p *permits) giveUp() (used int64) {
	used = p.inUse.InUse()
	spare := p.good.Load() - max(used, p.peak.Swap(used))
	p.good.Add(-max(0, spare))
	if used = p.inUse.InUse(); used == 0 {
		p.inUse.Rest()
	}
	return used
}
