package model

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

const ms = time.Millisecond

// drawer draws the parts of a history. Names are few, thresholds are near the traffic, and times
// are on the edges of buckets, so that they interact.
type drawer struct {
	*rand.Rand
	resources  []string
	behaviors  []flow.Behavior
	thresholds []float64
	relations  []flow.Relation
	intervals  []time.Duration
	families   map[string]bool
	waits      []time.Duration
	values     []hotspot.Behavior
	trips      []breaker.Strategy
	first      int             // share of prioritized calls, in percent
	come, gone map[string]bool // families that get or lose a rule in the current change
}

func newDrawer(rnd *rand.Rand) *drawer {
	d := &drawer{Rand: rnd, families: make(map[string]bool)}
	d.resources = pick(d, []string{"a"}, []string{"a", "a", "b"})
	d.behaviors = pick(d, []flow.Behavior{flow.Reject}, []flow.Behavior{flow.Reject, flow.WarmUp}, []flow.Behavior{flow.Throttle, flow.WarmUpThrottle},
		[]flow.Behavior{flow.Throttle, flow.TokenBucket},
		[]flow.Behavior{flow.Reject, flow.Reject, flow.WarmUp, flow.Throttle, flow.Throttle, flow.WarmUpThrottle, flow.TokenBucket})
	d.thresholds = pick(d, []float64{0, 0.4, 0.7, 1, 1.5, 2}, []float64{0, 0.5, 1, 1.5, 2, 3, 4, 5, 7, 10}, []float64{7, 10, 20, 30})
	d.relations = pick(d, []flow.Relation{flow.Direct}, []flow.Relation{flow.Direct, flow.Direct, flow.Direct, flow.Chain, flow.Associated})
	d.waits = pick(d, []time.Duration{5 * time.Second}, []time.Duration{1, 200 * ms, 500 * ms, 5 * time.Second})
	d.intervals = []time.Duration{time.Second, time.Second, 100 * ms, 500 * ms, 2 * time.Second, 10 * time.Second}
	d.first = pick(d, 10, 40, 70)
	d.values = []hotspot.Behavior{hotspot.Reject, hotspot.Throttle, hotspot.TokenBucket}
	d.trips = []breaker.Strategy{breaker.ErrorRatio, breaker.ErrorCount, breaker.SlowRatio, breaker.ConsecutiveErrors}
	all := []string{"authority", "system", "hotspot", "flow", "isolation", "breaker"}
	switch d.IntN(16) {
	case 10, 13, 14: // windows whose coming buckets prioritized calls borrow from, and use up two at a time
		d.families["flow"], d.resources, d.behaviors, d.relations = true, d.resources[:1], []flow.Behavior{flow.Reject}, []flow.Relation{flow.Direct}
		d.thresholds, d.intervals, d.first = []float64{1, 2, 3}, []time.Duration{400 * ms, 500 * ms, time.Second}, 70
	case 11: // short queues, and a concurrency limit that is reached at about the same time
		d.families["flow"], d.families["isolation"], d.resources, d.first = true, true, d.resources[:1], 70
		d.behaviors, d.thresholds, d.families["breaker"] = []flow.Behavior{flow.Reject}, []float64{2, 3, 4}, d.often(50)
	case 12: // queues of two families
		d.families["flow"], d.families["hotspot"], d.resources = true, true, d.resources[:1]
		d.behaviors, d.values, d.waits = []flow.Behavior{flow.Throttle, flow.WarmUpThrottle}, []hotspot.Behavior{hotspot.Throttle}, []time.Duration{5 * time.Second}
	case 15: // calls that wait, under breakers that look at their duration
		d.families["flow"], d.families["isolation"], d.families["breaker"], d.resources = d.often(70), d.often(70), true, d.resources[:1]
		d.behaviors, d.thresholds, d.trips = []flow.Behavior{flow.Throttle}, []float64{3, 4, 5, 10}, []breaker.Strategy{breaker.SlowRatio}
	case 0, 1, 2, 3:
		d.families["flow"] = true
	case 4, 5:
		d.families[pick(d, all...)] = true
	case 6:
		d.families["flow"], d.families[pick(d, all...)] = true, true
	default:
		for _, family := range all {
			d.families[family] = !d.often(40)
		}
	}
	return d
}

// pick returns one of the given values, with equal chances.
func pick[T any](d *drawer, from ...T) T { return from[d.IntN(len(from))] }

// often returns true with the given percentage.
func (d *drawer) often(percent int) bool { return d.IntN(100) < percent }

func (d *drawer) span(from, to time.Duration) time.Duration {
	return from + time.Duration(d.Int64N(int64(to-from)+1))
}

// step returns how far the clock advances: to a critical point, or anywhere.
func (d *drawer) step() time.Duration {
	switch d.IntN(8) {
	case 0, 1:
		return pick(d, 0, 1, 50*ms, 100*ms, 250*ms, 500*ms-1, 500*ms, 500*ms+1, time.Second-1, time.Second)
	case 2, 3, 4:
		return d.span(0, 300*ms)
	case 5, 6:
		return d.span(0, 3*time.Second)
	}
	return pick(d, 5*time.Second, 59*time.Second, 61*time.Second, time.Hour)
}

func (d *drawer) mode() spec.Mode {
	return pick(d, spec.Enforce, spec.Enforce, spec.Enforce, spec.Enforce, spec.Enforce, spec.Enforce, spec.Shadow, spec.Off)
}

func (d *drawer) resource() string { return pick(d, d.resources...) }

// pattern returns a name or an expression. Counting rules with an expression start at the first
// call made under them, which the model doesn't follow: they get names.
func (d *drawer) pattern() (string, spec.Match) {
	if d.often(20) {
		return pick(d, ".*", "[ab]"), spec.MatchRegex
	}
	return d.resource(), spec.MatchExact
}

func (d *drawer) flow(id string) flow.Rule {
	r := flow.Rule{
		ID: id, Threshold: pick(d, d.thresholds...), Mode: d.mode(),
		Interval: pick(d, d.intervals...),
		Buckets:  pick(d, 2, 2, 1, 4, 5, 10),
		Metric:   pick(d, flow.QPS, flow.QPS, flow.QPS, flow.Concurrency),
		Origin:   pick(d, "", "", "", "x", "y", flow.OriginOther),
		Relation: pick(d, d.relations...), Behavior: pick(d, d.behaviors...),
		WarmUpPeriod: pick(d, time.Second, 3*time.Second, 10*time.Second), ColdFactor: pick(d, 2, 3, 5),
		MaxWait: pick(d, d.waits...), Burst: pick(d, 0, 0, 1, 2, 5, 10), Window: pick(d, flow.Strict, flow.Ring, flow.Ring, flow.Ring),
	}
	r.Resource = d.resource()
	switch r.Relation {
	case flow.Chain:
		r.Ref = contextName(pick(d, "", "web"))
	case flow.Associated:
		r.Ref = pick(d, d.resources...)
		if r.Behavior != flow.WarmUp {
			r.Behavior = flow.Reject
		}
	}
	if r.Metric == flow.Concurrency {
		r.Behavior = flow.Reject
	}
	if r.Behavior == flow.Throttle {
		r.Burst = 0 // the twins of packages flow and hotspot have bursts of throttles
	}
	return r
}

func (d *drawer) hotspot(id string) hotspot.Rule {
	r := hotspot.Rule{
		ID: id, Threshold: pick(d, d.thresholds...), Mode: d.mode(),
		Interval: pick(d, 0, 100*ms, time.Second, 2*time.Second, time.Minute), Burst: pick(d, 0, 0, 1, 2, 5, 20),
		Window:   pick(d, hotspot.Strict, hotspot.Strict, hotspot.Refill),
		Metric:   pick(d, hotspot.QPS, hotspot.QPS, hotspot.QPS, hotspot.Concurrency),
		Behavior: pick(d, d.values...), MaxWait: pick(d, d.waits...),
		Missing: pick(d, hotspot.MissingNone, hotspot.MissingUnlimited, hotspot.MissingShared, hotspot.MissingRefuse),
	}
	if r.Behavior == hotspot.Throttle {
		r.Burst = 0
	}
	r.Resource = d.resource()
	if r.Param = "user"; d.often(30) {
		r.Param, r.Index = "", hotspot.At(pick(d, 0, 1, -1))
	}
	for v := range 2 {
		if d.often(30) {
			r.Exceptions = append(r.Exceptions, hotspot.Exception{Value: argument.Of(v), Threshold: pick(d, d.thresholds...)})
		}
	}
	return r
}

func (d *drawer) isolation(id string) isolation.Rule {
	r := isolation.Rule{ID: id, Threshold: pick(d, 0, 1, 1, 2, 2, 3, 5), Mode: d.mode()}
	r.Resource = d.resource()
	if d.often(70) {
		r.MaxQueue, r.MaxWait = pick(d, 1, 2, 5), pick(d, 10*ms, 300*ms, 5*time.Second)
	}
	return r
}

func (d *drawer) breaker(id string) breaker.Rule {
	r := breaker.Rule{
		ID: id, Strategy: pick(d, d.trips...), Mode: d.mode(),
		Threshold: pick(d, 0, 0.3, 0.5, 1, 2), MinCalls: pick(d, 1, 1, 2, 5), SlowRT: pick(d, 50*ms, 200*ms),
		Interval: pick(d, 500*ms, time.Second, 10*time.Second), Buckets: pick(d, 1, 2, 10),
		Recovery: pick(d, 100*ms, time.Second, 2*time.Second), Probes: pick(d, 1, 1, 2, 3), ProbeTimeout: pick(d, 0, 100*ms, time.Second),
	}
	if r.Resource, r.Match = d.pattern(); d.often(20) {
		r.Resource, r.Match = spec.AnyResource, spec.MatchExact
		if d.often(50) {
			r.Exclude = []string{pick(d, "a", "b")}
		}
	}
	return r
}

func (d *drawer) system(id string) system.Rule {
	return system.Rule{
		ID: id, Metric: pick(d, system.QPS, system.QPS, system.Concurrency, system.RT, system.Load, system.CPU), Mode: d.mode(),
		Threshold: pick(d, append([]float64{0.5}, d.thresholds...)...), MaxRT: pick(d, 50*ms, 200*ms),
		Interval: pick(d, 500*ms, time.Second, 10*time.Second), Buckets: pick(d, 1, 2, 10), Strict: d.often(30), Strategy: pick(d, system.BBR, system.BBR, system.Gate),
	}
}

func (d *drawer) authority(id string) authority.Rule {
	r := authority.Rule{ID: id, List: pick(d, authority.Allow, authority.Deny), AllowAnonymous: d.often(70), Mode: d.mode()}
	r.Resource, r.Match = d.pattern()
	r.Origins = pick(d, []string{"x"}, []string{"x", "y"})
	return r
}

// fit returns a rule without the fields that it doesn't read, or false if it is invalid.
func fit[R any](r R, normalized func(R) (R, error)) (R, bool) {
	r, err := normalized(trial.OnlyRead(r, normalized))
	return r, err == nil
}

// normalizedSystem rejects a rule that learns.
func normalizedSystem(r system.Rule) (system.Rule, error) {
	if (r.Metric == system.Load || r.Metric == system.CPU) && r.Strategy == system.Steady {
		return r, errors.New("it learns")
	}
	return r.Normalized()
}

func normalizedFlow(r flow.Rule) (flow.Rule, error) { return r.Normalized(3) }

// set draws rules of the families in the history.
func (d *drawer) set() (set rules.Set) {
	some(d, &set.Authority, "authority", d.authority, authority.Rule.Normalized)
	some(d, &set.System, "system", d.system, normalizedSystem)
	some(d, &set.Hotspot, "hotspot", d.hotspot, hotspot.Rule.Normalized)
	some(d, &set.Flow, "flow", d.flow, normalizedFlow)
	some(d, &set.Isolation, "isolation", d.isolation, isolation.Rule.Normalized)
	some(d, &set.Breaker, "breaker", d.breaker, breaker.Rule.Normalized)
	return set
}

func some[R any](d *drawer, list *[]R, family string, draw func(id string) R, normalized func(R) (R, error)) {
	if !d.families[family] {
		return
	}
	for i := range pick(d, 1, 1, 2, 2, 3, 4) {
		*list = append(*list, one(fmt.Sprint(family, " ", i), draw, normalized))
	}
}

func one[R any](id string, draw func(id string) R, normalized func(R) (R, error)) R {
	for {
		if r, ok := fit(draw(id), normalized); ok {
			return r
		}
	}
}

// changed returns a set in which a rule has changed in one or several fields, was added, removed or
// moved; or nothing changed.
func (d *drawer) changed(set rules.Set) rules.Set {
	set = set.Clone()
	d.come, d.gone = make(map[string]bool), make(map[string]bool)
	for range pick(d, 0, 1, 1, 1, 1, 2) {
		switch pick(d, 0, 1, 2, 3, 3, 3, 4, 5) {
		case 0:
			change(d, &set.Authority, "authority", d.authority, authority.Rule.Normalized)
		case 1:
			change(d, &set.System, "system", d.system, normalizedSystem)
		case 2:
			change(d, &set.Hotspot, "hotspot", d.hotspot, hotspot.Rule.Normalized)
		case 3:
			change(d, &set.Flow, "flow", d.flow, normalizedFlow)
		case 4:
			change(d, &set.Isolation, "isolation", d.isolation, isolation.Rule.Normalized)
		case 5:
			change(d, &set.Breaker, "breaker", d.breaker, breaker.Rule.Normalized)
		}
	}
	return set
}

func change[R spec.Rule](d *drawer, list *[]R, family string, draw func(id string) R, normalized func(R) (R, error)) {
	has := func(id string) bool {
		return slices.ContainsFunc(*list, func(r R) bool { return r.Info().ID == id })
	}
	if !d.families[family] {
		return
	}
	if len(*list) == 0 || d.often(8) {
		if d.gone[family] { // or the new rule might continue it, which the model doesn't follow
			return
		}
		n := 0
		for has(fmt.Sprint(family, " ", n)) {
			n++
		}
		*list = append(*list, one(fmt.Sprint(family, " ", n), draw, normalized))
		d.come[family] = true
		return
	}
	i := d.IntN(len(*list))
	switch d.IntN(13) {
	case 0:
		if d.come[family] {
			return
		}
		*list = slices.Delete(*list, i, i+1)
		d.gone[family] = true
	case 1:
		j := d.IntN(len(*list))
		(*list)[i], (*list)[j] = (*list)[j], (*list)[i]
	default:
		for {
			r := (*list)[i]
			other := one(r.Info().ID, draw, normalized)
			into, from := reflect.ValueOf(&r).Elem(), reflect.ValueOf(other)
			for range cmp.Or(pick(d, 1, 1, 1, 2, 3, 0), into.NumField()) {
				field := d.IntN(into.NumField())
				names := []string{into.Type().Field(field).Name}
				switch names[0] {
				case "Resource", "Match", "Exclude":
					names = []string{"Resource", "Match", "Exclude"}
				case "Relation", "Ref":
					names = []string{"Relation", "Ref"}
				}
				for _, name := range names {
					if f := into.FieldByName(name); f.IsValid() {
						f.Set(from.FieldByName(name))
					}
				}
			}
			if r, ok := fit(r, normalized); ok {
				(*list)[i] = r
				return
			}
		}
	}
}

func (d *drawer) call() *Call {
	c := &Call{
		Resource: pick(d, d.resources...), Context: pick(d, "", "", "web"), Origin: pick(d, "", "x", "y", "z", flow.OriginOther),
		Units: pick(d, int64(1), 1, 1, 2, 3), Inbound: d.often(50), Prioritized: d.often(d.first),
	}
	if d.often(2) {
		c.Resource = pick(d, "b", "c")
	}
	value := func() any {
		return pick[any](d, 0, 0, 0, 1, 2, "", nil, []int{0, 1}, []int{1, 1, 2})
	}
	if d.families["hotspot"] {
		c.Params = map[string][]any{"user": nil}
		for range pick(d, 0, 1, 1, 1, 1, 2) {
			c.Params["user"] = append(c.Params["user"], value())
		}
		for range d.IntN(3) {
			c.Args = append(c.Args, value())
		}
	}
	return c
}
