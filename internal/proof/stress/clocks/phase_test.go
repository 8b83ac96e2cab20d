package clocks

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/slots"
)

// phase is the moment at which the clock is set.
type phase string

// The phases of a call, in their order, and other work that may be in progress.
const (
	betweenCalls phase = "between two calls"
	beforeAsk    phase = "before it is asked"
	beforeTake   phase = "between ask and take"
	beforeRecord phase = "between take and record"
	duringWait   phase = "while it waits"
	afterWait    phase = "after the wait, before it runs"
	duringRefuse phase = "while a refusal is counted"
	beforeExit   phase = "between pass and exit"
	duringExit   phase = "during exit"
	duringReload phase = "during a reload"
	duringEvict  phase = "while idle nodes are evicted"
	duringTree   phase = "while the tree is read"
	duringRetry  phase = "while a refused caller asks when to retry"
)

var phases = []phase{
	betweenCalls, beforeAsk, beforeTake, beforeRecord, duringWait, afterWait, duringRefuse,
	beforeExit, duringExit, duringReload, duringEvict, duringTree, duringRetry,
}

// chain returns the standard chain with slots in between that call at in every phase of a call.
func chain(at func(phase), passed func(*engine.Invocation), completed func(*engine.Invocation)) *engine.Chain {
	return (*engine.Chain)(slots.Default()).
		With(outer{at, passed, completed}, engine.Before("nodeSelector")).
		With(asked{at}, engine.Before("flow")).
		With(taken{at}, engine.After("flow"))
}

// outer is the slot before all others.
type outer struct {
	at                func(phase)
	passed, completed func(*engine.Invocation)
}

func (outer) Name() string                                   { return "outer" }
func (o outer) Prepare(*engine.Invocation)                   { o.at(beforeAsk) }
func (o outer) Passed(inv *engine.Invocation)                { o.passed(inv) }
func (o outer) Blocked(*engine.Invocation, *core.BlockError) { o.at(duringRefuse) }
func (o outer) Completed(inv *engine.Invocation)             { o.at(duringExit); o.completed(inv) }

// asked is the slot before the rules: when it takes, all have been asked.
type asked struct{ at func(phase) }

func (asked) Name() string                                 { return "asked" }
func (asked) Ask(*engine.Invocation) (v engine.Verdict)    { return v }
func (a asked) Take(*engine.Invocation) (v engine.Verdict) { a.at(beforeTake); return v }

// taken is the slot after the rules.
type taken struct{ at func(phase) }

func (taken) Name() string                                    { return "taken" }
func (taken) Ask(*engine.Invocation) (v engine.Verdict)       { return v }
func (t taken) Take(*engine.Invocation) (v engine.Verdict)    { t.at(beforeRecord); return v }
func (t taken) Recheck(*engine.Invocation) (v engine.Verdict) { t.at(afterWait); return v }
