package replay

import "github.com/penstock-go/penstock/flow"

// A row is one deliberate difference from Java. It covers the smallest set of differences that its
// id stands for, and requires evidence, in numbers if possible: for example, that a limit was
// reached for Java but not for us, or that a wait differs only by rounding. It never looks at the
// name of a trace.
//
// Our own promise is checked for every call and figure, explained or not: a verdict must match
// promise.go, and a figure must match the book (model.go).
type row struct {
	id string // in semantics.md §3

	// decision explains a verdict that differs from Java's: the remainder of the trace can't be
	// compared.
	decision func(m *moment) bool
	// aside explains a verdict that differs from Java's only in the wait or the rule, without
	// consequences.
	aside func(m *moment) bool
	// figure explains a figure.
	figure func(d *difference) bool
	// event is an effect in Java that we don't have.
	event event
	// events explains breaker state changes that happen only here or only in Java. The remainder of
	// the trace can't be compared unless eventsAside is set.
	events      func(j *judge, op *Op, got []breakerEvent) bool
	eventsAside bool
	// state explains a breaker's state.
	state func(j *judge, rule string) bool
}

type event int

const (
	_                event = iota
	endsOtherCalls         // an exit in the wrong order ends the calls nested in it, and throws
	keepsOldRules          // loading throws
	keepsInvalidRule       // that we refuse
	keepsFirstRule         // of a resource, and drops the others
)

// table lists the deliberate differences, the narrowest conditions first: the first row that
// explains a difference is charged for it.
var table = []row{
	{id: "A3 D15",
		decision: func(m *moment) bool { return m.wentBack },
		figure:   func(d *difference) bool { return d.wentBack }},
	{id: "A9 D14", decision: countsBelowOne, figure: countsDiffer},
	{id: "A10", event: endsOtherCalls, figure: func(d *difference) bool { return d.misordered }},
	{id: "A11 F13", decision: beyondCaps},
	{id: "C8", decision: func(m *moment) bool {
		return m.call.origin == flow.OriginDefault || m.call.origin == flow.OriginOther
	}},
	{id: "C6 C9", event: keepsInvalidRule, decision: refusedRule},
	{id: "D8", event: keepsOldRules, decision: func(m *moment) bool { return m.javaKeptOld }},
	{id: "F7", decision: otherArgument},
	{id: "F10", decision: forgottenByReload},
	{id: "F6", decision: longestWait},
	{id: "F8", decision: listAtOnce, aside: summedWait},
	{id: "F11", decision: batchOfValue},
	{id: "C3", aside: declaredFirst},
	{id: "F12", event: keepsFirstRule, decision: otherLists, aside: otherLists},
	{id: "F2", decision: checksOff},
	{id: "F1", decision: oneTooMany, aside: oneTooMany},
	{id: "C5", decision: blocksUnseen},
	{id: "C2 F11", decision: batchHoldsMore},
	{id: "B7 C1", decision: perInterval},
	{id: "D2", decision: noTokens},
	{id: "D1", decision: coldBelowOne},
	{id: "D6", decision: startedWarm},
	{id: "C4", decision: func(m *moment) bool { return breakerKept(m) || stateKept(m) }, state: breakerStateKept},
	{id: "E3 E8", decision: strayed, events: lateCounted},
	{id: "E10", decision: slowed, events: waitCounted},
	{id: "E4", events: probeRefusedElsewhere, eventsAside: true},
	{id: "A2 B1", decision: forgotten},
	{id: "D9 D10", decision: roundedFlip, aside: roundedWait, figure: roundedTimes},
	{id: "B8", decision: overtaken, aside: overtaken},
	{id: "B3", decision: passedBy},
	{id: "B2 B6", decision: bookedElsewhere, figure: borrowedFigure},
	{id: "D12", decision: either(decidedTogether, chargedInVain), aside: either(waitedInVain, waitedForEach), figure: blockedLater},
	{id: "B9 D13", decision: reservedEarly},
	{id: "exact", decision: comingFull},

	{id: "D10", decision: wholeMilliseconds, aside: roundedTurn},

	{id: "A7", figure: childrenSummed},
	{id: "A4", decision: averageFlips, aside: averageFlips, figure: averageOverCalls},
	{id: "A5", figure: responseTime},
	{id: "A6", figure: func(d *difference) bool { return d.field == "occupiedPassQps" && d.want == 0 }},
	{id: "F3", decision: otherEvidence, aside: otherEvidence, figure: noBestBucket},
}

// either combines two conditions.
func either(a, b func(*moment) bool) func(*moment) bool {
	return func(m *moment) bool { return a(m) || b(m) }
}
