package system

import (
	"fmt"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/sampler"
	"github.com/penstock-go/penstock/internal/shed"
	"github.com/penstock-go/penstock/internal/shown"
)

// Choices returns a choice for each rule: each applies to every resource, unless it is off.
func (t *table) Choices(string, string) (choices []core.Choice) {
	for _, r := range t.gates.All() {
		c := core.Choice{ID: r.ID, Mode: r.Mode, Applies: r.Mode != spec.Off, Reason: "applies to all inbound calls"}
		if !c.Applies {
			c.Reason = "it is off"
		}
		choices = append(choices, c)
	}
	return choices
}

// Explain returns the judgement of each rule on the call.
func (rs *checker) Explain(inv *engine.Invocation) (all []core.Judgement) {
	for _, i := range rs.holding {
		all = append(all, rs.rules[i].explain(inv))
	}
	for _, g := range rs.shadows {
		all = append(all, g.explain(inv))
	}
	return all
}

// explain is like fits, but reports the numbers behind the decision and has no side effects.
func (g *gate) explain(inv *engine.Invocation) core.Judgement {
	j := core.Judgement{Rule: g.rule.ID}
	if !inv.Inbound() {
		j.Outcome, j.Why = core.NotJudged, "the call is not inbound"
		return j
	}
	now, units := inv.Now(), inv.Units()
	var ok bool
	var m core.Measure
	switch g.rule.Metric {
	case QPS:
		ok = g.limit > 0 && g.window.Fits(now, units, g.limit)
		m = engine.MeasureUnits("inbound units in "+g.rule.Interval.String(), g.window.Sum(now), g.limit)
		*m.Remaining = g.window.Room(now, g.limit)
	case Concurrency:
		semaphore := g.inbound.LookSemaphore(g.meter.Owner)
		g.inbound.Settle(semaphore)
		limit := g.limit - g.explainShed(inv, semaphore, &j)
		ok = semaphore.Fits(units, limit)
		m = engine.MeasureUnits("inbound units in flight", semaphore.InUse(), limit)
	case RT:
		mean := g.times.mean(now)
		ok = mean <= int64(g.rule.MaxRT)
		m = core.Measure{Of: "mean response time in " + g.rule.Interval.String(), Unit: "ms",
			Measured: float64(mean) / 1e6, Limit: shown.Millis(g.rule.MaxRT)}
	default:
		ok, m = g.explainMachine(inv, &j)
	}
	if !ok {
		var wait, known = g.RetryAfter()
		if g.window != nil {
			wait, known = g.window.RetryAfter(now, units, g.limit)
		}
		inv.JudgeRefused(&j, wait, known)
	}
	j.Measures = append([]core.Measure{m}, j.Measures...)
	return j
}

// explainMachine is like explain, but for rules on load or CPU use.
func (g *gate) explainMachine(inv *engine.Invocation, j *core.Judgement) (ok bool, m core.Measure) {
	reading := g.reading.Value()
	m = core.Measure{Of: g.rule.Metric.String(), Measured: max(0, reading), Limit: g.rule.Threshold}
	if reading == sampler.Unknown {
		j.Why = "the machine has not been read yet"
	}
	above := reading > g.rule.Threshold
	switch {
	case g.ceiling != nil:
		most := g.ceiling.units.Load()
		if most == none {
			return true, m
		}
		used := g.unitsInFlight(inv)
		reserve := g.explainShed(inv, g.inbound.LookSemaphore(g.meter.Owner), j)
		if j.Why != "" {
			j.Why += "; "
		}
		j.Why += fmt.Sprintf("the learned limit is %d units in flight plus one call, since the %s was above the threshold", most, g.rule.Metric)
		u := engine.MeasureUnits("inbound units in flight", used, most-reserve)
		u.Remaining = nil
		j.Measures = append(j.Measures, u)
		return used <= most-reserve, m
	case above && g.rule.Strategy == BBR && g.servable(inv.Now()):
		j.Why = "above the threshold, but no more calls are in flight than can be served"
		return true, m
	}
	return !above, m
}

// explainShed returns the units that a call leaves free for those of higher levels.
func (g *gate) explainShed(inv *engine.Invocation, semaphore *meter.Semaphore, j *core.Judgement) (reserve int64) {
	if g.judge == nil {
		return 0
	}
	u := unitsInFlight{inbound: g.inbound, semaphore: semaphore, n: inv.Units(), watch: true}
	if g.ceiling != nil {
		u.above = u.n
	}
	_, reserve = shed.Look(g.judge, inv, u)
	j.Why = g.judge.Explain(inv.Level(), reserve)
	return reserve
}
