package stat

import (
	"sync"
	"sync/atomic"
)

// Gauge meters units in flight exactly: [Gauge.TryAcquire] checks and counts in
// one atomic step, so a limit holds whatever the schedule. The zero value is an
// empty gauge. It is safe for concurrent use.
//
// A gauge may be made while calls are in flight that it never saw. [Gauge.Seed]
// tells it how many; as they end, [Gauge.ReleaseUnseen] counts them down.
type Gauge struct {
	// used mirrors held+unseen and is written under mu only, so a refusal
	// needs no lock: what it loads is an exact total that stood at that instant.
	used atomic.Int64

	mu     sync.Mutex
	held   int64
	unseen int64
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
	defer g.mu.Unlock()
	g.add(-n, 0)
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

// Seed adds n units that were in flight before the gauge was there. A call that
// acquires between the moment the gauge can be seen and the count that becomes
// n is counted twice until [Gauge.Settle].
func (g *Gauge) Seed(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(0, max(n, 0))
}

// ReleaseUnseen ends n units that are in flight without having been acquired.
func (g *Gauge) ReleaseUnseen(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(0, -min(n, g.unseen))
}

// Settle forgets the seeded units when the owner knows that nothing is in
// flight.
func (g *Gauge) Settle() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(0, -g.unseen)
}

// add is the only writer. The caller holds mu.
func (g *Gauge) add(held, unseen int64) {
	g.held += held
	g.unseen += unseen
	g.used.Store(g.held + g.unseen)
}
