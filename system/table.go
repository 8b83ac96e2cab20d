package system

import (
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/sampler"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/internal/shed"
	"github.com/penstock-go/penstock/node"
)

// table holds the compiled system rules of one revision. It implements engine.Family.
//
// A rule counts for all resources together, and distinguishes calls by resource only in its
// refusals. So all rules are kept on one node, the node of all inbound calls; a resource keeps only
// its [refusals].
type table struct {
	gates   *family.Index[everywhere, gate]
	held    *family.Kept[everywhere, gate]
	engine  *engine.Engine
	sampler *sampler.Sampler
	inbound *engine.Resource        // where the rules are kept
	records map[*engine.Record]bool // of all rules; the revisions of a rule share one
	active  *order                  // without rules that are off
	timed   []*gate                 // gates that need completions
}

// everywhere is a rule in the form the table needs: applied to that one node.
type everywhere struct{ Rule }

func (r everywhere) Info() spec.Info {
	info := r.Rule.Info()
	info.Resource = node.InboundName
	return info
}

// Compile adds system rules to the next revision of an engine's rules. Unchanged rules keep
// running; a changed rule takes over the state of the rule with the same ID.
func Compile(b *engine.SnapshotBuilder, rules []Rule) error {
	rules, err := spec.Normalize(core.KindSystem, rules, Rule.Normalized)
	if err != nil {
		return err
	}
	t := &table{engine: b.Engine, sampler: b.Engine.Sampler(), records: make(map[*engine.Record]bool, len(rules))}
	old, _ := b.Previous(core.KindSystem).(*table)
	if old != nil {
		t.inbound = old.inbound
	} else {
		t.inbound = &engine.Resource{ClusterNode: b.Engine.Tree().Inbound()}
	}
	for i, r := range rules {
		if r.Metric.sampled() && r.Mode != spec.Off {
			if err := t.sampler.Probe(r.Metric.quantity()); err != nil {
				return fmt.Errorf("system[%d].%w", i, spec.BadField("metric",
					"%s can't be read on this machine: %v; use concurrency, qps or rt here", r.Metric, err))
			}
		}
	}
	if err := t.build(b, rules, old); err != nil {
		return fmt.Errorf("system: %w", err)
	}
	b.Put(core.KindSystem, t)
	if len(t.timed) > 0 {
		b.OnComplete(t)
	}
	return nil
}

func (t *table) build(b *engine.SnapshotBuilder, rules []Rule, old *table) (err error) {
	all := make([]everywhere, len(rules))
	for i, r := range rules {
		all[i] = everywhere{r}
	}
	maker := family.Maker[everywhere, gate]{
		Build: func(r everywhere, record *engine.Record, at *engine.Binding, old *gate) *gate {
			return newGate(b.Engine, at, b.Revision(), r.Rule, record, old)
		},
		Rule: func(g *gate) *everywhere { return &everywhere{g.rule} },
	}
	at := engine.NewBinding(t.inbound, b.Engine.Now())
	var previous *family.Index[everywhere, gate]
	if old != nil {
		previous, at.Held = old.gates, old.held
	}
	if t.gates, err = family.NewTable(b.Revision(), all, maker, previous); err != nil {
		return err
	}
	t.active = newOrder(t.gates.Hold(at))
	t.held, _ = at.Held.(*family.Kept[everywhere, gate])
	b.BeforePublishing(at.HandOver)
	for g := range t.held.All() {
		t.records[g.record] = true
	}
	t.serve(b)
	return nil
}

// serve makes the sampler read the machine for the rules that need it.
func (t *table) serve(b *engine.SnapshotBuilder) {
	var sampled []*gate
	var wants []sampler.Quantity
	for _, g := range t.active.rules {
		switch {
		case g.times != nil:
			t.timed = append(t.timed, g)
		case g.reading != nil:
			sampled = append(sampled, g)
			wants = append(wants, g.rule.Metric.quantity())
		}
	}
	b.BeforePublishing(func(int64) {
		t.sampler.Serve(core.KindSystem, wants, func(now int64) {
			for _, g := range sampled {
				g.learn(now)
			}
		})
	})
}

// Rules returns copies of the rules, with their defaults filled in.
func (t *table) Rules() []Rule {
	var rules []Rule
	for _, r := range t.gates.Rules() {
		rules = append(rules, r.Rule)
	}
	return rules
}

// Complete reports the end of a call to the rules, if it was inbound.
func (t *table) Complete(inv *engine.Invocation, _ int64) {
	if !inv.Inbound() || inv.LongLived() {
		return
	}
	for _, g := range t.timed {
		g.times.add(inv.Now(), int64(inv.RT()))
	}
}

// Match returns nothing, since no rule has an expression.
func (t *table) Match(string, any, uint64) (none pattern.Matched) { return none }

// Known returns nothing, since no rule has an expression.
func (t *table) Known(any, uint64) (none pattern.Matched) { return none }

// Latest returns 0, since no rule has an expression.
func (t *table) Latest() uint64 { return 0 }

// Bind returns the rules for the calls of a resource, or nil.
func (t *table) Bind(at *engine.Binding) engine.Checker {
	held, _ := at.Held.(*refusals)
	if len(t.records) == 0 {
		at.Held = nil
		return nil
	}
	if held == nil {
		held = &refusals{resource: at.Resource.Name()}
		at.Held = held
	} else if at.Settled() {
		held.keep(t.records)
	}
	if len(t.active.rules) == 0 {
		return nil
	}
	if slices.ContainsFunc(t.active.rules, func(g *gate) bool { return g.judge != nil }) {
		return &shedding{checker: checker{order: t.active, refusals: held}, byLevel: make([]shared.Pointer[shed.Refusals], len(t.active.rules))}
	}
	return &checker{order: t.active, refusals: held}
}

// Names collects nothing: the rules name nothing.
func (t *table) Names(*engine.Names) {}

// Needs reports nothing: no rule counts on a resource's nodes.
func (t *table) Needs(any, uint64, func(engine.Need)) {}

// Looks reports the meters that the rules use on the node of all inbound calls. The meter of a rule
// that is off is not kept.
func (t *table) Looks(need func(resource string, n engine.Need)) {
	for _, g := range t.active.rules {
		n := engine.Need{Role: engine.RoleInbound, Meter: g.meter}
		if n.Semaphore = g.rule.countsInFlight(); n.Semaphore {
			n.Meter = meter.Meter{Owner: g.meter.Owner}
		}
		if n.Semaphore || g.rule.Metric == QPS {
			need("", n)
		}
	}
}

// EachError calls f with the refusal of every rule and resource.
func (t *table) EachError(f func(*core.BlockError)) {
	t.engine.EachResource(func(r *engine.Resource) {
		held, ok := r.Held(core.KindSystem).(*refusals)
		if !ok {
			return
		}
		held.each(func(rule *engine.Record, b *core.BlockError) {
			if t.records[rule] {
				f(b)
			}
		})
	})
}

// Stats returns the counters of each rule, summed over all resources.
func (t *table) Stats() []core.RuleStats {
	var figures []core.RuleStats
	ever := t.inbound.Totals()
	for i, r := range t.gates.All() {
		record := t.gates.Record(i)
		figures = append(figures, core.RuleStats{
			Kind: core.KindSystem, ID: r.ID, Mode: r.Mode,
			Asked:   r.Mode != spec.Off && ever.Pass+ever.Block > 0,
			Refused: record.Refused.Load(), ShadowBlocked: record.ShadowBlocked.Load(), Details: t.details(r),
		})
	}
	return figures
}

// details returns the counts of a rule with a shed order, nil for others.
func (t *table) details(r everywhere) core.Details {
	for _, g := range t.active.rules {
		if g.judge != nil && g.rule.ID == r.ID {
			return Stats{g.judge.Stats()}
		}
	}
	return nil
}
