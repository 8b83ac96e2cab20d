package golden

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Outcome is what came of replaying one trace.
type Outcome struct {
	Name    string
	Skipped string // the families that don't exist yet, "" if the trace was replayed
	Failure error

	Enters  int // in the trace
	Agreed  int // of them, verdicts that are Java's in everything
	Figures int // figures that are Java's

	Row       string         // of the first changed decision, "" if there is none
	Change    string         // what that is
	After     int            // enters at and after it
	Asides    map[string]int // by row, other verdicts and loads that are not quite Java's
	Explained map[string]int // by row, figures that are not Java's
}

// Status is passed, deliberate, skipped or failed.
func (o *Outcome) Status() string {
	switch {
	case o.Failure != nil:
		return "failed"
	case o.Skipped != "":
		return "skipped"
	case o.Row != "":
		return "deliberate"
	}
	return "passed"
}

// judge compares one trace, operation by operation, with what the player does.
type judge struct {
	*player
	table   []row
	outcome *Outcome
	problem error // the first of the present operation
	latest  int64 // t of the operation before
}

// Replay replays a trace and compares everything in it, but for what the table
// explains.
func Replay(trace *Trace, table []row) *Outcome {
	o := &Outcome{Name: trace.Name, Asides: make(map[string]int), Explained: make(map[string]int)}
	if err := replay(trace, table, o); err != nil {
		o.Failure = err
	}
	return o
}

func replay(trace *Trace, table []row, o *Outcome) error {
	ops, families, err := trace.decode()
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(families, func(family string) bool { return family == "flow" })
	if len(missing) > 0 {
		o.Skipped = strings.Join(missing, ", ")
		return nil
	}
	p, err := newPlayer(trace.Config)
	if err != nil {
		return err
	}
	j := &judge{player: p, table: table, outcome: o}
	j.loadRules(trace.Rules, &Expect{IgnoredRules: trace.IgnoredRules})
	if j.problem != nil {
		return fmt.Errorf("the rules: %w", j.problem)
	}
	for i, op := range ops {
		if j.run(op); j.problem != nil {
			return fmt.Errorf("op %d: %w\n\t%s", i, j.problem, trace.Ops[i])
		}
	}
	return p.finish()
}

func (j *judge) fail(format string, args ...any) {
	if j.problem == nil {
		j.problem = fmt.Errorf(format, args...)
	}
}

// diverged reports whether a decision has changed: what follows can't be compared
// with the trace, only with the book.
func (j *judge) diverged() bool { return j.outcome.Row != "" }

func (j *judge) run(op *Op) {
	j.wentBack = j.wentBack || op.T < j.latest
	j.latest = op.T
	at := j.epoch + op.T*int64(time.Millisecond)
	if j.config.Sleep == "advance" {
		at = max(at, j.javaNow)
	}
	j.javaNow = at
	if err := j.moveTo(op.T); err != nil {
		j.fail("%w", err)
		return
	}
	switch op.Kind {
	case "enter":
		j.enterOp(op)
	case "exit":
		j.exitOp(op)
	case "loadRules":
		j.loadRules(op.Rules, &op.Expect)
	case "snapshot", "history", "tree":
		j.inspect(op)
	case "inspect", "setSystem": // the inner state of one rule; what system rules go by
	default:
		j.fail("unknown operation %q", op.Kind)
	}
	j.javaNow = j.epoch + op.T*int64(time.Millisecond)
	if op.Expect.Clock != nil {
		j.javaNow = j.epoch + int64(fromMs(*op.Expect.Clock))
	}
	j.checkClock()
}

// checkClock compares the clock: where the trace says that a sleep moves it, it has
// moved.
func (j *judge) checkClock() {
	if j.clock.Now() != j.due {
		j.fail("the clock shows %v, not %v", j.sinceEpoch(j.clock.Now()), j.sinceEpoch(j.due))
	}
	if j.due != j.javaNow && !j.diverged() {
		j.explain(difference{field: "clock", want: float64(j.javaNow - j.epoch), got: float64(j.due - j.epoch)})
	}
}

func (j *judge) enterOp(op *Op) {
	j.outcome.Enters++
	if j.diverged() {
		j.outcome.After++
	}
	if op.Parent != nil && (j.open[*op.Parent] == nil || j.open[*op.Parent].pending != nil) {
		if !j.diverged() {
			j.fail("call %d does not run", *op.Parent)
		}
		return // it would be nested in a call that we refused
	}
	m := j.enter(op)
	if !j.diverged() {
		j.compareVerdict(m)
	}
	j.checkLimits(m)
	j.record(m)
}

// compareVerdict compares a verdict with Java's. It may be the first changed
// decision.
func (j *judge) compareVerdict(m *moment) {
	want := verdict{m.want.Result, m.want.wait(), m.want.BlockedBy, m.want.Rule}
	if m.got == want {
		j.outcome.Agreed++
		return
	}
	if m.got.result == want.result {
		for _, r := range j.table {
			if r.aside != nil && r.aside(m) {
				j.outcome.Asides[r.id]++
				m.call.aside = r.id
				return
			}
		}
	}
	for _, r := range j.table {
		if r.decision != nil && r.decision(m) {
			j.outcome.Row, j.outcome.After = r.id, 1
			j.outcome.Change = fmt.Sprintf("call %d: Java: %v, here: %v", m.call.id, want, m.got)
			return
		}
	}
	j.fail("expected %v, got %v", want, m.got)
}

func (j *judge) exitOp(op *Op) {
	l := j.open[op.ID]
	if l == nil || l.pending != nil {
		switch {
		case j.diverged(): // we refused it, or it waits longer
		case l != nil && l.aside != "": // that shows only now
			j.outcome.Row, j.outcome.Change = l.aside, fmt.Sprintf("call %d exits before it is released here", op.ID)
		case l != nil:
			j.fail("call %d waits until %v", op.ID, j.sinceEpoch(l.released))
		default:
			j.fail("call %d is not open", op.ID)
		}
		return
	}
	if op.Expect.Error != "" { // Java ends other calls instead
		j.outcome.Asides["A10"]++
		j.misordered = true
	}
	l.oddCount = l.oddCount || op.Count != nil && *op.Count != l.units
	j.exit(l, op.Error)
}

// loadRules loads rules and compares which of them Java dropped.
func (j *judge) loadRules(rules Rules, want *Expect) {
	java, present, err := rules.flow()
	if err == nil && !present {
		return
	}
	var dropped []Dropped
	if err == nil {
		dropped, err = j.load(java)
	}
	if err != nil {
		j.fail("%w", err)
		return
	}
	if _, failed := want.Errors["flow"]; failed { // Java keeps the old rules
		j.outcome.Asides["D8"]++
		j.javaKeptOld = true
		return
	}
	var byJava []string
	for _, d := range dropped {
		if d.ByJava {
			byJava = append(byJava, d.ID)
		} else {
			j.outcome.Asides["C6 C9"]++
		}
	}
	if !slices.Equal(sorted(byJava), sorted(want.IgnoredRules)) {
		j.fail("expected that rules %q are dropped, got %q", want.IgnoredRules, byJava)
	}
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// near reports whether two figures are the same. They are quotients of small
// integers, and our average response times are whole nanoseconds.
func near(a, b float64) bool {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.IsNaN(a) && math.IsNaN(b)
	}
	const nanosecond = 1.1e-6 // in ms
	return math.Abs(a-b) <= max(1e-9*max(math.Abs(a), math.Abs(b)), nanosecond)
}
