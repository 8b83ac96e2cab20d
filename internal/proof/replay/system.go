package replay

import (
	"math"
	"slices"

	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/sentinel"
	"github.com/penstock-go/penstock/stat"
	"github.com/penstock-go/penstock/system"
)

// JavaSystemRule is a system rule of Java Sentinel. Absent or negative values are not set.
type JavaSystemRule struct {
	ID             string   `json:"id"`
	MaxQps         *float64 `json:"maxQps"`
	MaxConcurrency *float64 `json:"maxConcurrency"`
	MaxAvgRtMs     *float64 `json:"maxAvgRtMs"`
	MaxLoad        *float64 `json:"maxLoad"`
	MaxCpuUsage    *float64 `json:"maxCpuUsage"`
}

// java returns the rule in the form of Java's rule files. Java ignores CPU limits above 1.
func (r JavaSystemRule) java() sentinel.JavaSystem {
	rule := sentinel.JavaSystemUnset
	for into, v := range map[*float64]*float64{
		&rule.QPS: r.MaxQps, &rule.MaxThread: r.MaxConcurrency, &rule.AvgRT: r.MaxAvgRtMs, &rule.HighestSystemLoad: r.MaxLoad, &rule.HighestCPUUsage: r.MaxCpuUsage,
	} {
		if v != nil && !(into == &rule.HighestCPUUsage && *v > 1) {
			*into = *v
		}
	}
	return rule
}

// javaChecks are Java's names for its checks.
var javaChecks = map[system.Metric]string{
	system.QPS: "qps", system.Concurrency: "thread", system.RT: "rt", system.Load: "load", system.CPU: "cpu",
}

// TranslateSystem returns native rules that behave like the Java ones: the smallest threshold of
// each kind, in the order of Java's checks, with the names that Java reports. off means that Java
// turns all checks off, since the last rule sets nothing.
func TranslateSystem(rules []JavaSystemRule, shape stat.Shape) (native []system.Rule, off bool, dropped []Dropped) {
	least := make(map[system.Metric]system.Rule)
	for _, r := range rules {
		set := r.java().In(shape)
		off = len(set) == 0
		if off {
			dropped = append(dropped, Dropped{r.ID, false, "sets no threshold"})
		}
		for _, n := range set {
			if before, ok := least[n.Metric]; !ok || n.Threshold < before.Threshold || n.MaxRT < before.MaxRT {
				least[n.Metric] = n
			}
		}
	}
	for _, check := range sentinel.JavaSystemFields {
		n, ok := least[check.Metric]
		if !ok {
			continue
		}
		n, err := spec.WithID(n, javaChecks[n.Metric]).Normalized()
		if err != nil {
			dropped = append(dropped, Dropped{n.ID, false, err.Error()})
		} else {
			native = append(native, n)
		}
	}
	return native, off, dropped
}

// script is a machine with the values in the trace.
type script struct{ load, cpu float64 }

func (s *script) Load(int64) (float64, error)       { return s.load, nil }
func (s *script) CPU(int64) (float64, error)        { return s.cpu, nil }
func (s *script) Memory(int64) (host.Memory, error) { return host.Memory{}, nil }

// checks holds the runner's knowledge of the system rules.
type checks struct {
	rules []system.Rule
	off   bool // in Java
	shows script
}

// setSystem changes the machine's values.
func (p *player) setSystem(op *Op) {
	if op.Load != nil {
		p.checks.shows.load = *op.Load
	}
	if op.CPU != nil {
		p.checks.shows.cpu = *op.CPU
	}
	p.guard.Engine().Sampler().Sample()
	p.model.Machine(p.checks.shows.load, p.checks.shows.cpu)
}

var inboundNode = NodeRef{Kind: "inbound"}

// limits returns the counting system rules, as the flow rules that they are equivalent to.
func (c *checks) limits() (rules []applied) {
	for _, r := range c.rules {
		if x, ok := limitOf(r); ok {
			rules = append(rules, x)
		}
	}
	return rules
}

func limitOf(r system.Rule) (x applied, ok bool) {
	f := flow.Rule{ID: r.ID, Threshold: r.Threshold, Interval: r.Interval, Buckets: r.Buckets, Origin: flow.OriginDefault}
	switch r.Metric {
	case system.QPS:
	case system.Concurrency:
		f.Metric = flow.Concurrency
	default:
		return x, false
	}
	return applied{&activeRule{Rule: f, system: true}, inboundNode}, true
}

// javaServable computes as Java does: with the best bucket, as if every bucket of a second were
// like it, at least one unit; and with 5 s if nothing completed.
func (m *moment) javaServable() bool {
	calls, _ := m.book.inFlight(inboundNode, m.now())
	all, best := m.book.second(inboundNode, m.now())
	least := float64(m.config.StatisticMaxRtMs)
	if all.Exited > 0 {
		least = min(least, max(1, math.Floor(ms(all.minRT))))
	}
	throughput := float64(max(1, best)) / toSeconds(m.book.width)
	return calls <= 1 || float64(calls) <= throughput*least/1000
}

// differ reports whether a system rule with one of these metrics made the difference.
func (m *moment) differ(metrics ...system.Metric) bool {
	return slices.ContainsFunc(m.checks.rules, func(r system.Rule) bool {
		ours := m.got.blockedBy == "system" && m.got.rule == r.ID
		java := m.want.BlockedBy == "system" && m.want.Rule == r.ID
		return slices.Contains(metrics, r.Metric) && (ours || java)
	})
}

// checksOff: Java has turned all checks off.
func checksOff(m *moment) bool { return m.checks.off && m.got.blockedBy == "system" }

// oneTooMany: in Java a limit of n calls admits n+1, regardless of their units: it refuses if more
// than n are in flight. Java's next check may refuse the call instead.
func oneTooMany(m *moment) bool {
	return m.got.blockedBy == "system" && m.any(func(x applied) bool {
		calls, _ := m.book.inFlight(x.node, m.now())
		return x.system && x.Metric == flow.Concurrency && x.ID == m.got.rule && calls <= x.limit()
	})
}

// otherEvidence: Java mistakes a burst for a throughput, and computes one even if nothing has
// completed.
func otherEvidence(m *moment) bool {
	return m.differ(system.Load) && m.servable != m.javaServable()
}

// averageFlips: Java averages response times per unit, we per call; the limit lies in between.
func averageFlips(m *moment) bool {
	if !m.differ(system.RT) {
		return false
	}
	i := slices.IndexFunc(m.checks.rules, func(r system.Rule) bool { return r.Metric == system.RT })
	d := &difference{player: m.player}
	calls, units, sum, _, _ := d.javaTimes(inboundNode)
	return calls != units && (sum/float64(max(1, units)) > ms(m.checks.rules[i].MaxRT)) != m.model.Overloaded(m.checks.rules[i].ID)
}
