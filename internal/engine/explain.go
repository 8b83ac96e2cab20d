package engine

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shown"
)

// Explainer is a [Checker] that can explain its verdict on a call: the rules of every family, and
// custom slots that implement it.
//
// Explain is called for a hypothetical call, which has everything that a caller passes, but is
// counted nowhere. So Explain takes nothing, records nothing, and leaves no trace. It returns a
// judgement for each rule that would be evaluated, in the order of evaluation; the judgement of a
// custom slot needs no Rule. It is called without a lock, and concurrently.
type Explainer interface {
	Explain(*Invocation) []core.Judgement
}

// Explain returns the verdicts of the rules on a call that arrived now; see api.Explain. It takes
// the same locks as a reader of the tree, for as long. It allocates its result and, for a resource
// that doesn't exist, the state that its rules would have.
func (e *Engine) Explain(ctx context.Context, name string, opts []Option) (core.Explanation, error) {
	inv, err := e.begin(ctx, name, opts)
	if err != nil {
		return core.Explanation{}, err
	}
	defer inv.recycle()
	known := inv.look(name)
	x := core.Explanation{
		Resource: name, Context: inv.ContextName(), Origin: inv.Origin(),
		At: time.Unix(0, inv.now).UTC(), Revision: inv.bound.set.Revision, By: -1,
	}
	if known {
		x.Node = inv.resource.Name()
	}
	var chosen [kinds]map[string]core.Choice
	for kind, family := range inv.bound.set.families {
		if family == nil {
			continue
		}
		chosen[kind] = make(map[string]core.Choice)
		for _, c := range family.Choices(name, inv.resource.Name()) {
			if c.Kind = core.Kind(kind); c.Applies {
				chosen[kind][c.ID] = c
			} else {
				x.LeftOut = append(x.LeftOut, c)
			}
		}
	}
	for _, slot := range e.chain.checking {
		slot, _, _ := slot.in(inv.bound)
		own := core.Choice{Kind: core.KindCustom, ID: slot.name, Reason: "custom slot"}
		explainer, ok := slot.checker.(Explainer)
		if !ok && (slot.checker != nil || slot.rechecker != nil) {
			x.Rules = append(x.Rules, core.ExplainedRule{Choice: own, Judgement: core.Judgement{Outcome: core.Unknown, Why: "it does not explain itself"}})
		}
		if !ok {
			continue
		}
		for _, j := range explainer.Explain(inv) {
			c, ok := chosen[slot.kind][j.Rule]
			if !ok {
				c = own
			}
			x.Rules = append(x.Rules, core.ExplainedRule{Choice: c, Judgement: j})
		}
	}
	inv.conclude(&x)
	return x, nil
}

// conclude combines the judgements of the rules.
func (inv *Invocation) conclude(x *core.Explanation) {
	x.Runs = x.At
	for i := range x.Rules {
		r := &x.Rules[i]
		if r.Mode != spec.Enforce {
			continue
		}
		switch r.Outcome {
		case core.Refused:
			if x.Outcome != core.Refused {
				x.Outcome, x.By, x.Next = core.Refused, i, r.Next
			} else if !x.Next.IsZero() && (r.Next.IsZero() || r.Next.After(x.Next)) {
				x.Next = r.Next
			}
		case core.Waits:
			longer := r.Runs.IsZero() || !x.Runs.IsZero() && r.Runs.After(x.Runs)
			if x.Outcome == core.Refused || x.By >= 0 && !longer {
				break
			}
			x.Outcome, x.By = core.Waits, i
			if longer {
				x.Runs = r.Runs
			}
		case core.Unknown:
			if x.Outcome == core.Passes {
				x.Outcome = core.Unknown
			}
		}
	}
	switch {
	case x.Outcome != core.Waits:
	case inv.engine.drain.on.Load():
		x.Outcome, x.Draining = core.Refused, true
	case !inv.inTime(max(0, x.Runs.Sub(x.At))):
		x.Outcome, x.GivesUp = core.Refused, true
	}
	if x.Outcome == core.Refused {
		x.Runs = time.Time{}
	}
}

// look finds the resource and nodes for a hypothetical call. Missing ones are made outside the
// tree, visible to no other call; known reports whether the resource existed.
func (inv *Invocation) look(name string) (known bool) {
	e := inv.engine
	r, known := e.FindResource(name)
	if !known && !e.resources.HasPlace(name) {
		r, known = e.resources.overflow, true
		inv.beyond = name
	}
	if !known {
		r = e.alone(name)
	}
	inv.bound = e.lookAt(r, name, inv.now)
	inv.resource = r
	inv.node = e.tree.LookCall(r.ClusterNode, inv.ContextName())
	if origin := inv.Origin(); origin != "" {
		inv.origin = e.tree.LookOrigin(r.ClusterNode, origin)
	}
	return known
}

// lookAt is like lookUp, but for readers. Existing state of the rules in force at the resource is
// used; state that they would have there for the first time is built separately, and not kept. The
// resource is brought up to date only if it still uses older rules, as it does until the update
// gets to it: state is handed over once.
func (e *Engine) lookAt(r *Resource, name string, now int64) *binding {
	beyond := r == e.resources.overflow
	set := e.rules.Load()
	if b := r.bound.Load(); b != nil && b.set == set && !beyond {
		return b
	}
	s := search{name: name, looks: true}
	if beyond {
		s.matched = set.match(name, nil)
	}
	r.mu.Lock()
	last := r.turnLocked(set)
	if last != nil && last.set == set {
		r.mu.Unlock()
		return last
	}
	if last != nil && last.revision != set.Revision {
		r.mu.Unlock()
		return e.lookUp(r, name, now, false)
	}
	r.mu.Unlock()
	if !beyond {
		s.matched = set.match(name, last)
	}
	return e.bindLocked(set, e.alone(r.Name()), last, s, nil, now)
}

// after returns the time of the call plus a wait.
func (inv *Invocation) after(wait time.Duration) time.Time {
	return time.Unix(0, inv.now+int64(wait)).UTC()
}

// JudgeRefused records that the call is rejected and, if known, when it would be admitted.
func (inv *Invocation) JudgeRefused(j *core.Judgement, after time.Duration, known bool) {
	j.Outcome = core.Refused
	if known {
		j.Next = inv.after(max(0, after))
	}
}

// JudgeWait records that the call waits for the given time or, if ok is false, that it is rejected
// until the wait is at most maxWait.
func (inv *Invocation) JudgeWait(j *core.Judgement, wait time.Duration, ok bool, maxWait time.Duration) {
	switch {
	case !ok:
		inv.JudgeRefused(j, wait-maxWait, true)
	case wait > 0:
		j.Outcome, j.Runs = core.Waits, inv.after(wait)
	}
}

// JudgeTokens records the decision of a token bucket that holds size on a call of n units.
func (inv *Invocation) JudgeTokens(j *core.Judgement, b meter.TokenBucket, n, size int64) {
	switch {
	case n > size:
		j.Outcome = core.Refused
	case !b.Fits(inv.now, n, size):
		inv.JudgeRefused(j, b.RetryAfter(inv.now, n, size), true)
	}
}

// MeasureUnits returns a measure of units under a limit.
func MeasureUnits(of string, used, limit int64) core.Measure {
	left := max(0, limit-used)
	return core.Measure{Of: of, Measured: float64(used), Limit: float64(limit), Remaining: &left}
}

// MeasureTokens returns a measure of a token bucket that holds size.
func MeasureTokens(b meter.TokenBucket, now, size int64) core.Measure {
	left := b.Whole(now, size)
	return core.Measure{Of: "tokens taken", Measured: float64(size) - b.Left(now, size), Limit: float64(size), Remaining: &left}
}

// MeasureTurns returns a measure of a queue for turns: the wait of the call for its turn, and the
// number of turns left.
func MeasureTurns(wait, maxWait time.Duration, left *int64) core.Measure {
	return core.Measure{Of: "wait for a turn", Measured: shown.Millis(wait), Limit: shown.Millis(maxWait), Unit: "ms", Remaining: left}
}
