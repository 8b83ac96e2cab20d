package stat

import (
	"github.com/penstock-go/penstock/internal/shared"
)

// Gauge meters units in flight exactly: [Gauge.TryAcquire] checks and counts in
// one atomic step, so a limit holds whatever the schedule. The zero value is an
// empty gauge. It is safe for concurrent use.
//
// # Calls that it never saw
//
// A gauge may be made while calls are in flight. [Gauge.Seed] tells it how many;
// as they end, [Gauge.ReleaseUnseen] counts them down. The number comes from
// counters that were read while calls came and went, so it may be too high, never
// too low, and what is too much would stay for ever. So the gauge settles: while
// some are unseen, each call that is counted in those counters and held here says
// so ([Gauge.Confirm]); what the counters show in flight beyond the confirmed is an
// upper bound of the unseen, and [Gauge.Settle] takes it. Each bound is safe, and
// one that is read while nobody comes or goes is exact.
//
// # The line
//
// Calls that get nothing may wait in line, see [Gauge.Join]. Under mu, the first in
// line never fits: whatever lowers the total, raises the limit or takes somebody out
// of the line hands what is free to the first in line before it lets go of mu. So
// nobody waits while there is room, and a permit goes from one call to the next
// without having been anybody's in between. Who is woken is woken under no lock.
type Gauge struct {
	// used mirrors held+unseen and is written under mu only, so a refusal
	// needs no lock: what it loads is an exact total that stood at that instant.
	used     shared.Int64
	settling shared.Bool  // mirrors unseen > 0 || expecting
	inLine   shared.Int64 // mirrors the length of the line

	mu        shared.Mutex
	held      int64
	unseen    int64
	confirmed int64 // of those held, counted elsewhere as well
	expecting bool  // from Begin to Seed
	line      line
}

// TryAcquire takes n units if the total stays within limit.
func (g *Gauge) TryAcquire(n, limit int64) bool {
	if g.used.Load() > limit-n {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held+g.unseen > limit-n {
		return false
	}
	g.add(n, 0)
	return true
}

// Acquire takes n units whatever the total.
func (g *Gauge) Acquire(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(n, 0)
}

// Release gives back n units that were acquired.
func (g *Gauge) Release(n int64) {
	g.mu.Lock()
	g.add(-n, 0)
	g.unlock()
}

// Fits reports whether n more units would stay within limit, without taking
// them.
func (g *Gauge) Fits(n, limit int64) bool { return g.used.Load() <= limit-n }

// InUse is the units in flight.
func (g *Gauge) InUse() int64 { return g.used.Load() }

// Held is the units that were acquired and not released: 0 when all is done.
func (g *Gauge) Held() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held
}

// Begin makes the gauge expect a [Gauge.Seed]. It comes before the gauge can be
// seen by calls.
func (g *Gauge) Begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expecting = true
	g.settling.Store(true)
}

// Seed adds n units that were in flight before the gauge was there, or more.
func (g *Gauge) Seed(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expecting = false
	g.add(0, max(n, 0))
	g.settling.Store(g.expecting || g.unseen > 0)
}

// ReleaseUnseen ends n units that are in flight without having been acquired.
func (g *Gauge) ReleaseUnseen(n int64) {
	g.mu.Lock()
	g.add(0, -min(n, g.unseen))
	g.settling.Store(g.expecting || g.unseen > 0)
	g.unlock()
}

// Settling reports whether units that the gauge never saw are in flight.
func (g *Gauge) Settling() bool { return g.settling.Load() }

// Confirm says that n units held here have been counted elsewhere as well. They
// are given back with [Gauge.ReleaseConfirmed].
func (g *Gauge) Confirm(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.confirmed += n
}

// ReleaseConfirmed gives back n units that were acquired and confirmed. It comes
// before their end is counted elsewhere.
func (g *Gauge) ReleaseConfirmed(n int64) {
	g.mu.Lock()
	g.confirmed -= n
	g.add(-n, 0)
	g.unlock()
}

// Confirmed is the units held here that are counted elsewhere as well.
func (g *Gauge) Confirmed() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.confirmed
}

// Settle says that at most n units are unseen.
func (g *Gauge) Settle(n int64) {
	g.mu.Lock()
	g.add(0, -max(0, g.unseen-max(n, 0)))
	g.settling.Store(g.expecting || g.unseen > 0)
	g.unlock()
}

// add is the only writer. The caller holds mu.
func (g *Gauge) add(held, unseen int64) {
	g.held += held
	g.unseen += unseen
	g.used.Store(g.held + g.unseen)
}
