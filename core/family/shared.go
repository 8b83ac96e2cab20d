package family

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
)

// sharing is a rule that may have its limit shared by a cluster.
type sharing interface{ Shared() bool }

// checkShared returns the first of the rules whose limit nobody can share here.
func checkShared[R spec.Rule[R]](b *core.RulesetBuilder, kind core.Kind, rules []R) error {
	if b.Member != nil {
		return nil
	}
	for i, rule := range rules {
		if r, ok := any(rule).(sharing); ok && r.Shared() && rule.Info().Mode != spec.Off {
			return fmt.Errorf("%v[%d].%w", kind, i, spec.BadField("cluster", "%s", needsStore))
		}
	}
	return nil
}

const needsStore = "needs a store that the members share: say `cluster: {redis: URL}` at the top of the rule file, " +
	"with what opens it in api.Config.Stores, or set api.Config.Cluster.Store"

// SharedWindow is a window of a rule that a cluster shares, at one resource, or for one caller or value
// there. Calls take of it as its lease has units, and fetch what they lack, see core.Fetcher. It
// is safe for concurrent use.
type SharedWindow struct {
	fetcher fetcher
	window  *cluster.Window
	refusal *core.BlockError
}

// NewSharedWindow returns the window of a key, which refuses calls with refusal. The rule that it is of has
// been checked: see cluster.Rule.
func NewSharedWindow(m *cluster.Member, key string, c cluster.WindowConfig, refusal *core.BlockError) *SharedWindow {
	w, err := m.Window(key, c)
	if err != nil {
		panic(err) // the rule was checked
	}
	return &SharedWindow{fetcher{m}, w, refusal}
}

// Ask says what the rule makes of a call of n units, which would wait less than patience for a coming
// bucket.
func (w *SharedWindow) Ask(inv *core.Invocation, n int64, patience time.Duration) core.Verdict {
	if r, wait := inv.HeldFor(w); r != nil {
		return w.waits(wait)
	}
	switch w.window.Ask(inv.Now(), n) {
	case cluster.Fits:
		return core.Verdict{}
	case cluster.Refuses:
		if patience == 0 {
			return core.Verdict{Block: w.refusal}
		}
	}
	return inv.Want(w.fetcher, w.want(n, patience))
}

// Take takes n units of the lease. A call that waits, or for which there are none, fetches them
// later.
func (w *SharedWindow) Take(inv *core.Invocation, n int64, patience time.Duration) core.Verdict {
	if r, wait := inv.HeldFor(w); r != nil {
		return w.waits(wait)
	}
	if !inv.Waits() {
		if token, ok := w.window.TryAdd(inv.Now(), n); ok {
			inv.ReserveLeased(w, n, token)
			return core.Verdict{}
		}
		if patience == 0 && w.refuses(inv.Now(), n) {
			return core.Verdict{Block: w.refusal}
		}
	}
	inv.WantLater()
	return core.Verdict{}
}

// Want has a call that has taken, and perhaps waited, want n units unless it still holds them.
func (w *SharedWindow) Want(inv *core.Invocation, n int64, patience time.Duration) {
	if r, wait := inv.HeldFor(w); r != nil {
		if wait > 0 || w.window.Holds(inv.Now(), r.Token) {
			return
		}
		inv.HandBack(r)
	}
	inv.Want(w.fetcher, w.want(n, patience))
}

// Shadow takes n units for a rule in shadow mode, and reports whether that would have refused the call. A
// call never waits for such a rule: one that lacks units passes, and has more fetched for those after it.
func (w *SharedWindow) Shadow(inv *core.Invocation, n int64) (refuses bool) {
	if token, ok := w.window.TryAdd(inv.Now(), n); ok {
		inv.ReserveUnits(w, n, token)
		return false
	}
	return w.refuses(inv.Now(), n)
}

// refuses reports whether n units would be refused, as far as the member knows.
func (w *SharedWindow) refuses(now, n int64) bool {
	wait, known := w.window.RetryAfter(now, n)
	return wait > 0 || !known
}

// GiveBack gives back what a call took that does not run with it.
func (w *SharedWindow) GiveBack(r *core.Reservation, _ int64) { w.window.Cancel(r.Token, r.Units) }

// RetryAfter is how long after now one unit may fit; false if it never will.
func (w *SharedWindow) RetryAfter(now int64) (time.Duration, bool) {
	return w.window.RetryAfter(now, 1)
}

func (w *SharedWindow) waits(wait time.Duration) core.Verdict {
	if wait == 0 {
		return core.Verdict{}
	}
	return core.Verdict{Wait: wait, By: w.refusal, Borrowed: true}
}

func (w *SharedWindow) want(n int64, patience time.Duration) core.Want {
	return core.Want{
		Limit: w.window, Units: n, MaxWait: patience, Holder: w, By: w.refusal, Timeout: w.window.Timeout(), Fleeting: true,
	}
}

// Explain is Ask, with what it goes by, and without a trace.
func (w *SharedWindow) Explain(inv *core.Invocation, n int64, of string, j *core.Judgement) core.Measure {
	f := w.window.Figures()
	switch wait, known := w.window.RetryAfter(inv.Now(), n); {
	case wait > 0 || !known:
		j.Refuse(inv, wait, known)
		j.About = known
	case f.Away:
		j.Why = "the store of the cluster is away"
	case f.Leased < n:
		j.Why = "the store of the cluster would be asked"
	}
	return core.Measure{Of: of + ", on a lease", Measured: float64(f.Leased), Limit: float64(f.Limit)}
}

// fetcher fetches what calls lack.
type fetcher struct{ *cluster.Member }

func (f fetcher) Fetch(ctx context.Context, atMost time.Duration, wants []core.Want) error {
	needs := make([]cluster.Need, len(wants))
	for i, w := range wants {
		needs[i] = cluster.Need{Limit: w.Limit.(cluster.Limit), Units: w.Units, MaxWait: w.MaxWait}
	}
	if err := f.Member.Fetch(ctx, atMost, needs); err != nil {
		return err
	}
	for i, n := range needs {
		w := &wants[i]
		w.Got, w.Token, w.Wait = n.Got, n.Token, n.Wait
		w.Borrowed = w.Fleeting && n.Wait > 0
	}
	return nil
}

// Patience is less than how long a call waits for a coming bucket: a prioritized one, once.
func Patience(inv *core.Invocation) time.Duration {
	if !inv.Prioritized() || !inv.Patient() {
		return 0
	}
	return inv.Engine().Config().OccupyTimeout
}

// Answers are what several shared limits say of a call.
type Answers struct{ core.Verdict }

// Add adds what one says, and reports whether that is a refusal.
func (a *Answers) Add(v core.Verdict) (refused bool) {
	switch {
	case v.Block != nil && !v.Lacks():
		a.Verdict = v
		return true
	case a.Lacks():
	case v.Lacks() || v.Wait > 0 && v.Outlasts(a.Verdict):
		a.Verdict = v
	}
	return false
}
