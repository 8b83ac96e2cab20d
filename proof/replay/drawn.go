package replay

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

// Draw makes a trace up: random rules of all families, and random calls. Nobody has
// recorded what Java makes of them, so every verdict is only compared with its promise,
// and every figure with the book. The same seed makes the same trace.
//
// What it draws is made to meet: few names, thresholds near the traffic, times on the
// edges of buckets, waits of several rules on one call, rules that change while calls
// wait under them.
func Draw(seed uint64) *Trace {
	d := &drawer{Rand: rand.New(rand.NewPCG(seed, 0))}
	d.config()
	d.rules()
	t := &Trace{
		Name: fmt.Sprintf("drawn-%d", seed), Drawn: true, Config: d.trace.Config, Rules: d.all(),
	}
	for range 250 {
		t.Ops = append(t.Ops, encode(d.op()))
	}
	return t
}

// drawnRow is charged for what a trace that was made up can't be compared with.
const drawnRow = "drawn"

type drawer struct {
	*rand.Rand
	trace      Trace
	now        int64 // ms
	calls      []int // that may be open, by ID
	resources  []string
	thresholds []float64
	behaviors  []string
	planned    []func() *Op
	last       int // ID

	flow     []JavaFlowRule
	hotspot  []JavaHotspotRule
	breakers []JavaBreakerRule
	system   []JavaSystemRule
}

// pick is one of several, all as likely.
func pick[T any](d *drawer, from ...T) T { return from[d.IntN(len(from))] }

// often reports true in so many of a hundred cases.
func (d *drawer) often(percent int) bool { return d.IntN(100) < percent }

func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is made of plain fields
	}
	return text
}

func (d *drawer) config() {
	d.resources = pick(d, []string{"a"}, []string{"a", "a", "a", "b", "c"})
	d.behaviors = pick(d, []string{"reject"}, []string{"reject", "warmUp"}, []string{"throttle", "throttle", "warmUpThrottle"},
		[]string{"reject", "warmUp", "throttle", "warmUpThrottle"})
	d.thresholds = pick(d, []float64{0.4, 0.7, 1, 1.5, 2}, []float64{1, 2, 3, 5, 7, 10}, []float64{7, 10, 20, 30, 50})
	interval := pick(d, int64(500), 1000, 1000, 1000, 2000)
	d.trace.Config = Config{
		EpochMs: 1_700_000_040_000 + int64(pick(d, 0, 0, 1, 137, 999)), IntervalMs: interval,
		SampleCount: pick(d, 1, 2, 2, 4, 5, 10), OccupyTimeoutMs: pick(d, 200, 500, interval),
		ColdFactor: pick(d, 2, 3, 3, 5), StatisticMaxRtMs: 5000, Sleep: pick(d, "record", "advance", "park", "park"),
	}
}

// rules draws rules that meet on few resources.
func (d *drawer) rules() {
	for i := range 1 + d.IntN(4) {
		d.flow = append(d.flow, d.flowRule(fmt.Sprintf("f%d", i+1)))
	}
	for i := range max(0, d.IntN(4)-1) {
		d.hotspot = append(d.hotspot, d.hotspotRule(fmt.Sprintf("h%d", i+1)))
	}
	for i := range d.IntN(3) {
		d.breakers = append(d.breakers, d.breakerRule(fmt.Sprintf("b%d", i+1)))
	}
	if d.often(40) {
		d.slowQueue()
	}
	if d.often(30) {
		d.system = []JavaSystemRule{d.systemRule()}
	}
}

// slowQueue draws a queue before a breaker, and time enough in it for that to open.
func (d *drawer) slowQueue() {
	b := d.breakerRule("quick")
	b.Resource, b.Strategy, b.Threshold, b.MinRequests = "a", "errorCount", 0, new(int64(1))
	d.breakers = append(d.breakers, b)
	if d.often(50) {
		d.hotspot = append(d.hotspot, JavaHotspotRule{
			ID: "slow", Resource: "a", Count: 1, ControlBehavior: "throttle", MaxQueueingTimeMs: 3000,
		})
		return
	}
	d.flow = append(d.flow, JavaFlowRule{
		ID: "slow", Resource: "a", Count: pick(d, 0.7, 1, 1.5, 2), ControlBehavior: "throttle", MaxQueueingTimeMs: new(int64(3000)),
	})
}

func (d *drawer) resource() string { return pick(d, d.resources...) }

func (d *drawer) threshold() float64 { return pick(d, d.thresholds...) }

func (d *drawer) flowRule(id string) JavaFlowRule {
	r := JavaFlowRule{
		ID: id, Resource: d.resource(), Grade: "qps", Count: d.threshold(),
		LimitApp:          pick(d, "", "", "", "appA", "other"),
		Strategy:          pick(d, "direct", "direct", "direct", "direct", "associate", "chain"),
		WarmUpPeriodSec:   new(pick(d, int64(1), 2, 5, 10)),
		MaxQueueingTimeMs: new(pick(d, int64(20), 100, 300, 500, 1000, 2000, 2000)),
		ControlBehavior:   pick(d, d.behaviors...),
	}
	switch r.Strategy {
	case "associate":
		r.RefResource = pick(d, "b", "c")
		if r.queues() {
			r.ControlBehavior = "reject"
		}
	case "chain":
		r.RefResource = "web"
	}
	if d.often(15) {
		r.Grade, r.ControlBehavior = "concurrency", "reject"
	}
	return r
}

func (d *drawer) hotspotRule(id string) JavaHotspotRule {
	r := JavaHotspotRule{
		ID: id, Resource: d.resource(), ParamIndex: pick(d, 0, 0, 1, -1), Grade: pick(d, "qps", "qps", "qps", "concurrency"),
		Count: pick(d, 1.0, 2, 4, 7), DurationSec: new(pick(d, int64(1), 1, 2)), BurstCount: pick(d, 0, 0, 2),
		ControlBehavior: pick(d, "reject", "throttle", "throttle"), MaxQueueingTimeMs: pick(d, int64(100), 500, 1000),
	}
	if d.often(30) {
		r.Items = []JavaItem{{Value: encode("x"), Count: pick(d, 0.0, 1, 3, 10)}}
	}
	return r
}

func (d *drawer) breakerRule(id string) JavaBreakerRule {
	return JavaBreakerRule{
		ID: id, Resource: d.resource(), Strategy: pick(d, "slowRatio", "errorRatio", "errorCount", "errorCount"),
		MaxAllowedRtMs: pick(d, 50.0, 200), SlowRatioThreshold: new(pick(d, 0.3, 0.8, 1)), Threshold: pick(d, 0, 0.2, 0.5, 0.9),
		OpenSec: pick(d, int64(1), 1, 2), MinRequests: new(pick(d, int64(1), 1, 2, 5)), StatIntervalMs: new(pick(d, int64(500), 1000, 3000)),
	}
}

func (d *drawer) systemRule() JavaSystemRule {
	r := JavaSystemRule{ID: "s1"}
	some := func(v float64) *float64 {
		if d.often(30) {
			return &v
		}
		return nil
	}
	r.MaxQps = some(pick(d, 3.0, 10, 20))
	r.MaxConcurrency = some(pick(d, 2.0, 5))
	r.MaxAvgRtMs = some(pick(d, 50.0, 200))
	r.MaxCpuUsage = some(0.7)
	r.MaxLoad = new(2.0)
	return r
}

// all are the rules as a trace has them.
func (d *drawer) all() Rules {
	return Rules{
		"flow": encode(d.flow), "hotspot": encode(d.hotspot), "circuitBreaker": encode(d.breakers), "system": encode(d.system),
	}
}
