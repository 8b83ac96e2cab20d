package model

import (
	"math"
	"math/big"
	"reflect"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/stat"
)

// valued is a hotspot rule in effect on a resource.
type valued struct {
	rule     hotspot.Rule
	resource string
	values   map[argument.Value]*value
}

// value holds the state of one value.
type value struct {
	bucket        *bucket // of tokens
	queue         *queue
	held          int64   // units in flight
	window        *window // nil if nothing was taken from one
	filled        filling // of units
	before, after filling // the same before the latest filling, and right after it
	passed        bool
}

// filling records when the units of a value were refilled, and how many of them are used.
type filling struct {
	at, used int64
	seen     bool // false until a call has taken something
}

func (m *Model) valuedOf(resource string, mode spec.Mode) (all []*valued) {
	for _, x := range m.values {
		if x.resource == resource && x.rule.Mode == mode {
			all = append(all, x)
		}
	}
	return all
}

// occurrence is a value of a call, and the units that the call takes of it.
type occurrence struct {
	argument.Value
	units int64
}

// of returns the values of a call that the rule looks at, in order. A call without any has the
// empty text as its value if the rule limits such calls.
func (v *valued) of(c *Call) []occurrence {
	all := v.given(c)
	if len(all) == 0 && (v.rule.Missing == hotspot.MissingShared || v.rule.Missing == hotspot.MissingRefuse) {
		return []occurrence{{argument.Of(""), c.Units}}
	}
	return all
}

func (v *valued) given(c *Call) (all []occurrence) {
	add := func(arg any) {
		list := []any{arg}
		if r := reflect.ValueOf(arg); r.Kind() == reflect.Slice {
			list = nil
			for i := range r.Len() {
				list = append(list, r.Index(i).Interface())
			}
		}
		for _, x := range list {
			one := argument.Of(x)
			if one.IsNone() || v.rule.Missing == hotspot.MissingUnlimited && x == "" {
				continue
			}
			if i := slices.IndexFunc(all, func(o occurrence) bool { return o.Value == one }); i >= 0 {
				all[i].units += c.Units
			} else {
				all = append(all, occurrence{one, c.Units})
			}
		}
	}
	if index, ok := v.rule.Index.Scalar().(int64); ok && v.rule.Param == "" {
		if index < 0 {
			index += int64(len(c.Args))
		}
		if index >= 0 && index < int64(len(c.Args)) {
			add(c.Args[index])
		}
		return all
	}
	for _, x := range c.Params[v.rule.Param] {
		add(x)
	}
	return all
}

func (v *valued) value(x argument.Value) *value {
	if v.values[x] == nil {
		v.values[x] = &value{queue: new(queue)}
	}
	return v.values[x]
}

// threshold returns the rule's threshold, or the value's own.
func (v *valued) threshold(x argument.Value) float64 {
	if v.rule.Missing == hotspot.MissingRefuse && x == argument.Of("") {
		return 0
	}
	for _, e := range v.rule.Exceptions {
		if e.Value == x {
			return e.Threshold
		}
	}
	return v.rule.Threshold
}

func (v *valued) size() int64 { return int64(v.rule.Burst) + 1 }

// cost returns the time that units of a value take in its queue.
func (v *valued) cost(o occurrence) *big.Int {
	each := float64(v.rule.Interval) / v.threshold(o.Value)
	cost, _ := new(big.Float).SetMantExp(big.NewFloat(float64(o.units)*each), 32).Int(nil)
	return cost
}

// bucketOf returns a value's token bucket, which is full for an unknown value.
func (v *valued) bucketOf(x argument.Value) *bucket {
	if b := v.value(x).bucket; b != nil {
		return b
	}
	return newBucket(v.rule.Interval, v.threshold(x))
}

// fillingOf returns a value's units for an arriving call. The first call that arrives more than an
// interval after the last refill refills them.
func (v *valued) fillingOf(x argument.Value, now int64) filling {
	f := v.value(x).filled
	switch {
	case !f.seen:
		return filling{at: now, seen: true}
	case now-f.at > int64(v.rule.Interval):
		earned := new(big.Int).Mul(big.NewInt(now-f.at), big.NewInt(int64(v.threshold(x))))
		if earned.Quo(earned, big.NewInt(int64(v.rule.Interval))); !earned.IsInt64() {
			earned.SetInt64(math.MaxInt64)
		}
		return filling{at: now, used: max(0, f.used-earned.Int64()), seen: true}
	}
	return f
}

// strict reports whether values have windows.
func (v *valued) strict() bool {
	return v.rule.Metric == hotspot.QPS && v.rule.Behavior == hotspot.Reject && v.rule.Window == hotspot.Strict
}

// windowOf returns the window of a value.
func (v *valued) windowOf(x *value, now int64) *window {
	if x.window == nil {
		x.window = &window{shape: stat.Shape{Interval: v.rule.Interval, Buckets: 10, Strict: true}, newest: now}
	}
	x.window.see(now)
	return x.window
}

// fits reports whether the units of a value would pass, and after which wait.
func (v *valued) fits(m *Model, c *Call, o occurrence) (wait time.Duration, ok bool) {
	x, threshold := v.value(o.Value), v.threshold(o.Value)
	switch {
	case threshold == 0:
		return 0, false
	case v.rule.Metric == hotspot.Concurrency:
		return 0, x.held+o.units <= int64(threshold)
	case v.rule.Behavior == hotspot.Throttle:
		_, wait = x.queue.next(m.now, v.cost(o), c.Prioritized)
		return wait, wait <= v.rule.MaxWait
	case v.rule.Behavior == hotspot.TokenBucket:
		return 0, v.bucketOf(o.Value).fits(m.now, o.units, v.size())
	case int64(threshold) == 0:
		return 0, false
	}
	if v.strict() {
		w := v.windowOf(x, m.now)
		return 0, w.sum(w.head())+o.units <= int64(threshold)
	}
	return 0, v.fillingOf(o.Value, m.now).used+o.units <= int64(threshold)+int64(v.rule.Burst)
}

// by returns the refusal of units of a value.
func (v *valued) by(m *Model, o occurrence) *By {
	by := m.by(core.KindHotspot, v.rule.ID)
	by.again = func(c *Call) (wait time.Duration, known, looked bool) {
		switch x := v.value(o.Value); {
		case v.threshold(o.Value) == 0:
		case v.rule.Behavior == hotspot.Throttle:
			_, wait := x.queue.next(m.now, v.cost(occurrence{o.Value, 1}), false)
			return max(0, wait-v.rule.MaxWait), true, true
		case v.rule.Behavior == hotspot.TokenBucket:
			return v.bucketOf(o.Value).retryAfter(m.now, v.size()), o.units <= v.size(), true
		}
		return 0, false, false
	}
	return by
}

// ask returns the rule's refusal of a call, or nil if the rule would admit it.
func (v *valued) ask(m *Model, c *Call) *By {
	all := v.of(c)
	for _, o := range all {
		if _, ok := v.fits(m, c, o); !ok {
			if len(all) == 1 && m.direct(c, v) {
				v.know(o.Value)
			}
			return v.by(m, o)
		}
	}
	return nil
}

// direct reports whether a call takes units without asking first, which makes its value known even
// if it is refused: there is only one value, and one rule for it.
func (m *Model) direct(c *Call, v *valued) bool {
	of := func(rules int) bool { return rules == 0 }
	return m.config.Direct && !c.Prioritized && v.rule.Param != "" && v.rule.Metric == hotspot.QPS && v.rule.Behavior != hotspot.Throttle &&
		len(m.valuedOf(v.resource, spec.Enforce)) == 1 && of(len(c.watchers)) && of(len(m.of(c.Resource))) && m.tightest(c.Resource) == nil &&
		of(len(about(m, m.set.Authority, c.Resource))) && of(len(m.set.System))
}

// know makes a value known.
func (v *valued) know(x argument.Value) *value {
	known := v.value(x)
	if v.rule.Behavior == hotspot.TokenBucket && v.threshold(x) > 0 {
		known.bucket = v.bucketOf(x)
	}
	return known
}

func (v *valued) take(m *Model, c *Call) (longest verdict) {
	for _, o := range v.of(c) {
		wait, ok := v.takeOne(m, c, o)
		if !ok {
			return verdict{refused: v.by(m, o)}
		}
		longest = longest.longer(verdict{wait: wait, by: m.by(core.KindHotspot, v.rule.ID)})
	}
	return longest
}

func (v *valued) takeOne(m *Model, c *Call, o occurrence) (wait time.Duration, ok bool) {
	if v.rule.Behavior == hotspot.Throttle && v.threshold(o.Value) > 0 {
		wait, ok = m.takeTurn(v.value(o.Value).queue, c, v.cost(o), v.rule.MaxWait, v.rule.Mode != spec.Shadow)
		if ok {
			v.value(o.Value).passed = true
		}
		return wait, ok
	}
	x := v.know(o.Value) // even if it is refused
	if _, ok = v.fits(m, c, o); !ok {
		return 0, false
	}
	x.passed = true
	switch {
	case v.rule.Metric == hotspot.Concurrency:
		x.held += o.units
		leave := func() { x.held -= o.units }
		c.atExit, c.undo = append(c.atExit, leave), append(c.undo, leave)
	case v.rule.Behavior == hotspot.TokenBucket:
		x.bucket.take(c, m.now, o.units)
		c.undo = append(c.undo, func() { x.bucket.giveBack(c, m.now) })
	case v.strict():
		w := v.windowOf(x, m.now)
		w.add(&charge{call: c, bucket: w.head(), units: o.units})
		c.undo = append(c.undo, func() {
			if x.window != nil {
				x.window.remove(c)
			}
		})
	default:
		if now := v.fillingOf(o.Value, m.now); now.at != x.filled.at || !x.filled.seen {
			x.before, x.after, x.filled = x.filled, now, now
		}
		x.filled.used += o.units
		at := x.filled.at
		c.undo = append(c.undo, func() { x.giveBack(at, o.units) })
	}
	return 0, true
}

// giveBack returns units that a call took from the refill at the given time, and undoes the refill
// if no other call used it: a call that is refused elsewhere begins no interval.
func (x *value) giveBack(at, units int64) {
	switch at {
	case x.filled.at:
		x.filled.used = max(0, x.filled.used-units)
		if x.filled == x.after {
			x.filled, x.before, x.after = x.before, filling{}, filling{}
		}
	case x.before.at:
		x.before.used = max(0, x.before.used-units)
	}
}

// watch lets a shadow rule take units for all values of the call, or for none.
func (v *valued) watch(m *Model, c *Call) {
	turns, undo, atExit := len(c.turns), len(c.undo), len(c.atExit)
	if v.take(m, c).refused == nil {
		return
	}
	m.by(core.KindHotspot, v.rule.ID).ShadowBlocked++
	for _, x := range slices.Backward(c.turns[turns:]) {
		x.leave(m.now)
	}
	for _, f := range slices.Backward(c.undo[undo:]) {
		f()
	}
	c.turns, c.undo, c.atExit = c.turns[:turns], c.undo[:undo], c.atExit[:atExit]
	m.rewake()
}

// applyHotspot puts the hotspot rules into effect. The state of values carries over, unless the
// rule looks at different ones.
func (m *Model) applyHotspot(names []string) {
	before := m.values
	m.values = nil
	for _, r := range m.set.Hotspot {
		for _, name := range names {
			if !slices.ContainsFunc(about(m, m.set.Hotspot, name), func(o hotspot.Rule) bool { return o.ID == r.ID }) {
				continue
			}
			i := slices.IndexFunc(before, func(o *valued) bool { return o.rule.ID == r.ID && o.resource == name })
			v := &valued{rule: r, resource: name, values: make(map[argument.Value]*value)}
			if i >= 0 {
				v.follow(m, before[i])
			}
			if i >= 0 || r.Mode != spec.Off {
				m.values = append(m.values, v)
			}
		}
	}
}

func (v *valued) follow(m *Model, old *valued) {
	r, o := v.rule, old.rule
	if r.Index != o.Index || r.Param != o.Param {
		return
	}
	if v.values = old.values; spec.Equal(r, o) {
		return
	}
	for x, known := range v.values {
		v.goOn(m, x, known)
		switch {
		case r.Behavior == hotspot.TokenBucket:
			if v.threshold(x) == 0 {
				continue
			}
			if known.bucket != nil {
				known.bucket.setUnit(m.now, unitOf(r.Interval, v.threshold(x)))
			}
			if last := known.queue.last(); o.Behavior == hotspot.Throttle && last != nil {
				v.know(x).bucket.follow(last, m.now)
			}
		case r.Behavior == hotspot.Throttle && o.Behavior == hotspot.TokenBucket && known.bucket != nil && known.bucket.latest != allTime:
			known.queue.follow(parts(known.bucket.latest))
		}
	}
}

// goOn gives a value the state that the rule needs, derived from the state of the previous rules.
// It is unknown when a refill was used; the model assumes now.
func (v *valued) goOn(m *Model, x argument.Value, known *value) {
	fills := v.rule.Metric == hotspot.QPS && v.rule.Behavior == hotspot.Reject && v.rule.Window == hotspot.Refill
	switch old := known.window; {
	case v.strict() && old != nil:
		known.window = nil
		if w := v.windowOf(known, m.now); w.shape == old.shape {
			known.window = old
		} else {
			w.seedFrom(old, m.now)
		}
	case v.strict() && known.filled.seen:
		if used := v.fillingOf(x, m.now).used; used > 0 {
			w := v.windowOf(known, m.now)
			w.add(&charge{bucket: w.head(), units: used})
		}
		known.filled, known.before, known.after = filling{}, filling{}, filling{}
	case fills && old != nil:
		known.window = nil
		old.see(m.now)
		if used := old.sum(old.head()); used > 0 {
			known.filled = filling{at: m.now, used: used, seen: true}
		}
	}
}
