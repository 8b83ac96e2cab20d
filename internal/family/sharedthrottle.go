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
	throttle *sharing.Throttle
	maxWait  time.Duration
	refusal  *core.BlockError
	away     string // explanation while the store is away
}

// NewSharedThrottle returns the throttle of a key, which rejects calls that would wait longer than
// maxWait with refusal. Its rule has been validated; see cluster.Rule.
func NewSharedThrottle(m *sharing.Member, key string, c sharing.ThrottleConfig, maxWait time.Duration, refusal *core.BlockError) Shared {
	return &sharedThrottle{fetcher{m}, must(m.Throttle(key, c)), maxWait, refusal, storeAway[c.OnFailure]}
}

func (t *sharedThrottle) Ask(inv *engine.Invocation, n int64) engine.Verdict {
	if r, wait := inv.HeldFor(t); r != nil {
		return t.waits(wait)
	}
	switch a, wait := t.throttle.Ask(inv.Now(), n, t.maxWait); a {
	case sharing.Fits:
		return t.waits(wait)
	case sharing.Refuses:
		return engine.Verdict{Block: t.refusal}
	}
	return inv.Want(t.fetcher, t.want(n))
}

// Take takes units. A call that has its turn keeps it through a longer wait.
func (t *sharedThrottle) Take(inv *engine.Invocation, n int64) engine.Verdict {
	if r, wait := inv.HeldFor(t); r != nil {
		return t.waits(wait)
	}
	wait, ok := t.throttle.TryTake(inv.Now(), n, t.maxWait)
	switch {
	case ok:
		inv.Reserve(engine.Reservation{Holder: t, Units: n, Undo: inv.Now() + int64(wait)})
		return t.waits(wait)
	case t.refuses(inv.Now(), n):
		return engine.Verdict{Block: t.refusal}
	}
	inv.WantLater()
	return engine.Verdict{}
}

func (t *sharedThrottle) Want(inv *engine.Invocation, n int64) {
	if r, _ := inv.HeldFor(t); r == nil {
		inv.Want(t.fetcher, t.want(n))
	}
}

func (t *sharedThrottle) askShadow(inv *engine.Invocation, n int64) sharing.Answer {
	a, _ := t.throttle.Ask(inv.Now(), n, t.maxWait)
	return a
}

func (t *sharedThrottle) takeShadow(inv *engine.Invocation, n int64) sharing.Answer {
	if _, ok := t.throttle.TryTake(inv.Now(), n, t.maxWait); ok {
		return sharing.Fits
	}
	return sharing.NeedsMore
}

func (t *sharedThrottle) need(_ *engine.Invocation, n int64) (*sharing.Member, sharing.Need) {
	return t.fetcher.Member, sharing.Need{Limit: t.throttle, Units: n, MaxWait: t.maxWait}
}

func (t *sharedThrottle) refuses(now, n int64) bool {
	a, _ := t.throttle.Look(now, n, t.maxWait)
	return a == sharing.Refuses
}

// GiveBack does nothing: the turn is lost.
func (t *sharedThrottle) GiveBack(*engine.Reservation, int64) {}

func (t *sharedThrottle) RetryAfter(now int64) (time.Duration, bool) {
	return t.throttle.RetryAfter(now, 1, t.maxWait)
}

func (t *sharedThrottle) waits(wait time.Duration) engine.Verdict {
	if wait == 0 {
		return engine.Verdict{}
	}
	return engine.Verdict{Wait: wait, By: t.refusal}
}

func (t *sharedThrottle) want(n int64) engine.Want {
	return engine.Want{Limit: t.throttle, Units: n, MaxWait: t.maxWait, Holder: t, By: t.refusal, Timeout: t.throttle.Timeout()}
}

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
