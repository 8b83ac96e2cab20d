package family

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/sharing"
)

// sharedWindow is a window that members share.
type sharedWindow struct {
	fetcher  fetcher
	unit     sharedUnit
	window   *sharing.Window
	refusal  *core.BlockError
	interval time.Duration
	away     string // explanation while the store is away
	borrows  bool
	counts   any // see Counts
}

// NewSharedWindow returns the window of a key, which rejects calls with refusal. If it may borrow,
// prioritized calls wait for a later bucket. The unit is empty for calls. A call that takes from the
// key several times has another number for each. Its rule has been validated; see cluster.Rule.
func NewSharedWindow(m *sharing.Member, key, unit string, c sharing.WindowConfig, borrows bool, number int, refusal *core.BlockError) Shared {
	counts := keyCounts{m, key, number}
	return &sharedWindow{fetcher{m}, sharedUnit(unit), must(m.Window(key, c)), refusal, c.Shape.Interval, storeAway[c.OnFailure], borrows, counts}
}

// keyCounts identifies the windows of a key in all shapes, which pass on their charges.
type keyCounts struct {
	member *sharing.Member
	key    string
	number int
}

func (w *sharedWindow) Ask(inv *engine.Invocation, n int64) engine.Verdict {
	if r, wait := inv.HeldFor(w); r != nil {
		return w.waits(wait)
	}
	a := w.window.Ask(inv.Now(), n)
	if a == sharing.Fits {
		return engine.Verdict{}
	}
	patience := w.patience(inv)
	if a == sharing.Refuses && patience == 0 {
		return engine.Verdict{Block: w.unit.refusal(inv, w.refusal, w, n)}
	}
	return inv.Want(w.fetcher, w.want(inv, n, patience))
}

// Take takes units. A call that waits fetches units later, too.
func (w *sharedWindow) Take(inv *engine.Invocation, n int64) engine.Verdict {
	if r, wait := inv.HeldFor(w); r != nil {
		return w.waits(wait)
	}
	if !inv.Waits() {
		if token, ok := w.window.TryAdd(inv.Lane(), inv.Now(), n); ok {
			inv.ReserveLeased(w, n, token)
			w.unit.settles(inv)
			return engine.Verdict{}
		}
		if w.patience(inv) == 0 && w.refuses(inv.Now(), n) {
			return engine.Verdict{Block: w.unit.refusal(inv, w.refusal, w, n)}
		}
	}
	inv.WantLater()
	return engine.Verdict{}
}

func (w *sharedWindow) Want(inv *engine.Invocation, n int64) {
	if r, wait := inv.HeldFor(w); r != nil {
		if wait > 0 || w.window.Holds(inv.Now(), r.Token) {
			return
		}
		inv.HandBack(r)
	}
	inv.Want(w.fetcher, w.want(inv, n, w.patience(inv)))
}

func (w *sharedWindow) askShadow(inv *engine.Invocation, n int64) sharing.Answer {
	a := w.window.Ask(inv.Now(), n)
	if a == sharing.Refuses && w.patience(inv) > 0 {
		return sharing.NeedsMore
	}
	return a
}

func (w *sharedWindow) takeShadow(inv *engine.Invocation, n int64) sharing.Answer {
	if token, ok := w.window.TryAdd(inv.Lane(), inv.Now(), n); ok {
		inv.ReserveUnits(w, n, token)
		w.unit.settles(inv)
		return sharing.Fits
	}
	return sharing.NeedsMore
}

func (w *sharedWindow) need(inv *engine.Invocation, n int64) (*sharing.Member, sharing.Need) {
	return w.fetcher.Member, sharing.Need{Limit: w.window, Units: n, MaxWait: w.patience(inv)}
}

// refuses reports whether n units would be rejected, according to the member's own state.
func (w *sharedWindow) refuses(now, n int64) bool {
	return w.window.Look(now, n) == sharing.Refuses
}

// GiveBack gives back the units of a call that took them but won't run.
func (w *sharedWindow) GiveBack(r *engine.Reservation, _ int64) { w.window.Cancel(r.Token, r.Units) }

// Refund gives back units that a call didn't use.
func (w *sharedWindow) Refund(r *engine.Reservation, n, _ int64) { w.window.Cancel(r.Token, n) }

// Charge counts units that a call used beyond its reservation.
func (w *sharedWindow) Charge(_ *engine.Reservation, n, now int64) (forgiven int64) {
	w.window.Charge(now, n)
	return 0
}

// Counts returns what the reservations of all versions of the rule have in common.
func (w *sharedWindow) Counts() any { return w.counts }

func (w *sharedWindow) RetryAfter(now, n int64) (time.Duration, bool) {
	return w.window.RetryAfter(now, n)
}

// patience is the bound on a call's wait for a later bucket: above 0 for a prioritized call, once.
func (w *sharedWindow) patience(inv *engine.Invocation) time.Duration {
	if !w.borrows || !inv.Prioritized() || !inv.Patient() {
		return 0
	}
	return inv.Engine().Config().OccupyTimeout
}

func (w *sharedWindow) waits(wait time.Duration) engine.Verdict {
	if wait == 0 {
		return engine.Verdict{}
	}
	return engine.Verdict{Wait: wait, By: w.refusal, Borrowed: true}
}

func (w *sharedWindow) want(inv *engine.Invocation, n int64, patience time.Duration) engine.Want {
	return engine.Want{
		Limit: w.window, Units: n, MaxWait: patience, Holder: w, By: w.unit.refusal(inv, w.refusal, w, n),
		Timeout: w.window.Timeout(), Fleeting: true, Unit: string(w.unit),
	}
}

// Left returns the leased units or, while the store is away, those left of the member's share.
func (w *sharedWindow) Left(now int64) (left, limit int64, known bool) {
	f := w.window.Stats()
	if used, share, _, ok := w.window.LocalShare(now); ok {
		return max(0, share-used), f.Limit, true
	}
	return f.Leased, f.Limit, true
}

func (w *sharedWindow) Explain(inv *engine.Invocation, n int64, j *core.Judgement) core.Measure {
	switch w.window.Look(inv.Now(), n) {
	case sharing.Refuses:
		wait, known := w.window.RetryAfter(inv.Now(), n)
		inv.JudgeRefused(j, wait, known)
		j.About = known
	case sharing.NeedsMore:
		j.Why = WouldAskStore
	}
	if w.window.Stats().Unreachable {
		j.Why = w.away
	}
	return w.Measure(inv.Now())
}

func (w *sharedWindow) Measure(now int64) core.Measure {
	if used, share, interval, ok := w.window.LocalShare(now); ok {
		return engine.MeasureUnits(w.unit.name()+" in "+interval.String()+", of this member", used, share)
	}
	f := w.window.Stats()
	return core.Measure{Of: w.unit.name() + " in " + w.interval.String() + ", on a lease", Measured: float64(f.Leased), Limit: float64(f.Limit), AtHand: true}
}

func (w *sharedWindow) Idle(now int64) bool { return w.window.Idle(now) }

func (w *sharedWindow) stats() sharing.Stats { return w.window.Stats() }
