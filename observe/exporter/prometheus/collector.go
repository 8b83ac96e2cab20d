// Package penstockprometheus exports a Guard's counts to Prometheus. A [Collector] reads totals
// when it is scraped; between scrapes, and during calls, it does nothing.
//
//	prometheus.MustRegister(penstockprometheus.NewCollector(guard, penstockprometheus.Config{}))
//
// The folder also has dashboard.json for Grafana and alerts.yaml for Prometheus.
//
// The page docs/metrics.md lists the metrics.
package penstockprometheus

import (
	"errors"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/observe/exporter/internal/series"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
	"github.com/penstock-go/penstock/upstream"
)

// Config configures a Collector. The zero value suits most programs.
type Config struct {
	// MaxResources is the maximum number of resources with their own series; further ones are
	// counted together, as resource "__other__". 0 means 500.
	MaxResources int
	// ConstLabels are added to every series.
	ConstLabels prometheus.Labels
}

// Collector is a [prometheus.Collector] for a Guard. It is safe for concurrent use.
type Collector struct {
	guard  *api.Guard
	reader *series.Reader
	descs  []*prometheus.Desc
	remove func() // removes the listener for breaker changes

	mu          sync.Mutex
	transitions map[transition]float64
	grown       map[string]grown

	entries, errors, duration, inFlight *prometheus.Desc
	units, uncosted                     *prometheus.Desc
	inbound, inboundErrors              *prometheus.Desc
	waiting, failures, leaked           *prometheus.Desc
	refusals, shadowRefusals, threshold *prometheus.Desc
	breakerState, breakerTransitions    *prometheus.Desc
	reloads, lastReload                 *prometheus.Desc
	values, valueOverflows              *prometheus.Desc
	shareCount, shareHeld, shareQueued  *prometheus.Desc
	levelCalls, levelReserve            *prometheus.Desc
	unknownLevels                       *prometheus.Desc
	paused, pausesMissed                *prometheus.Desc
	retries, retryBudget, throttled     *prometheus.Desc
	members, leased, away               *prometheus.Desc
	requests, waited, withoutStore      *prometheus.Desc
	cpu, load, memory                   *prometheus.Desc
	notices, locked, lockouts           *prometheus.Desc
	nodes, nodesMax, overflows          *prometheus.Desc
}

// transition is the labels of a breaker's state change.
type transition struct{ resource, rule, from, to string }

// NewCollector returns a Collector for a Guard. It counts state changes of breakers until it is
// closed.
func NewCollector(guard *api.Guard, config Config) *Collector {
	c := &Collector{guard: guard, reader: series.NewReader(guard, config.MaxResources), transitions: make(map[transition]float64), grown: make(map[string]grown)}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		d := prometheus.NewDesc("penstock_"+name, help, labels, config.ConstLabels)
		c.descs = append(c.descs, d)
		return d
	}
	c.entries = desc("entries_total", "Units that asked for a resource, by result: pass or block.", "resource", "result")
	c.errors = desc("errors_total", "Units that completed with an error.", "resource")
	c.duration = desc("entry_duration_seconds", "Response times of completed calls.", "resource")
	c.inFlight = desc("inflight", "Calls that entered and have not exited.", "resource")
	c.units = desc("units_total", "Units such as tokens, by result: reserved, refunded, overdrawn, forgiven or refused.", "resource", "unit", "result")
	c.uncosted = desc("uncosted_calls_total", "Calls that have ended, and named no cost in a unit that a rule counts.", "resource", "unit")
	c.inbound = desc("inbound_entries_total", "Units of inbound calls, of all resources together, by result: pass or block.", "result")
	c.inboundErrors = desc("inbound_errors_total", "Units of inbound calls that completed with an error, of all resources together.")
	c.waiting = desc("waiting", "Calls that sleep until a rule lets them run.")
	c.failures = desc("internal_failures_total", "Panics of slots; the calls went on without the slot.")
	c.leaked = desc("leaked_entries_total", "Calls reported because they did not exit in time.")
	c.refusals = desc("rule_refusals_total", "Calls that a rule has refused since it was loaded.", "rule", "type")
	c.shadowRefusals = desc("rule_shadow_refusals_total", "Calls that a rule in shadow mode would have refused.", "rule", "type")
	c.notices = desc("rule_notices_total", "Notices of a rule: how often use of a limit has reached a share in its field notify.", "rule", "type")
	c.locked = desc("hotspot_locked_values", "Values that a hotspot rule has locked out.", "rule")
	c.lockouts = desc("hotspot_lockouts_total", "Lockouts of values by a hotspot rule.", "rule")
	c.threshold = desc("rule_threshold", "Threshold of a flow, isolation or hotspot rule.", "resource", "rule", "type")
	c.values = desc("hotspot_values", "Values that a hotspot rule currently tracks.", "rule")
	c.shareCount = desc("shares", "Tenants among whom an isolation or flow rule shares its limit.", "rule")
	c.shareHeld = desc("share_held_units", "Units that a tenant holds; 20 tenants, and the others as one.", "rule", "share")
	c.shareQueued = desc("share_queued_calls", "Calls of a tenant that wait; 20 tenants, and the others as one.", "rule", "share")
	c.levelCalls = desc("level_calls_total", "Calls that a rule with a shed order has decided on, by criticality and result: admitted or refused.", "rule", "type", "level", "result")
	c.levelReserve = desc("level_reserve_units", "Units that calls of a level leave free for the levels above, over all resources.", "rule", "type", "level")
	c.unknownLevels = desc("unknown_criticalities_total", "Unknown words that callers have named as a criticality.")
	c.valueOverflows = desc("hotspot_value_overflows_total", "Calls whose value found no place and shared a limit with others.", "rule")
	c.paused = desc("upstream_paused", "Resources or hosts that an upstream rule pauses.", "rule")
	c.pausesMissed = desc("upstream_missed_pauses_total", "Answers that an upstream rule did not obey, as it had paused too many others.", "rule")
	c.retries = desc("upstream_retries", "Retries in flight.", "resource", "rule")
	c.retryBudget = desc("upstream_retry_budget", "Retries that may be in flight now.", "resource", "rule")
	c.throttled = desc("upstream_refuse_probability", "Probability with which the throttle of an upstream rule refuses a call.", "resource", "rule")
	c.members = desc("cluster_members", "Members that divide a shared limit while the store is unreachable.", "rule", "type")
	c.leased = desc("cluster_leased", "Units of a shared limit that this process has leased.", "rule", "type")
	c.away = desc("cluster_fallback", "1 while the store of a shared limit is unreachable and onFailure decides calls.", "rule", "type")
	c.requests = desc("cluster_lease_requests_total", "Requests to the store of a shared limit.", "rule", "type")
	c.waited = desc("cluster_waits_total", "Calls that waited for the store of a shared limit.", "rule", "type")
	c.withoutStore = desc("cluster_local_refusals_total", "Calls that a shared limit refused without asking the store.", "rule", "type")
	c.breakerState = desc("circuit_breaker_state", "1 for the current state of a breaker, 0 for the others.", "resource", "rule", "state")
	c.breakerTransitions = desc("circuit_breaker_transitions_total", "State changes of breakers.", "resource", "rule", "from", "to")
	c.reloads = desc("rules_reloads_total", "Loads of a source of rules, by result: success or failure.", "source", "result")
	c.lastReload = desc("rules_last_reload_success_timestamp_seconds", "Time of the last successful load of a source of rules.", "source")
	c.cpu = desc("system_cpu_ratio", "CPU use from 0 to 1; only while a rule uses it.")
	c.load = desc("system_load1", "Load average of the last minute; only while a rule uses it.")
	c.memory = desc("system_memory_bytes", "Memory in use; only while a rule uses it.")
	c.nodes = desc("nodes", "Nodes of the tree that count towards the cap, by kind; names in rules don't.", "kind")
	c.nodesMax = desc("nodes_max", "Maximum number of nodes of a kind.", "kind")
	c.overflows = desc("node_overflows_total", "Calls whose name found no place in the tree and counted on an overflow node.", "kind")
	c.remove = guard.OnBreaker(c.changed)
	return c
}

// Close stops counting breaker changes; everything else can still be collected. It need not be
// called if the Collector lives as long as the Guard.
func (c *Collector) Close() { c.remove() }

// maxTransitions is the maximum number of series of changes; further ones are counted under
// [series.Other].
const maxTransitions = 5000

// changed counts a breaker's state change.
func (c *Collector) changed(change breaker.Change) {
	t := transition{c.reader.LabelOf(change.Resource), series.Label(change.Rule), change.From.String(), change.To.String()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.transitions[t]; !ok && len(c.transitions) >= maxTransitions {
		t.resource, t.rule = series.Other, series.Other
	}
	c.transitions[t]++
}

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect sends the Guard's current counts.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	m := metrics(to)
	c.resources(m)
	c.rules(m)
	c.breakers(m)
	c.sources(m)
	c.engine(m)
}

func (c *Collector) resources(m metrics) {
	for _, r := range c.reader.Resources() {
		t := &r.Totals
		m.counter(c.entries, float64(t.Pass), r.Label, "pass")
		m.counter(c.entries, float64(t.Block), r.Label, "block")
		m.counter(c.errors, float64(t.Exception), r.Label)
		m.gauge(c.inFlight, float64(r.InFlight), r.Label)
		for _, u := range r.Units {
			for _, x := range series.UnitResults(u.Total) {
				m.counter(c.units, float64(x.Units), r.Label, u.Unit, x.Result)
			}
			m.counter(c.uncosted, float64(u.Total.Uncosted), r.Label, u.Unit)
		}
		var quantiles map[float64]float64
		if p := &r.Percentiles; p.Count > 0 {
			quantiles = map[float64]float64{0.5: p.P50.Seconds(), 0.95: p.P95.Seconds(), 0.99: p.P99.Seconds()}
		}
		s, err := prometheus.NewConstSummary(c.duration, uint64(max(t.Timed(), 0)), t.RT.Seconds(), quantiles, r.Label)
		m.send(c.duration, s, err)
	}
	inbound := c.guard.Nodes().Inbound().Totals()
	m.counter(c.inbound, float64(inbound.Pass), "pass")
	m.counter(c.inbound, float64(inbound.Block), "block")
	m.counter(c.inboundErrors, float64(inbound.Exception))
}

func (c *Collector) rules(m metrics) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.grown
	c.grown = make(map[string]grown) // drops removed rules
	grow := func(of, rule, kind string, now int64) float64 {
		key := strings.Join([]string{of, kind, rule}, "\x00")
		g := before[key]
		c.grown[key] = grown{now, g.total + float64(max(now-g.last, 0))}
		return c.grown[key].total
	}
	shared := func(rule, kind string, f core.SharedStats) {
		away := 0.0
		if f.StoreAway() {
			away = 1
		}
		m.gauge(c.members, float64(f.Members), rule, kind)
		m.gauge(c.leased, float64(f.Leased), rule, kind)
		m.gauge(c.away, away, rule, kind)
		m.counter(c.requests, grow("requests", rule, kind, f.Requests), rule, kind)
		m.counter(c.waited, grow("waited", rule, kind, f.Waited), rule, kind)
		m.counter(c.withoutStore, grow("refused", rule, kind, f.Refused), rule, kind)
	}
	for _, f := range c.guard.RuleStats() {
		rule, kind := series.Label(f.ID), f.Kind.String()
		m.counter(c.refusals, float64(f.Refused), rule, kind)
		m.counter(c.shadowRefusals, float64(f.ShadowBlocked), rule, kind)
		if f.Notices > 0 {
			m.counter(c.notices, float64(f.Notices), rule, kind)
		}
		switch d := f.Details.(type) {
		case hotspot.Stats:
			m.gauge(c.values, float64(d.Values), rule)
			m.counter(c.valueOverflows, grow("values", rule, kind, d.Overflowed), rule)
			if n := d.Lockouts + d.LockoutsMissed; n > 0 {
				m.gauge(c.locked, float64(d.Locked), rule)
				m.counter(c.lockouts, grow("lockouts", rule, kind, d.Lockouts), rule)
			}
			if d.Cluster != nil {
				shared(rule, kind, *d.Cluster)
			}
		case core.SharedStats:
			shared(rule, kind, d)
		case core.Shares:
			c.shares(m, rule, d)
		case adaptive.Stats:
			c.levels(m, rule, kind, d.Levels, grow)
		case system.Stats:
			c.levels(m, rule, kind, d.Levels, grow)
		case upstream.Stats:
			m.gauge(c.paused, float64(d.Paused), rule)
			m.counter(c.pausesMissed, grow("missed", rule, kind, d.Missed), rule)
			c.upstreams(m, rule, d)
		}
	}
	for _, t := range c.reader.Thresholds() {
		m.gauge(c.threshold, t.Value, t.Resource, t.Rule, t.Type)
	}
}

// maxShares is the number of tenants with metrics of their own.
const maxShares = 20

// shares collects the largest shares of a rule, and the sum of the others as one.
func (c *Collector) shares(m metrics, rule string, f core.Shares) {
	top, rest := f.Largest(maxShares)
	rest.Share = "(others)"
	one := make(map[string]core.ShareStats) // a tenant may have a share of several resources
	for _, x := range append(top, rest) {
		x.Share = series.Label(x.Share)
		sum := one[x.Share]
		sum.Held, sum.Queued = sum.Held+x.Held, sum.Queued+x.Queued
		one[x.Share] = sum
	}
	for share, x := range one {
		m.gauge(c.shareHeld, float64(x.Held), rule, share)
		m.gauge(c.shareQueued, float64(x.Queued), rule, share)
	}
	m.gauge(c.shareCount, float64(f.Shares), rule)
}

// levels collects the calls of each level, over all resources of a rule.
func (c *Collector) levels(m metrics, rule, kind string, all []core.LevelStats, grow func(of, rule, kind string, now int64) float64) {
	for _, l := range all {
		name := l.Level.String()
		m.counter(c.levelCalls, grow("admitted "+name, rule, kind, l.Admitted), rule, kind, name, "admitted")
		m.counter(c.levelCalls, grow("refused "+name, rule, kind, l.Refused), rule, kind, name, "refused")
		m.gauge(c.levelReserve, float64(l.Reserve), rule, kind, name)
	}
}

// upstreams collects the state of a rule at each resource that has series of its own.
func (c *Collector) upstreams(m metrics, rule string, f upstream.Stats) {
	for _, s := range f.Upstreams {
		resource := c.reader.LabelOf(s.Resource)
		if resource == series.Other {
			continue // their states can't be summed
		}
		if s.Budget > 0 {
			m.gauge(c.retries, float64(s.Retries), resource, rule)
			m.gauge(c.retryBudget, float64(s.Budget), resource, rule)
		}
		m.gauge(c.throttled, s.Probability, resource, rule)
	}
}

// grown is a counter that never decreases, over a sum that may: a rule's counts for a resource are
// removed with the resource.
type grown struct {
	last  int64
	total float64
}

var states = []breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen, breaker.Recovering, breaker.ForcedOpen, breaker.ForcedClosed}

func (c *Collector) breakers(m metrics) {
	for _, b := range c.guard.Breakers() {
		resource := c.reader.LabelOf(b.Resource)
		if resource == series.Other {
			continue // their states can't be summed
		}
		for _, s := range states {
			value := 0.0
			if b.State == s {
				value = 1
			}
			m.gauge(c.breakerState, value, resource, series.Label(b.Rule), s.String())
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for t, n := range c.transitions {
		m.counter(c.breakerTransitions, n, t.resource, t.rule, t.from, t.to)
	}
}

// sources merges sources of the same name: a file may be watched by itself and with its directory.
func (c *Collector) sources(m metrics) {
	var names []string
	all := make(map[string]rules.Status)
	for _, s := range c.guard.Status().Sources {
		sum, again := all[s.Source]
		if !again {
			names = append(names, s.Source)
		}
		sum.Successes += s.Successes
		sum.Failures += s.Failures
		if s.LastSuccess.After(sum.LastSuccess) {
			sum.LastSuccess = s.LastSuccess
		}
		all[s.Source] = sum
	}
	for _, name := range names {
		s, source := all[name], series.Label(name)
		m.counter(c.reloads, float64(s.Successes), source, "success")
		m.counter(c.reloads, float64(s.Failures), source, "failure")
		if !s.LastSuccess.IsZero() {
			m.gauge(c.lastReload, float64(s.LastSuccess.UnixNano())/1e9, source)
		}
	}
}

func (c *Collector) engine(m metrics) {
	m.gauge(c.waiting, float64(c.guard.Waiting()))
	m.counter(c.failures, float64(c.guard.Failures()))
	m.counter(c.leaked, float64(c.guard.Leaked()))
	m.counter(c.unknownLevels, float64(c.guard.UnknownCriticalities()))
	machine := c.guard.Machine()
	for _, q := range []struct {
		desc  *prometheus.Desc
		value float64
	}{{c.cpu, machine.CPU}, {c.load, machine.Load}, {c.memory, machine.Memory}} {
		if q.value >= 0 {
			m.gauge(q.desc, q.value)
		}
	}
	tree := c.guard.Nodes()
	for _, budget := range []struct {
		kind string
		of   interface {
			Used() int
			Cap() int
			Overflows() int64
		}
	}{{"resource", tree.Resources()}, {"context", tree.Contexts()}, {"call", tree.Calls()}, {"origin", tree.Origins()}} {
		m.gauge(c.nodes, float64(budget.of.Used()), budget.kind)
		m.gauge(c.nodesMax, float64(budget.of.Cap()), budget.kind)
		m.counter(c.overflows, float64(budget.of.Overflows()), budget.kind)
	}
}

// metrics receives the metrics of a scrape.
type metrics chan<- prometheus.Metric

func (m metrics) counter(d *prometheus.Desc, value float64, labels ...string) {
	metric, err := prometheus.NewConstMetric(d, prometheus.CounterValue, value, labels...)
	m.send(d, metric, err)
}

func (m metrics) gauge(d *prometheus.Desc, value float64, labels ...string) {
	metric, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, value, labels...)
	m.send(d, metric, err)
}

func (m metrics) send(d *prometheus.Desc, metric prometheus.Metric, err error) {
	if err != nil {
		metric = prometheus.NewInvalidMetric(d, errors.Join(errors.New("penstock"), err))
	}
	m <- metric
}
