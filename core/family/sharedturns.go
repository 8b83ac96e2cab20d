package family

import (
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core"
)

// SharedThrottle is a throttle that members share. A turn that a call doesn't use is lost, and no call overtakes
// another.
type SharedThrottle struct {
	fetcher  fetcher
	throttle *cluster.Throttle
	maxWait  time.Duration
	refusal  *core.BlockError
}

// NewSharedThrottle returns the throttle of a key, which refuses calls with refusal that would wait
// longer than maxWait. The rule that it is of has been checked: see cluster.Rule.
func NewSharedThrottle(m *cluster.Member, key string, c cluster.ThrottleConfig, maxWait time.Duration, refusal *core.BlockError) *SharedThrottle {
	return &SharedThrottle{fetcher{m}, must(m.Throttle(key, c)), maxWait, refusal}
}

// Ask is that of [Shared].
func (t *SharedThrottle) Ask(inv *core.Invocation, n int64) core.Verdict {
	if r, wait := inv.HeldFor(t); r != nil {
		return t.waits(wait)
	}
	switch a, wait := t.throttle.Ask(inv.Now(), n, t.maxWait); a {
	case cluster.Fits:
		return t.waits(wait)
	case cluster.Refuses:
		return core.Verdict{Block: t.refusal}
	}
	return inv.Want(t.fetcher, t.want(n))
}

// Take is that of [Shared]. A call that has its turn keeps it through a longer wait.
func (t *SharedThrottle) Take(inv *core.Invocation, n int64) core.Verdict {
	if r, wait := inv.HeldFor(t); r != nil {
		return t.waits(wait)
	}
	wait, ok := t.throttle.TryTake(inv.Now(), n, t.maxWait)
	switch {
	case ok:
		inv.Reserve(core.Reservation{Holder: t, Units: n, Undo: inv.Now() + int64(wait)})
		return t.waits(wait)
	case t.refuses(inv.Now(), n):
		return core.Verdict{Block: t.refusal}
	}
	inv.WantLater()
	return core.Verdict{}
}

// Want is that of [Shared].
func (t *SharedThrottle) Want(inv *core.Invocation, n int64) {
	if r, _ := inv.HeldFor(t); r == nil {
		inv.Want(t.fetcher, t.want(n))
	}
}

// Shadow is that of [Shared].
func (t *SharedThrottle) Shadow(inv *core.Invocation, n int64) (refuses bool) {
	_, ok := t.throttle.TryTake(inv.Now(), n, t.maxWait)
	return !ok && t.refuses(inv.Now(), n)
}

func (t *SharedThrottle) refuses(now, n int64) bool {
	a, _ := t.throttle.Look(now, n, t.maxWait)
	return a == cluster.Refuses
}

// GiveBack does nothing: the turn is lost.
func (t *SharedThrottle) GiveBack(*core.Reservation, int64) {}

// RetryAfter is that of [Shared].
func (t *SharedThrottle) RetryAfter(now int64) (time.Duration, bool) {
	return t.throttle.RetryAfter(now, 1, t.maxWait)
}

func (t *SharedThrottle) waits(wait time.Duration) core.Verdict {
	if wait == 0 {
		return core.Verdict{}
	}
	return core.Verdict{Wait: wait, By: t.refusal}
}

func (t *SharedThrottle) want(n int64) core.Want {
	return core.Want{Limit: t.throttle, Units: n, MaxWait: t.maxWait, Holder: t, By: t.refusal, Timeout: t.throttle.Timeout()}
}

// Explain is that of [Shared].
func (t *SharedThrottle) Explain(inv *core.Invocation, n int64, j *core.Judgement) core.Measure {
	f := t.throttle.Figures()
	a, wait := t.throttle.Look(inv.Now(), n, t.maxWait)
	switch {
	case a == cluster.Fits:
		j.JudgeWait(inv, wait, true, t.maxWait)
	case a == cluster.Refuses:
		after, known := t.throttle.RetryAfter(inv.Now(), n, t.maxWait)
		j.Refuse(inv, after, known)
		j.About = known
	default:
		j.Why = wouldAsk
	}
	if f.Away {
		j.Why = storeAway
	}
	return t.Measure()
}

// Measure is that of [Shared].
func (t *SharedThrottle) Measure() core.Measure {
	return core.Measure{Of: "turns, on a lease", Measured: float64(t.throttle.Figures().Leased)}
}

// Idle is that of [Shared].
func (t *SharedThrottle) Idle(now int64) bool { return t.throttle.Idle(now) }

func (t *SharedThrottle) figures() cluster.WindowFigures { return t.throttle.Figures() }

// SharedSemaphore is how many units of calls of all members may be in flight.
type SharedSemaphore struct {
	fetcher   fetcher
	semaphore *cluster.Semaphore
	engine    *core.Engine
	refusal   *core.BlockError
}

// NewSharedSemaphore returns the semaphore of a key, which refuses calls with refusal. The rule that it is of
// has been checked: see cluster.Rule.
func NewSharedSemaphore(e *core.Engine, m *cluster.Member, key string, c cluster.SemaphoreConfig, refusal *core.BlockError) *SharedSemaphore {
	return &SharedSemaphore{fetcher{m}, must(m.Semaphore(key, c)), e, refusal}
}

// Ask is that of [Shared].
func (s *SharedSemaphore) Ask(inv *core.Invocation, n int64) core.Verdict {
	if r, _ := inv.HeldFor(s); r != nil {
		return core.Verdict{}
	}
	switch s.semaphore.Ask(inv.Now(), n) {
	case cluster.Fits:
		return core.Verdict{}
	case cluster.Refuses:
		return core.Verdict{Block: s.refusal}
	}
	return inv.Want(s.fetcher, s.want(n))
}

// Take is that of [Shared]. A call that waits for another rule holds its units meanwhile.
func (s *SharedSemaphore) Take(inv *core.Invocation, n int64) core.Verdict {
	if r, _ := inv.HeldFor(s); r != nil {
		return core.Verdict{}
	}
	switch {
	case s.semaphore.TryAcquire(inv.Now(), n):
		s.reserve(inv, n)
		return core.Verdict{}
	case s.refuses(inv.Now(), n):
		return core.Verdict{Block: s.refusal}
	}
	inv.WantLater()
	return core.Verdict{}
}

func (s *SharedSemaphore) reserve(inv *core.Invocation, n int64) {
	inv.Reserve(core.Reservation{Holder: s, Units: n, UntilExit: true})
}

// Want is that of [Shared].
func (s *SharedSemaphore) Want(inv *core.Invocation, n int64) {
	if r, _ := inv.HeldFor(s); r == nil {
		inv.Want(s.fetcher, s.want(n))
	}
}

// Shadow is that of [Shared].
func (s *SharedSemaphore) Shadow(inv *core.Invocation, n int64) (refuses bool) {
	if s.semaphore.TryAcquire(inv.Now(), n) {
		s.reserve(inv, n)
		return false
	}
	return s.refuses(inv.Now(), n)
}

func (s *SharedSemaphore) refuses(now, n int64) bool {
	return s.semaphore.Look(now, n) == cluster.Refuses
}

// GiveBack gives the units back, when the call exits. What time the call has may be that at which it
// was let in, by which permits would seem good that the member has lost since.
func (s *SharedSemaphore) GiveBack(r *core.Reservation, _ int64) {
	s.semaphore.Release(s.engine.Now(), r.Units)
}

// RetryAfter is not known: it depends on calls that exit.
func (s *SharedSemaphore) RetryAfter(int64) (time.Duration, bool) { return 0, false }

func (s *SharedSemaphore) want(n int64) core.Want {
	return core.Want{Limit: s.semaphore, Units: n, Holder: s, By: s.refusal, Timeout: s.semaphore.Timeout(), UntilExit: true}
}

// Explain is that of [Shared].
func (s *SharedSemaphore) Explain(inv *core.Invocation, n int64, j *core.Judgement) core.Measure {
	f := s.semaphore.Figures()
	switch s.semaphore.Look(inv.Now(), n) {
	case cluster.Refuses:
		j.Refuse(inv, 0, false)
	case cluster.Lacks:
		j.Why = wouldAsk
	}
	if f.Away {
		j.Why = storeAway
	}
	return s.Measure()
}

// Measure is that of [Shared].
func (s *SharedSemaphore) Measure() core.Measure {
	f := s.semaphore.Figures()
	return core.Measure{Of: "units in flight, held by this member", Measured: float64(f.Leased), Limit: float64(f.Limit)}
}

// Idle is that of [Shared].
func (s *SharedSemaphore) Idle(int64) bool { return s.semaphore.Idle() }

func (s *SharedSemaphore) figures() cluster.WindowFigures { return s.semaphore.Figures() }
