package replay

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/stat"
)

// family is an existing family of rules.
type family struct {
	keys []string // in a trace's rules; any of them replaces the family's rules
	// translate puts the native rules into the player's set. Its effects recorded in l happen once
	// they are in effect.
	translate func(p *player, java Rules, l *loading) error
}

// families lists the known families, in the order in which they check a call.
var families = []family{
	{[]string{"authority"}, (*player).translateAuthority},
	{[]string{"system"}, (*player).translateSystem},
	{[]string{"hotspot"}, (*player).translateHotspot},
	{[]string{"flow"}, (*player).translateFlow},
	{[]string{"circuitBreaker", "defaultCircuitBreaker"}, (*player).translateBreakers},
}

func known(key string) bool {
	return slices.ContainsFunc(families, func(f family) bool { return slices.Contains(f.keys, key) })
}

// loading is the result of loading rules.
type loading struct {
	dropped []Dropped
	later   []string // rules that Java drops and we keep
	then    []func() error
}

// load replaces the rules of the existing families with their translations, all at once.
func (p *player) load(java Rules) (*loading, error) {
	l := new(loading)
	for _, f := range families {
		if !slices.ContainsFunc(f.keys, java.has) {
			continue
		}
		if err := f.translate(p, java, l); err != nil {
			return nil, err
		}
	}
	if err := p.guard.LoadRules(p.set); err != nil {
		return nil, err
	}
	p.model.Load(p.guard.Rules())
	for _, f := range l.then {
		if err := f(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (r Rules) has(key string) bool { return r[key] != nil }

// listOf decodes the rules under one key, or returns none if the key is missing.
func listOf[R any](r Rules, key string) (rules []R, err error) {
	if list, ok := r[key]; ok {
		err = json.Unmarshal(list, &rules)
	}
	return rules, err
}

func (p *player) shape() stat.Shape {
	return stat.Shape{Interval: p.config.interval(), Buckets: p.config.SampleCount}
}

func (p *player) translateAuthority(java Rules, l *loading) error {
	rules, err := listOf[JavaAuthorityRule](java, "authority")
	if err != nil {
		return err
	}
	native, later, dropped := TranslateAuthority(rules)
	p.set.Authority = native
	p.lists = lists{java: rules, later: later}
	l.later = append(l.later, later...)
	l.dropped = append(l.dropped, dropped...)
	return nil
}

func (p *player) translateSystem(java Rules, l *loading) error {
	rules, err := listOf[JavaSystemRule](java, "system")
	if err != nil {
		return err
	}
	native, off, dropped := TranslateSystem(rules, p.shape())
	p.set.System = native
	p.checks.rules, p.checks.off = native, off
	l.dropped = append(l.dropped, dropped...)
	return nil
}

func (p *player) translateHotspot(java Rules, l *loading) error {
	rules, err := listOf[JavaHotspotRule](java, "hotspot")
	if err != nil {
		return err
	}
	native, dropped, err := p.hot.load(rules)
	p.set.Hotspot = native
	l.dropped = append(l.dropped, dropped...)
	return err
}

func (p *player) translateFlow(java Rules, l *loading) error {
	rules, err := listOf[JavaFlowRule](java, "flow")
	if err != nil {
		return err
	}
	native, dropped := TranslateFlow(rules, p.shape(), p.config.ColdFactor)
	p.set.Flow = native
	l.dropped = append(l.dropped, dropped...)
	l.then = append(l.then, func() error { return p.adoptFlow(rules, dropped) })
	return nil
}

// adoptFlow keeps the queues of the flow rules that still exist.
func (p *player) adoptFlow(java []JavaFlowRule, dropped []Dropped) error {
	active, err := activate(p.guard.Rules().Flow)
	if err != nil {
		return err
	}
	same := slices.EqualFunc(p.rules, active, func(a, b activeRule) bool { return spec.Equal(a.Rule, b.Rule) })
	for _, old := range p.rules {
		if !same && slices.ContainsFunc(active, func(r activeRule) bool { return r.ID == old.ID }) {
			p.carried[old.ID] = true
		}
	}
	without := func(key flowKey) bool {
		return !slices.ContainsFunc(active, func(r activeRule) bool { return r.ID == key.rule && r.covers(key.resource) })
	}
	maps.DeleteFunc(p.lines, func(key flowKey, _ *line) bool { return without(key) })
	p.rules, p.refused = active, nil
	for _, d := range dropped {
		if !d.ByJava {
			i := slices.IndexFunc(java, func(r JavaFlowRule) bool { return r.ID == d.ID })
			p.refused = append(p.refused, java[i])
		}
	}
	return nil
}

func (p *player) translateBreakers(java Rules, l *loading) error {
	rules, err := listOf[JavaBreakerRule](java, "circuitBreaker")
	if err != nil {
		return err
	}
	defaults, err := listOf[JavaBreakerRule](java, "defaultCircuitBreaker")
	if err != nil {
		return err
	}
	native, dropped := TranslateBreakers(rules, defaults)
	p.set.Breaker = native
	l.dropped = append(l.dropped, dropped...)
	l.then = append(l.then, func() error {
		p.loadTwins(p.guard.Rules().Breaker)
		return nil
	})
	return nil
}
