package replay

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// judge compares one trace, operation by operation, with the player.
type judge struct {
	*player
	table   []row
	outcome *Outcome
	problem error // the first of the current operation
	latest  int64 // t of the previous operation
}

// Replay replays a trace and compares everything in it, except what the table explains.
func Replay(trace *Trace, table []row) *Outcome {
	o := &Outcome{Name: trace.Name, Asides: make(map[string]int), Explained: make(map[string]int)}
	if err := replay(trace, table, o); err != nil {
		o.Failure = err
	}
	return o
}

func replay(trace *Trace, table []row, o *Outcome) error {
	missing := trace.missing(nil)
	var ops []*Op
	if len(missing) == 0 { // otherwise the operations don't matter
		var err error
		if ops, err = trace.decode(); err != nil {
			return err
		}
		missing = trace.missing(ops)
	}
	if len(missing) > 0 {
		o.Skipped = strings.Join(missing, ", ")
		return nil
	}
	p, err := newPlayer(trace.Config)
	if err != nil {
		return err
	}
	j := &judge{player: p, table: table, outcome: o}
	err = j.play(trace, ops)
	if finished := p.finish(); err == nil { // even after a failure, for the waiting calls
		err = finished
	}
	return err
}

func (j *judge) play(trace *Trace, ops []*Op) error {
	j.loadRules(trace.Rules, &Expect{IgnoredRules: trace.IgnoredRules})
	if j.problem != nil {
		return fmt.Errorf("the rules: %w", j.problem)
	}
	for i, op := range ops {
		if j.run(op); j.problem != nil {
			return fmt.Errorf("op %d: %w\n\t%s", i, j.problem, trace.Ops[i])
		}
	}
	return nil
}

func (j *judge) fail(format string, args ...any) {
	if j.problem == nil {
		j.problem = fmt.Errorf(format, args...)
	}
}

// diverge records that the decision about the current call is the first to differ.
func (j *judge) diverge(row, format string, args ...any) {
	j.outcome.Row, j.outcome.After, j.outcome.Change = row, 1, fmt.Sprintf(format, args...)
}

// diverged reports whether a decision has changed: later operations can't be compared with the
// trace, only with the book.
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
	case "inspect":
		j.inspectBreaker(op)
	case "setSystem":
		j.setSystem(op)
	default:
		j.fail("unknown operation %q", op.Kind)
	}
	j.compareEvents(op)
	if !j.diverged() && op.Kind != "inspect" && op.Kind != "setSystem" {
		j.outcome.Ops++
	}
	j.javaNow = j.epoch + op.T*int64(time.Millisecond)
	if op.Expect.Clock != nil {
		j.javaNow = j.epoch + int64(fromMs(*op.Expect.Clock))
	}
	j.checkClock()
}

// checkClock compares the clock: if the trace says that a sleep moves it, it has moved.
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
	if op.Parent != nil && !j.runs(*op.Parent) {
		return // it would be nested in a call that we refused, or that still waits here
	}
	m := j.enter(op)
	if !j.diverged() {
		j.checkJavaHotspots(m)
		j.compareVerdict(m)
	}
	j.checkPromise(m)
	m.hot.followJava(m.call)
	j.record(m)
}

// runs reports whether the call runs in which another one is nested.
func (j *judge) runs(parent int) bool {
	l := j.open[parent]
	switch {
	case l != nil && l.pending == nil:
		return true
	case j.diverged():
	case l != nil && l.aside != "": // visible only now
		j.diverge(l.aside, "call %d calls before it is released here", parent)
	default:
		j.fail("call %d does not run", parent)
	}
	return false
}

// compareVerdict compares a verdict with Java's. It may be the first changed decision.
func (j *judge) compareVerdict(m *moment) {
	want := m.want.verdict()
	if m.hot.asleep && j.config.Sleep != "record" {
		j.diverge("D12", "Java makes call %d wait before it asks the next rule", m.call.id)
		return
	}
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
			j.diverge(r.id, "call %d: Java: %v, here: %v", m.call.id, want, m.got)
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
		case l != nil && l.aside != "": // visible only now
			j.outcome.Row, j.outcome.Change = l.aside, fmt.Sprintf("call %d exits before it is released here", op.ID)
		case l != nil:
			j.fail("call %d waits until %v", op.ID, j.sinceEpoch(l.released))
		default:
			j.fail("call %d is not open", op.ID)
		}
		return
	}
	if op.Expect.Error != "" { // Java ends other calls instead
		j.misordered = true
		j.explainEvent(endsOtherCalls)
	}
	l.oddCount = l.oddCount || op.Count != nil && *op.Count != l.units
	j.endAtBreakers(l)
	j.exit(l, op.Error)
}

// explainEvent looks for the row that explains an event.
func (j *judge) explainEvent(e event) {
	for _, r := range j.table {
		if r.event == e {
			j.outcome.Asides[r.id]++
			return
		}
	}
	j.fail("Java does something else here (%d)", e)
}

// loadRules loads rules and checks that we drop the same ones as Java.
func (j *judge) loadRules(rules Rules, want *Expect) {
	l, err := j.load(rules)
	if err != nil {
		j.fail("%w", err)
		return
	}
	if _, failed := want.Errors["flow"]; failed { // Java keeps the old rules
		j.javaKeptOld = true
		j.explainEvent(keepsOldRules)
		return
	}
	byJava := slices.Clone(l.later)
	for range l.later {
		j.explainEvent(keepsFirstRule)
	}
	for _, d := range l.dropped {
		if d.ByJava {
			byJava = append(byJava, d.ID)
		} else {
			j.explainEvent(keepsInvalidRule)
		}
	}
	slices.Sort(byJava)
	if !slices.Equal(byJava, slices.Sorted(slices.Values(want.IgnoredRules))) {
		j.fail("expected that rules %q are dropped, got %q", want.IgnoredRules, byJava)
	}
}
