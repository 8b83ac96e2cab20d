package core

import (
	"context"
	"math"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/stat"
)

// Explanation says what the rules would decide for a call if it arrived now, see [Engine.Explain].
// It is a copy, and safe for concurrent use.
type Explanation struct {
	Resource string    `json:"resource"`
	Context  string    `json:"context"`
	Origin   string    `json:"origin,omitempty"`
	At       time.Time `json:"at"`       // as of when, in UTC
	Revision uint64    `json:"revision"` // of the rules
	// Node is the name of the resource in the tree on which the call would be counted: its own,
	// or that of all names beyond the cap. Empty if there is none yet, as no call has asked for it.
	Node    string  `json:"node,omitempty"`
	Outcome Outcome `json:"outcome"`
	// GivesUp says that the call is refused because its context has ended, or will before it runs.
	GivesUp bool `json:"givesUp,omitempty"`
	// Draining says that the call is refused because it would have to wait, see [Engine.Drain].
	Draining bool `json:"draining,omitempty"`
	// By is the index in Rules of the rule that decided: the first that refuses, otherwise the one
	// with the longest wait; -1 if the call passes.
	By int `json:"by"`
	// Runs is when the call would run: At, or after its wait. Zero if it is refused, or if it would
	// wait for other calls to end.
	Runs time.Time `json:"runs,omitzero"`
	// Next is when a call that is refused now would no longer be, if no other call comes first.
	// Zero if it is not refused, or if the time can't be known: it depends on other calls ending,
	// or waiting doesn't help.
	Next time.Time `json:"next,omitzero"`
	// Rules are those that apply to the resource, and the program's own slots, in the order in
	// which the chain asks them.
	Rules []ExplainedRule `json:"rules"`
	// LeftOut are rules that are about the name but don't apply to it.
	LeftOut []Choice `json:"leftOut,omitempty"`
}

// ExplainedRule is a rule that applies, and its judgement of the call.
type ExplainedRule struct {
	Choice
	Judgement
}

// Choice says why a rule applies to a name, or is left out though its resource would match.
type Choice struct {
	Kind     Kind       `json:"kind"`
	ID       string     `json:"id"`                 // for the program's own slot, its name
	Resource string     `json:"resource,omitempty"` // as in the rule: a name or a pattern
	Match    spec.Match `json:"match"`
	Mode     spec.Mode  `json:"mode"`
	Reason   string     `json:"reason"` // why it applies, or doesn't
	Applies  bool       `json:"-"`
}

// Judgement is how one rule judges a call, whatever the rule's mode: a rule in shadow mode keeps no
// call out.
type Judgement struct {
	Rule    string    `json:"-"` // its ID
	Outcome Outcome   `json:"outcome"`
	Why     string    `json:"why,omitempty"` // what the measures don't say
	Runs    time.Time `json:"runs,omitzero"` // of a call that waits; zero if it waits for other calls to end
	Next    time.Time `json:"next,omitzero"` // of a call that is refused, as in Explanation
	// About says that Next is only approximate: by then the limit has moved, or the call may
	// borrow.
	About    bool      `json:"about,omitempty"`
	Measures []Measure `json:"measures,omitempty"`
}

// Measure is a figure that a rule goes by, and what it allows. What is measured doesn't include
// the call itself.
type Measure struct {
	Of       string  `json:"of"`            // what is measured, as in "units in 1s"
	For      string  `json:"for,omitempty"` // which value, caller or endpoint, where the rule distinguishes them
	Measured float64 `json:"measured"`
	Limit    float64 `json:"limit"`          // as it is now, where it moves
	Unit     string  `json:"unit,omitempty"` // of both, "" for units, calls and shares
	// Remaining is how many units the rule would admit now, in calls of one unit; nil where there
	// is no such number.
	Remaining *int64 `json:"remaining,omitempty"`
	// AtHand says that Measured is what this process has ready for its calls, of a limit that a
	// cluster shares: how much of the limit is used up isn't known here.
	AtHand bool `json:"atHand,omitempty"`
}

// Full is how much of the limit is used up, all of it where the limit is 0 units; false where that isn't known here.
func (m Measure) Full() (share float64, known bool) {
	switch {
	case m.AtHand:
		return 0, false
	case m.Limit > 0:
		return math.Round(m.Measured/m.Limit*1e4) / 1e4, true
	case m.Unit == "": // nothing is let through
		return 1, true
	}
	return 0, true
}

// Outcome is what happens to a call.
type Outcome uint8

// The outcomes.
const (
	Passes    Outcome = iota
	Waits             // and then runs, unless its context ends first
	Refused           // or would be, if the rule weren't in shadow mode
	NotJudged         // the rule is not about such calls
	Unknown           // the program's own slot doesn't explain itself
)

var outcomeNames = shown.NewEnum[Outcome]("outcome", "passes", "waits", "refused", "notJudged", "unknown")

// String returns the name used in JSON.
func (o Outcome) String() string { return outcomeNames.Name(o) }

// MarshalText writes the name used in JSON.
func (o Outcome) MarshalText() ([]byte, error) { return outcomeNames.Marshal(o) }

// UnmarshalText reads the name used in JSON.
func (o *Outcome) UnmarshalText(text []byte) error { return outcomeNames.Parse(text, o) }

// Explainer is a [Checker] that can say how it would judge a call: the rules of every family, and a
// user's own slots that choose to.
//
// Explain is called for a call that does not take place: the call has all that a caller passes, but
// nothing is counted for it. So Explain takes nothing, notes nothing, and leaves no trace. It
// returns a judgement for each rule that would judge the call, in the order in which they are
// asked; the judgement of a user's own slot needs no Rule. It is called under no lock, and by any
// number of goroutines at the same time.
type Explainer interface {
	Explain(*Invocation) []Judgement
}

// Explain says what the rules would decide for a call if it arrived now: which apply, in the order
// in which the chain asks them, why, what each of them measures, and when a call that is refused
// would no longer be. It takes the arguments of [Engine.Enter], and returns the same errors for
// calls that can't be judged.
//
// Nothing is counted, reserved or kept for it: it creates no resource, caller or value. It takes
// the locks that a reader of the tree takes, and holds them as long. It allocates what it returns
// and, for a resource that doesn't exist, what its rules would hold. It doesn't show in the tree.
//
// The next call meets exactly what Explain says, if no other call arrives or ends first and its
// context doesn't end. Where a tree is at one of its caps, the next call may find room that has
// become free.
func (e *Engine) Explain(ctx context.Context, name string, opts []Option) (Explanation, error) {
	inv, err := e.begin(ctx, name, opts)
	if err != nil {
		return Explanation{}, err
	}
	defer inv.recycle()
	known := inv.look(name)
	x := Explanation{
		Resource: name, Context: inv.ContextName(), Origin: inv.Origin(),
		At: time.Unix(0, inv.now).UTC(), Revision: inv.bound.set.Revision, By: -1,
	}
	if known {
		x.Node = inv.resource.Name()
	}
	var chosen [kinds]map[string]Choice
	for kind, family := range inv.bound.set.families {
		if family == nil {
			continue
		}
		chosen[kind] = make(map[string]Choice)
		for _, c := range family.Choices(name, inv.resource.Name()) {
			if c.Kind = Kind(kind); c.Applies {
				chosen[kind][c.ID] = c
			} else {
				x.LeftOut = append(x.LeftOut, c)
			}
		}
	}
	for _, slot := range e.chain.checking {
		slot, _, _ := slot.in(inv.bound)
		own := Choice{Kind: KindCustom, ID: slot.name, Reason: "a slot of the program's own"}
		explainer, ok := slot.checker.(Explainer)
		if !ok && (slot.checker != nil || slot.rechecker != nil) {
			x.Rules = append(x.Rules, ExplainedRule{own, Judgement{Outcome: Unknown, Why: "it does not explain itself"}})
		}
		if !ok {
			continue
		}
		for _, j := range explainer.Explain(inv) {
			c, ok := chosen[slot.kind][j.Rule]
			if !ok {
				c = own
			}
			x.Rules = append(x.Rules, ExplainedRule{c, j})
		}
	}
	x.conclude(inv)
	return x, nil
}

// conclude combines the judgements of the rules.
func (x *Explanation) conclude(inv *Invocation) {
	x.Runs = x.At
	for i := range x.Rules {
		r := &x.Rules[i]
		if r.Mode != spec.Enforce {
			continue
		}
		switch r.Outcome {
		case Refused:
			if x.Outcome != Refused {
				x.Outcome, x.By, x.Next = Refused, i, r.Next
			} else if !x.Next.IsZero() && (r.Next.IsZero() || r.Next.After(x.Next)) {
				x.Next = r.Next
			}
		case Waits:
			longer := r.Runs.IsZero() || !x.Runs.IsZero() && r.Runs.After(x.Runs)
			if x.Outcome == Refused || x.By >= 0 && !longer {
				break
			}
			x.Outcome, x.By = Waits, i
			if longer {
				x.Runs = r.Runs
			}
		case Unknown:
			if x.Outcome == Passes {
				x.Outcome = Unknown
			}
		}
	}
	switch {
	case x.Outcome != Waits:
	case inv.engine.drain.on.Load():
		x.Outcome, x.Draining = Refused, true
	case !inv.inTime(max(0, x.Runs.Sub(x.At))):
		x.Outcome, x.GivesUp = Refused, true
	}
	if x.Outcome == Refused {
		x.Runs = time.Time{}
	}
}

// look finds what a call that does not take place would find. It makes what doesn't exist outside
// the tree, visible to no other call; known is whether the resource existed.
func (inv *Invocation) look(name string) (known bool) {
	e := inv.engine
	r, known := e.FindResource(name)
	if !known && !e.resources.HasPlace(name) {
		r, known = e.resources.overflow, true
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

// lookAt is lookUp for readers. What the rules in force already have at the resource is used; what
// they would have there for the first time is built separately, and not kept. The resource is
// brought up to date only if it still goes by older rules, as it does until the update gets to it:
// what is handed over is handed over once.
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
	last := r.turn(set)
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
	return e.bind(set, e.alone(r.Name()), last, s, nil, now)
}

// after is the time of the call plus a wait.
func (inv *Invocation) after(wait time.Duration) time.Time {
	return time.Unix(0, inv.now+int64(wait)).UTC()
}

// Refuse says that the call is refused, and when it would no longer be, if that is known.
func (j *Judgement) Refuse(inv *Invocation, after time.Duration, known bool) {
	j.Outcome = Refused
	if known {
		j.Next = inv.after(max(0, after))
	}
}

// JudgeWait says that the call waits that long or, if ok is false, that it is refused until the
// wait is at most maxWait.
func (j *Judgement) JudgeWait(inv *Invocation, wait time.Duration, ok bool, maxWait time.Duration) {
	switch {
	case !ok:
		j.Refuse(inv, wait-maxWait, true)
	case wait > 0:
		j.Outcome, j.Runs = Waits, inv.after(wait)
	}
}

// JudgeTokens judges a call of n units by a token bucket that holds size.
func (j *Judgement) JudgeTokens(inv *Invocation, b stat.TokenBucket, n, size int64) {
	switch {
	case n > size:
		j.Outcome = Refused
	case !b.Fits(inv.now, n, size):
		j.Refuse(inv, b.RetryAfter(inv.now, n, size), true)
	}
}

// MeasureUnits is a measure of units under a limit.
func MeasureUnits(of string, used, limit int64) Measure {
	left := max(0, limit-used)
	return Measure{Of: of, Measured: float64(used), Limit: float64(limit), Remaining: &left}
}

// MeasureTokens is a measure of a token bucket that holds size.
func MeasureTokens(b stat.TokenBucket, now, size int64) Measure {
	left := b.Whole(now, size)
	return Measure{Of: "tokens taken", Measured: float64(size) - b.Left(now, size), Limit: float64(size), Remaining: &left}
}

// MeasureTurns is a measure of a queue for turns: how long the call would wait for its own, and
// how many more there are.
func MeasureTurns(wait, maxWait time.Duration, left *int64) Measure {
	return Measure{Of: "wait for a turn", Measured: shown.Millis(wait), Limit: shown.Millis(maxWait), Unit: "ms", Remaining: left}
}
