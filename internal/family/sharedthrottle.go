package family

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/sharing"
)

// sharedThrottle is a throttle that members share. A turn that a call doesn't use is lost, and no
// call jumps ahead of another of as many units.
type sharedThrottle struct {
	fetcher  fetcher
	unit     sharedUnit
	throttle *sharing.Throttle
	maxWait  time.Duration
	refusal  *core.BlockError
	away     string // explanation while the store is away
}

// NewSharedThrottle returns the throttle of a key, which rejects calls that would wait longer than
// maxWait with refusal. The unit is empty for calls. Its rule has been validated; see cluster.Rule.
func NewSharedThrottle(m *sharing.Member, key, unit string, c sharing.ThrottleConfig, maxWait time.Duration, refusal *core.BlockError) Shared {
	c.Costs = unit != ""
	return &sharedThrottle{fetcher{m}, sharedUnit(unit), must(m.Throttle(key, c)), maxWait, refusal, storeAway[c.OnFailure]}
}

func (t *sharedThrottle) Ask(inv *engine.Invocation, n int64) engine.Verdict {
	if r, wait := inv.HeldFor(t); r != nil {
		return t.waits(wait)
	}
	switch a, wait := t.throttle.Ask(inv.Now(), n, t.patience(inv)); a {
	case sharing.Fits:
		return t.waits(wait)
	case sharing.Refuses:
		return engine.Verdict{Block: t.unit.refusal(inv, t.refusal, t, n)}
	}
	return inv.Want(t.fetcher, t.want(inv, n))
}

// patience returns the longest wait. A running call that asks for more is slowed down, not cut off.
func (t *sharedThrottle) patience(inv *engine.Invocation) time.Duration {
	if inv.AsksMore() {
		return longestWait
	}
	return t.maxWait
}

// longestWait is the longest that any rule makes a call wait.
const longestWait = 24 * time.Hour

// Take takes units. A call that has its turn keeps it through a longer wait.
func (t *sharedThrottle) Take(inv *engine.Invocation, n int64) engine.Verdict {
	if r, wait := inv.HeldFor(t); r != nil {
		return t.waits(wait)
	}
	wait, ok := t.throttle.TryTake(inv.Now(), n, t.patience(inv))
	switch {
	case ok:
		t.reserve(inv, n, wait)
		return t.waits(wait)
	case t.refuses(inv.Now(), n, t.patience(inv)):
		return engine.Verdict{Block: t.unit.refusal(inv, t.refusal, t, n)}
	}
	inv.WantLater()
	return engine.Verdict{}
}

func (t *sharedThrottle) reserve(inv *engine.Invocation, n int64, wait time.Duration) {
	inv.Reserve(engine.Reservation{Holder: t, Units: n, Undo: inv.Now() + int64(wait)})
	t.unit.settles(inv)
}

func (t *sharedThrottle) Want(inv *engine.Invocation, n int64) {
	if r, _ := inv.HeldFor(t); r == nil {
		inv.Want(t.fetcher, t.want(inv, n))
	}
}

func (t *sharedThrottle) askShadow(inv *engine.Invocation, n int64) sharing.Answer {
	a, _ := t.throttle.Ask(inv.Now(), n, t.maxWait)
	return a
}

func (t *sharedThrottle) takeShadow(inv *engine.Invocation, n int64) sharing.Answer {
	if wait, ok := t.throttle.TryTake(inv.Now(), n, t.maxWait); ok {
		if t.unit != "" {
			t.reserve(inv, n, wait)
		}
		return sharing.Fits
	}
	return sharing.NeedsMore
}

func (t *sharedThrottle) need(_ *engine.Invocation, n int64) (*sharing.Member, sharing.Need) {
	return t.fetcher.Member, sharing.Need{Limit: t.throttle, Units: n, MaxWait: t.maxWait}
}

func (t *sharedThrottle) refuses(now, n int64, maxWait time.Duration) bool {
	a, _ := t.throttle.Look(now, n, maxWait)
	return a == sharing.Refuses
}

// GiveBack does nothing: the turn is lost.
func (t *sharedThrottle) GiveBack(*engine.Reservation, int64) {}

// Refund does nothing: the turn is over.
func (t *sharedThrottle) Refund(*engine.Reservation, int64, int64) {}

// Charge counts units that a call used beyond its reservation.
func (t *sharedThrottle) Charge(_ *engine.Reservation, n, now int64) (forgiven int64) {
	t.throttle.Charge(now, n)
	return 0
}

// Counts returns what the reservations of all versions of the rule have in common.
func (t *sharedThrottle) Counts() any { return t.throttle }

func (t *sharedThrottle) RetryAfter(now, n int64) (time.Duration, bool) {
	return t.throttle.RetryAfter(now, n, t.maxWait)
}

func (t *sharedThrottle) waits(wait time.Duration) engine.Verdict {
	if wait == 0 {
		return engine.Verdict{}
	}
	return engine.Verdict{Wait: wait, By: t.refusal}
}

func (t *sharedThrottle) want(inv *engine.Invocation, n int64) engine.Want {
	return engine.Want{
		Limit: t.throttle, Units: n, MaxWait: t.patience(inv), Holder: t, By: t.unit.refusal(inv, t.refusal, t, n),
		Timeout: t.throttle.Timeout(), Unit: string(t.unit),
	}
}

// Left is not known: calls wait.
func (t *sharedThrottle) Left(int64) (left, limit int64, known bool) { return 0, 0, false }

func (t *sharedThrottle) Explain(inv *engine.Invocation, n int64, j *core.Judgement) core.Measure {
	a, wait := t.throttle.Look(inv.Now(), n, t.maxWait)
	switch {
	case a == sharing.Refuses:
		after, known := t.throttle.RetryAfter(inv.Now(), n, t.maxWait)
		inv.JudgeRefused(j, after, known)
		j.About = known
	case a == sharing.NeedsMore:
		j.Why = WouldAskStore
	default:
		inv.JudgeWait(j, wait, true, t.maxWait)
	}
	if t.throttle.Stats().Unreachable {
		j.Why = t.away
	}
	return engine.MeasureTurns(t.throttle.Wait(inv.Now(), n), t.maxWait, nil)
}

func (t *sharedThrottle) Measure(now int64) core.Measure {
	return engine.MeasureTurns(t.throttle.Wait(now, 1), t.maxWait, nil)
}

func (t *sharedThrottle) Idle(now int64) bool { return t.throttle.Idle(now) }

func (t *sharedThrottle) stats() sharing.Stats { return t.throttle.Stats() }
