package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/system"
)

// counting returns the flow rule on all inbound calls that a counting system rule is equivalent to.
func counting(r system.Rule) (f flow.Rule, counts bool) {
	f = flow.Rule{ID: r.ID, Threshold: r.Threshold, Interval: r.Interval, Buckets: r.Buckets, Origin: flow.OriginDefault, Mode: r.Mode}
	if !r.Strict {
		f.Window = flow.Ring
	}
	if r.Metric == system.Concurrency {
		f.Metric = flow.Concurrency
	}
	return f, r.Metric == system.QPS || r.Metric == system.Concurrency
}

// gate is a system rule on the response time. It holds the calls that have ended since the rule was
// loaded or were known by then, and their times if known.
type gate struct {
	rule  system.Rule
	ended []timed
}

type timed struct {
	at int64
	rt time.Duration
}

func (m *Model) limiterOf(r system.Rule) *limiter {
	for _, l := range m.rules {
		if l.kind == core.KindSystem && l.rule.ID == r.ID {
			return l
		}
	}
	return nil
}

func (m *Model) askSystem(c *Call, r system.Rule) bool {
	if _, counts := counting(r); counts {
		_, ok := m.fits(m.limiterOf(r), c)
		return ok
	}
	return !m.overloaded(r)
}

func (m *Model) takeSystem(c *Call, r system.Rule) bool {
	if _, counts := counting(r); counts {
		return m.takeOf(m.limiterOf(r), c).refused == nil
	}
	return !m.overloaded(r)
}

// systemTakers returns the system rules that count and are enforced, the scarcest first.
func (m *Model) systemTakers() (takers []*limiter) {
	for _, l := range m.rules {
		if l.kind == core.KindSystem && l.rule.Mode == spec.Enforce {
			takers = append(takers, l)
		}
	}
	slices.SortStableFunc(takers, func(a, b *limiter) int { return cmp.Compare(a.abundance(), b.abundance()) })
	return takers
}

// overloaded reports whether a rule on a sign of overload refuses inbound calls.
func (m *Model) overloaded(r system.Rule) bool {
	switch r.Metric {
	case system.RT:
		for _, g := range m.gates {
			if g.rule.ID == r.ID {
				return g.slow(m.now)
			}
		}
	case system.Load:
		return m.load > r.Threshold && !(r.Strategy == system.BBR && m.Servable())
	case system.CPU:
		return m.cpu > r.Threshold && !(r.Strategy == system.BBR && m.Servable())
	}
	return false
}

// slow reports whether the mean response time within the interval is above the limit.
func (g *gate) slow(now int64) bool {
	var sum, n int64
	width := int64(g.rule.Interval) / int64(g.rule.Buckets)
	for _, e := range g.ended {
		if floorDiv(e.at, width) > floorDiv(now, width)-int64(g.rule.Buckets) {
			sum += int64(e.rt)
			n++
		}
	}
	return sum > int64(g.rule.MaxRT)*n
}

func (g *gate) complete(c *Call) {
	if c.Inbound {
		g.ended = append(g.ended, timed{c.ended, time.Duration(c.ended - c.began)})
	}
}

// Servable reports whether one more call is acceptable on a busy machine: at most one is in flight,
// or no more than throughput times minimum response time, in the second window and in the last
// whole second. Without any completed call there is no evidence.
func (m *Model) Servable() bool {
	inFlight := 0
	fine, second := int64(m.config.Interval)/int64(m.config.Buckets), int64(time.Second)
	from := floorDiv(m.now, fine)*fine + fine - int64(m.config.Interval)
	last := floorDiv(m.now, second)*second - second
	var recent, before float64
	least := time.Duration(-1)
	for _, c := range m.calls {
		if !c.Inbound {
			continue
		}
		if c.State == Running {
			inFlight++
		}
		if c.State != Done {
			continue
		}
		inRecent, inLast := c.ended >= from, c.ended >= last && c.ended < last+second
		if inRecent {
			recent += float64(c.Units)
		}
		if inLast {
			before += float64(c.Units)
		}
		if rt := time.Duration(c.ended - c.began); (inRecent || inLast) && (least < 0 || rt < least) {
			least = rt
		}
	}
	throughput := max(recent/m.config.Interval.Seconds(), before)
	return inFlight <= 1 || least < 0 || float64(inFlight) <= throughput*max(least, time.Nanosecond).Seconds()
}

// applySystem puts the rules on response times into effect. A new one starts with the inbound
// node's data: the second window bucket by bucket, earlier calls by the second, for a minute.
func (m *Model) applySystem() {
	before := m.gates
	m.gates = nil
	for _, r := range m.set.System {
		if r.Metric != system.RT || r.Mode == spec.Off {
			continue
		}
		g := &gate{rule: r}
		i := slices.IndexFunc(before, func(o *gate) bool { return o.rule.ID == r.ID })
		switch {
		case i < 0:
			g.ended = m.timed()
		case before[i].rule.Interval == r.Interval && before[i].rule.Buckets == r.Buckets:
			g.ended = before[i].ended
		default:
			width := int64(before[i].rule.Interval) / int64(before[i].rule.Buckets)
			for _, e := range before[i].ended {
				if floorDiv(e.at, width) > floorDiv(m.now, width)-int64(before[i].rule.Buckets) {
					g.ended = append(g.ended, timed{min(floorDiv(e.at, width)*width+width-1, m.now), e.rt})
				}
			}
		}
		m.gates = append(m.gates, g)
	}
}

// timed returns the ended inbound calls that the node knows.
func (m *Model) timed() (all []timed) {
	fine, second := int64(m.config.Interval)/int64(m.config.Buckets), int64(time.Second)
	recent := floorDiv(m.now, fine)*fine + fine - int64(m.config.Interval)
	for _, c := range m.calls {
		if c.State != Done || !c.Inbound {
			continue
		}
		start := floorDiv(c.ended, second) * second
		switch {
		case c.ended >= recent:
			all = append(all, timed{floorDiv(c.ended, fine) * fine, time.Duration(c.ended - c.began)})
		case start+second <= recent && start > floorDiv(m.now, second)*second-60*second:
			all = append(all, timed{start, time.Duration(c.ended - c.began)})
		}
	}
	return all
}
