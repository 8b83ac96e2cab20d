package clocks

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/slots"
)

// phase is when the clock is set.
type phase string

// The phases of a call, in their order, and what else may be going on.
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
	duringRetry  phase = "while a refused caller asks when to come again"
)

var phases = []phase{
	betweenCalls, beforeAsk, beforeTake, beforeRecord, duringWait, afterWait, duringRefuse,
	beforeExit, duringExit, duringReload, duringEvict, duringTree, duringRetry,
}

// chain is the standard chain with slots in between that call at in every phase of a
// call.
func chain(at func(phase), passed func(*core.Invocation), completed func(*core.Invocation)) *core.Chain {
	return (*core.Chain)(slots.Default()).
		With(outer{at, passed, completed}, core.Before("nodeSelector")).
		With(asked{at}, core.Before("flow")).
		With(taken{at}, core.After("flow"))
}

// outer comes before all others.
type outer struct {
	at                func(phase)
	passed, completed func(*core.Invocation)
}

func (outer) Name() string                                 { return "outer" }
func (o outer) Prepare(*core.Invocation)                   { o.at(beforeAsk) }
func (o outer) Passed(inv *core.Invocation)                { o.passed(inv) }
func (o outer) Blocked(*core.Invocation, *core.BlockError) { o.at(duringRefuse) }
func (o outer) Completed(inv *core.Invocation)             { o.at(duringExit); o.completed(inv) }

// asked comes before the rules: when it takes, all have been asked.
type asked struct{ at func(phase) }

func (asked) Name() string                             { return "asked" }
func (asked) Ask(*core.Invocation) (v core.Verdict)    { return v }
func (a asked) Take(*core.Invocation) (v core.Verdict) { a.at(beforeTake); return v }

// taken comes after the rules.
type taken struct{ at func(phase) }

func (taken) Name() string                                { return "taken" }
func (taken) Ask(*core.Invocation) (v core.Verdict)       { return v }
func (t taken) Take(*core.Invocation) (v core.Verdict)    { t.at(beforeRecord); return v }
func (t taken) Recheck(*core.Invocation) (v core.Verdict) { t.at(afterWait); return v }
