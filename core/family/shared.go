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
func checkShared[R spec.Rule](b *core.RulesetBuilder, kind core.Kind, rules []R) error {
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

// Shared is a limit of a rule that a cluster shares, at one resource, or for one caller or value
// there: see [NewSharedWindow], [NewSharedThrottle] and [NewSharedSemaphore]. Calls take of it as its lease
// has, and fetch what they lack, see core.Fetcher. It is safe for concurrent use.
type Shared interface {
	core.Holder
	// Ask says what the rule makes of a call of n units.
	Ask(inv *core.Invocation, n int64) core.Verdict
	// Take takes n units of the lease. A call for which there are none fetches them later.
	Take(inv *core.Invocation, n int64) core.Verdict
	// Want has a call that has taken, and perhaps waited, want n units unless it still holds them.
	Want(inv *core.Invocation, n int64)
	// Shadow takes n units for a rule in shadow mode, and reports whether that would have refused the
	// call. A call never waits for such a rule: one that lacks units passes, and has more fetched for those
	// after it.
	Shadow(inv *core.Invocation, n int64) (refuses bool)
	// RetryAfter is how long after now one unit may fit; false if nobody can say.
	RetryAfter(now int64) (time.Duration, bool)
	// Explain is Ask, with what it goes by, and without a trace.
	Explain(inv *core.Invocation, n int64, j *core.Judgement) core.Measure

	// Measure is what Explain goes by.
	Measure() core.Measure
	// Idle reports whether nothing is lost if the limit is forgotten at now.
	Idle(now int64) bool

	figures() cluster.WindowFigures
}

// must is for what was checked.
func must[T any](limit T, err error) T {
	if err != nil {
		panic(err)
	}
	return limit
}

// What an explanation says of a limit that has no units at hand.
const (
	storeAway = "the store of the cluster is away"
	wouldAsk  = "the store of the cluster would be asked"
)

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

// SharedRule is a rule in force whose limits a cluster shares, at one resource.
type SharedRule interface {
	// SharedLimit is the i-th limit of the rule that the call takes of, and how many units; nil if there are
	// not so many.
	SharedLimit(inv *core.Invocation, i int) (Shared, int64)
}

// SharedRules are those of one family at one resource, as they are asked. They implement
// core.Sharer.
type SharedRules []SharedRule

// Sharer is them as what Shares returns, nil for none.
func (rs SharedRules) Sharer() core.Sharer {
	if len(rs) == 0 {
		return nil
	}
	return rs
}

// Direct reports whether there is one limit, and no call waits for its turn there: nobody else needs to be
// asked before it takes.
func (rs SharedRules) Direct() bool {
	direct, ok := rs[0].(interface{ Direct() bool })
	return len(rs) == 1 && ok && direct.Direct()
}

// Ask returns the first refusal, or else that the call lacks something, or its longest wait.
func (rs SharedRules) Ask(inv *core.Invocation) core.Verdict { return rs.all(inv, Shared.Ask) }

// Take lets every rule take. It returns the first refusal, or else the longest wait.
func (rs SharedRules) Take(inv *core.Invocation) core.Verdict { return rs.all(inv, Shared.Take) }

// Wants has the call want what it doesn't hold.
func (rs SharedRules) Wants(inv *core.Invocation) {
	rs.all(inv, func(l Shared, inv *core.Invocation, n int64) core.Verdict {
		l.Want(inv, n)
		return core.Verdict{}
	})
}

// all is what all limits say together, up to the first refusal.
func (rs SharedRules) all(inv *core.Invocation, say func(l Shared, inv *core.Invocation, n int64) core.Verdict) core.Verdict {
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

// answers are what several shared limits say of a call.
type answers struct{ core.Verdict }

// add adds what one says, and reports whether that is a refusal.
func (a *answers) add(v core.Verdict) (refused bool) {
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
