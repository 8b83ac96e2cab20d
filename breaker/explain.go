package breaker

import (
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
)

// Explain returns the judgement of each breaker on the call.
func (rs *checker) Explain(inv *engine.Invocation) (all []core.Judgement) {
	for _, c := range slices.Concat(rs.Holding, rs.Shadows) {
		j := core.Judgement{Rule: c.rule.ID}
		c.machine.explain(inv, &j)
		all = append(all, j)
	}
	return all
}

// Explain adds the breaker's judgement on a call.
func (s Single) Explain(inv *engine.Invocation, j *core.Judgement) { s.machine.explain(inv, j) }

// explain is like asks, but reports the numbers behind the decision and has no side effects.
func (m *machine) explain(inv *engine.Invocation, j *core.Judgement) {
	now, t := inv.Now(), m.terms.Load()
	if !m.lets(now) {
		wait, known := m.retryAfter(now)
		inv.JudgeRefused(j, wait, known)
	}
	s, opened := m.statusAndCause(now)
	j.Why = "the breaker is " + s.State.String()
	switch {
	case s.State == HalfOpen:
		j.Why += fmt.Sprintf(", %d of %d probes in flight", s.Probes, t.Probes)
	case s.State == Open && j.Outcome == core.Passes:
		j.Why += ", and recovery is over: the call is a probe"
	case s.State == Open:
		j.Why += ": " + opened.of(Open)
	case s.State == Closed:
		j.Measures = []core.Measure{t.measure(s)}
		if t.Strategy != ConsecutiveErrors {
			j.Why += fmt.Sprintf("; %d calls completed, and it takes at least %d to open", s.Calls, t.MinCalls)
		}
	}
	if s.Neutral > 0 {
		j.Why += fmt.Sprintf("; %d neutral", s.Neutral)
	}
}

// lets is like asks, but doesn't count a turn.
func (m *machine) lets(now int64) bool {
	switch state, _ := m.state(); state {
	case Closed, ForcedClosed:
		return true
	case Recovering:
		step := rampStep(now-m.since.Load(), m.terms.Load().Ramp)
		return step == len(rampShares) || m.turn.Load()%rampShares[step] == 0
	}
	return now >= m.gate.Load()
}

// measure returns the measure that a closed breaker compares with its threshold.
func (t *terms) measure(s Status) core.Measure {
	m := core.Measure{Of: t.counted(), Measured: float64(s.Bad), Limit: t.Threshold}
	if !t.Strategy.counts() {
		m.Measured /= float64(max(1, s.Calls))
	}
	return m
}

// counted describes the quantity that the threshold limits.
func (t *terms) counted() string {
	of := "failed calls"
	switch t.Strategy {
	case ConsecutiveErrors:
		return of + " in a row"
	case SlowRatio:
		of = "slow calls"
	}
	if !t.Strategy.counts() {
		of = "share of " + of
	}
	return of + " in " + t.Interval.String()
}
