package family

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/sharing"
)

// shareable is a rule that may have its limit shared by a cluster.
type shareable interface{ Shared() bool }

// checkShared returns an error for the first rule whose limit can't be shared here.
func checkShared[R spec.Rule](member *sharing.Member, kind core.Kind, rules []R) error {
	if member != nil {
		return nil
	}
	for i, rule := range rules {
		if r, ok := any(rule).(shareable); ok && r.Shared() && rule.Info().Mode != spec.Off {
			return fmt.Errorf("%v[%d].%w", kind, i, spec.BadField("cluster", "%s", needsStore))
		}
	}
	return nil
}

// memberOf returns the member of a cluster through which a load's rules share limits, or nil if
// there is none.
func memberOf(b *engine.SnapshotBuilder) *sharing.Member {
	m, _ := b.Sharing.(*sharing.Member)
	return m
}

const needsStore = "needs a store shared by the members: write `cluster: {redis: URL}` at the top of a native rule file, " +
	"which may be a second one, and set api.Config.Stores to penstockredis.Stores() of cluster/redis, " +
	"or set api.Config.Cluster.Store"

// Shared is a rule's limit that a cluster shares, at one resource, or for one caller or value
// there: see [NewSharedWindow], [NewSharedThrottle] and [NewSharedSemaphore]. Calls take units of
// its lease, and fetch missing units; see engine.Fetcher. It is safe for concurrent use.
type Shared interface {
	engine.Holder
	// Ask returns the rule's verdict on a call of n units.
	Ask(inv *engine.Invocation, n int64) engine.Verdict
	// Take takes n units of the lease. A call that finds too few fetches them later.
	Take(inv *engine.Invocation, n int64) engine.Verdict
	// Want records that a call that has taken, and perhaps waited, wants n units, unless it still
	// holds them.
	Want(inv *engine.Invocation, n int64)
	// Counts identifies what counts the call's units, for the reservations of all versions of the rule.
	Counts() any
	// RetryAfter returns the time from now until n units may fit, or false if that can't be known.
	RetryAfter(now, n int64) (time.Duration, bool)
	// Left returns the units on the process's lease, and the limit of all members; known is false if
	// it limits no rate.
	Left(now int64) (left, limit int64, known bool)
	// Explain returns Ask's verdict with its measure, and leaves no trace.
	Explain(inv *engine.Invocation, n int64, j *core.Judgement) core.Measure

	// Measure returns the measure that Explain uses for a call of one unit at now.
	Measure(now int64) core.Measure
	// Idle reports whether nothing is lost if the limit is forgotten at now.
	Idle(now int64) bool

	// askShadow and takeShadow are Ask and Take for a rule in shadow mode: a call without enough
	// units runs, and need returns the units it would fetch; see Rehearse.
	askShadow(inv *engine.Invocation, n int64) sharing.Answer
	takeShadow(inv *engine.Invocation, n int64) sharing.Answer
	need(inv *engine.Invocation, n int64) (*sharing.Member, sharing.Need)

	stats() sharing.Stats
}

// MaxSharedUnits is the maximum threshold of a shared rule with a unit.
const MaxSharedUnits = 1_000_000_000_000

// CheckSharedUnits returns an error if members can't share a limit of units, as a [spec.FieldError].
func CheckSharedUnits(threshold float64) error {
	if threshold > MaxSharedUnits {
		return spec.BadField("threshold", "is %v, but in a cluster must be at most %d: use a lower one, or count in larger units", threshold, MaxSharedUnits)
	}
	return nil
}

// SharedKey returns the key of a shared rule's limit at a resource; more parts may identify it. A
// rule that counts all its names together has one for all of them. Rules with a unit, and those
// without, have different ones.
func SharedKey(m *sharing.Member, kind core.Kind, rule spec.Info, unit, resource string, more ...string) string {
	parts := []string{kind.String(), rule.ID, resource}
	if rule.Together {
		parts = []string{kind.String() + " together", rule.ID}
	}
	parts = append(parts, more...)
	if unit != "" {
		parts = append(parts, unit)
	}
	return m.Key(parts...)
}

// sharedUnit is the unit of a shared rule, empty for calls.
type sharedUnit string

// name returns the unit's name in measures.
func (u sharedUnit) name() string { return cmp.Or(string(u), "units") }

// settles makes the call's latest reservation one to be settled, for a rule with a unit.
func (u sharedUnit) settles(inv *engine.Invocation) {
	if u != "" {
		inv.SettleBy(string(u))
	}
}

// refusal returns the rejection of n units: for a rule with a unit, one that knows how long these
// will take.
func (u sharedUnit) refusal(inv *engine.Invocation, by *core.BlockError, l Shared, n int64) *core.BlockError {
	if u == "" {
		return by
	}
	return engine.Needing(by, &sharedNeed{by.Refuser(), inv.Engine(), l, n})
}

// sharedNeed is a number of units that a shared limit rejected.
type sharedNeed struct {
	core.Refuser
	engine *engine.Engine
	limit  Shared
	n      int64
}

// RetryAfter returns the time until the units may fit, if known.
func (x *sharedNeed) RetryAfter() (wait time.Duration, known bool) {
	return x.limit.RetryAfter(x.engine.Now(), x.n)
}

// must panics on an error, which validated arguments can't cause.
func must[T any](limit T, err error) T {
	if err != nil {
		panic(err)
	}
	return limit
}

// storeAway has the explanations for a limit without its store.
var storeAway = map[cluster.OnFailure]string{
	cluster.Local:  "cluster store unreachable: this member enforces its share of the limit",
	cluster.Open:   "cluster store unreachable: all calls pass",
	cluster.Closed: "cluster store unreachable: only leased units can be spent",
}

// WouldAskStore is the explanation if only the store can decide.
const WouldAskStore = "the cluster store would decide"

// fetcher fetches the wants of calls.
type fetcher struct{ *sharing.Member }

func (f fetcher) Fetch(ctx context.Context, atMost time.Duration, wants []engine.Want) error {
	needs := make([]sharing.Need, len(wants))
	for i, w := range wants {
		needs[i] = sharing.Need{Limit: w.Limit.(sharing.Limit), Units: w.Units, MaxWait: w.MaxWait}
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

// SharedRule is an enforced rule with limits shared by a cluster, at one resource.
type SharedRule interface {
	// SharedLimit returns the i-th limit of the rule that the call takes from, and the number of
	// units, or nil if there are fewer limits.
	SharedLimit(inv *engine.Invocation, i int) (Shared, int64)
}

// SharedRules are the shared rules of one family at one resource, in the order of evaluation. They
// implement engine.Sharer.
type SharedRules []SharedRule

// Sharer returns rs as an engine.Sharer, or nil if it is empty.
func (rs SharedRules) Sharer() engine.Sharer {
	if len(rs) == 0 {
		return nil
	}
	return rs
}

// Direct reports whether there is one limit, and no call waits for its turn there: then no other
// limit needs to be asked before it takes.
func (rs SharedRules) Direct() bool {
	direct, ok := rs[0].(interface{ Direct() bool })
	return len(rs) == 1 && ok && direct.Direct()
}

// Ask returns the first rejection; if there is none, the verdict that the call has wants; if it has
// none, its longest wait.
func (rs SharedRules) Ask(inv *engine.Invocation) engine.Verdict { return rs.all(inv, Shared.Ask) }

// Take lets every rule take. It returns the first rejection or, if there is none, the longest wait.
func (rs SharedRules) Take(inv *engine.Invocation) engine.Verdict { return rs.all(inv, Shared.Take) }

// Wants records the units that the call doesn't hold.
func (rs SharedRules) Wants(inv *engine.Invocation) {
	rs.all(inv, func(l Shared, inv *engine.Invocation, n int64) engine.Verdict {
		l.Want(inv, n)
		return engine.Verdict{}
	})
}

// Remaining returns what the tightest of the rules with that unit has left.
func (rs SharedRules) Remaining(inv *engine.Invocation, unit string) (least core.Remaining, known bool) {
	for _, r := range rs {
		if r, ok := r.(engine.Remainer); ok {
			engine.LeastRemaining(&least, &known, r, inv, unit)
		}
	}
	return least, known
}

// all combines the verdicts of all limits, up to the first rejection.
func (rs SharedRules) all(inv *engine.Invocation, say func(l Shared, inv *engine.Invocation, n int64) engine.Verdict) engine.Verdict {
	var all answers
	for _, r := range rs {
		for i := 0; ; i++ {
			l, n := r.SharedLimit(inv, i)
			if l == nil {
				break
			}
			if all.add(say(l, inv, n)) {
				return all.Verdict
			}
		}
	}
	return all.Verdict
}

// answers combines the verdicts of several shared limits on a call.
type answers struct{ engine.Verdict }

// add adds one verdict, and reports whether it is a rejection.
func (a *answers) add(v engine.Verdict) (refused bool) {
	switch {
	case v.Block != nil && !v.NeedsMore():
		a.Verdict = v
		return true
	case a.NeedsMore():
	case v.NeedsMore() || v.Wait > 0 && v.Outlasts(a.Verdict):
		a.Verdict = v
	}
	return false
}
