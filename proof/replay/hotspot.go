package replay

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/hotspot"
)

// hotspots are the hotspot rules in force, and two naive machines beside them. One is
// what we promise: every verdict of ours must be its. The other is Java's: as long as
// no decision has changed it must say what the trace says. So where the two differ, the
// cause can be told, and is the evidence for a row of the table.
type hotspots struct {
	rules []*hotRule
}

type hotRule struct {
	hotspot.Rule
	java   JavaHotspotRule
	index  int // to Java, which works out a negative one once
	values map[argument.Value]*hotValue
}

// hotValue is what is known of a value.
type hotValue struct {
	// Ours: when its units were filled up and how many are used, and the same before that
	// and right after it; when its calls run, and the units in flight.
	units, before, after filling
	held                 int64
	turns                turns
	// Java's, in milliseconds.
	javaFilled, javaLeft, javaLast, javaCalls int64
	javaSeen                                  bool
	// Why the two differ, if they do.
	listed, charged, replaced bool
}

// filling is when the units of a value were filled up, and how many of them are used.
type filling struct {
	at, used int64
	seen     bool // false until a call has taken something
}

// hotVerdict is what a machine says: which rule refuses, or how long the call waits.
type hotVerdict struct {
	rule string
	wait time.Duration
}

// hotMoment is a call under hotspot rules.
type hotMoment struct {
	ours, java hotVerdict
	javaWaits  int  // for how many values
	asleep     bool // before one of them is asked
	looks      []hotLook
}

// hotLook is a rule and what it looks at.
type hotLook struct {
	*hotRule
	units  int64
	values []argument.Value // as they come, also twice
	list   bool
	other  bool // Java looks at another argument
}

func (h *hotspots) load(java []JavaHotspotRule) ([]hotspot.Rule, []Dropped, error) {
	native, dropped, err := TranslateHotspot(java)
	if err != nil {
		return nil, nil, err
	}
	var rules []*hotRule
	for _, n := range native {
		r := &hotRule{Rule: n, values: make(map[argument.Value]*hotValue)}
		r.java = java[slices.IndexFunc(java, func(j JavaHotspotRule) bool { return j.ID == n.ID })]
		r.index = r.java.ParamIndex
		if i := slices.IndexFunc(h.rules, func(o *hotRule) bool { return o.ID == n.ID && o.Resource == n.Resource }); i >= 0 {
			r.values = h.rules[i].values
			if spec.Equal(h.rules[i].Rule, n) {
				r.index = h.rules[i].index
			} else {
				for _, v := range r.values { // Java forgets
					v.javaSeen, v.javaCalls, v.javaLast, v.replaced = false, 0, 0, true
				}
			}
		}
		rules = append(rules, r)
	}
	h.rules = rules
	return native, dropped, nil
}

func (r *hotRule) value(v argument.Value) *hotValue {
	if r.values[v] == nil {
		r.values[v] = &hotValue{}
	}
	return r.values[v]
}

func (r *hotRule) threshold(v argument.Value) int64 {
	for _, x := range r.Exceptions {
		if x.Value == v {
			return int64(x.Threshold)
		}
	}
	return int64(r.Threshold)
}

// judge says what the two machines make of a call, which Java's then has charged.
func (h *hotspots) judge(c *call, javaNow int64) *hotMoment {
	m := &hotMoment{}
	for _, r := range h.rules {
		if r.Resource != c.place.resource {
			continue
		}
		look := hotLook{hotRule: r, units: c.units}
		ours, ok := r.Index.Scalar().(int64)
		if index := int(ours); ok {
			if index < 0 {
				index += len(c.args)
			}
			if index >= 0 && index < len(c.args) {
				look.values, look.list = elements(c.args[index])
			}
			if r.index < 0 && -r.index <= len(c.args) {
				r.index += len(c.args)
			}
			r.index = max(r.index, -r.index)
			look.other = r.index != index
		}
		m.looks = append(m.looks, look)
	}
	m.ours = m.judgeOurs(c)
	if !c.java.beforeHotspot() {
		m.java = m.judgeJava(c, javaNow/int64(time.Millisecond))
	}
	return m
}

// beforeHotspot reports whether Java refused before it asked a hotspot rule.
func (e *Expect) beforeHotspot() bool { return e.BlockedBy == "authority" || e.BlockedBy == "system" }

// each are the distinct values with the units that the call takes of them.
func (l *hotLook) each() (values []argument.Value, units map[argument.Value]int64) {
	units = make(map[argument.Value]int64)
	for _, v := range l.values {
		if units[v] == 0 {
			values = append(values, v)
		}
		units[v] += l.units
	}
	return values, units
}

func (m *hotMoment) judgeOurs(c *call) (longest hotVerdict) {
	for i := range m.looks {
		l := &m.looks[i]
		values, units := l.each()
		for _, v := range values {
			wait, ok := l.fits(v, units[v], c)
			if !ok {
				return hotVerdict{rule: l.ID}
			}
			longest.wait = max(longest.wait, wait)
		}
	}
	return longest
}

func (l *hotLook) fits(v argument.Value, n int64, c *call) (wait time.Duration, ok bool) {
	x, threshold := l.value(v), l.threshold(v)
	switch {
	case threshold == 0:
		return 0, false
	case l.Metric == hotspot.Concurrency:
		return 0, x.held+n <= threshold
	case l.Behavior == hotspot.Throttle:
		wait = l.turn(x, v, n, c).after(c.asked)
		return wait, wait <= l.MaxWait
	}
	return 0, l.filled(x, v, c.asked).used+n <= threshold+int64(l.Burst)
}

// turn is when a call of n units would run.
func (l *hotLook) turn(x *hotValue, v argument.Value, n int64, c *call) turn {
	at, _, _ := x.turns.queue(c, l.cost(v, n))
	return at
}

func (l *hotLook) cost(v argument.Value, n int64) turn {
	return cost(n, float64(l.Interval)/float64(l.threshold(v)))
}

func (l *hotLook) filled(x *hotValue, v argument.Value, now int64) filling {
	switch elapsed := now - x.units.at; {
	case !x.units.seen:
		return filling{at: now, seen: true}
	case elapsed > int64(l.Interval):
		earned := math.Floor(float64(elapsed/int64(time.Millisecond)) * float64(l.threshold(v)) / float64(l.Interval.Milliseconds()))
		return filling{at: now, used: max(0, x.units.used-int64(earned)), seen: true}
	}
	return x.units
}

// charge enters an admitted call. It parks if it has to wait.
func (m *hotMoment) charge(c *call, parks bool) {
	for i := range m.looks {
		l := &m.looks[i]
		values, units := l.each()
		for _, v := range values {
			x, n := l.value(v), units[v]
			switch {
			case l.Metric == hotspot.Concurrency:
				x.held += n
				leave := func() { x.held -= n }
				c.atExit, c.undo = append(c.atExit, leave), append(c.undo, leave)
			case l.Behavior == hotspot.Throttle:
				x.turns.take(c, l.cost(v, n), parks)
			default:
				if now := l.filled(x, v, c.asked); now.at != x.units.at || !x.units.seen {
					x.before, x.after, x.units = x.units, now, now
				}
				x.units.used += n
				at := x.units.at
				c.undo = append(c.undo, func() { x.giveBack(at, n) })
			}
		}
	}
}

// giveBack undoes what a call took of the units filled up at that time, and the filling if
// nobody has any of it: a call that is refused elsewhere begins no interval.
func (x *hotValue) giveBack(at, n int64) {
	switch at {
	case x.units.at:
		x.units.used = max(0, x.units.used-n)
		if x.units == x.after {
			x.units, x.after = x.before, filling{}
		}
	case x.before.at:
		x.before.used = max(0, x.before.used-n)
	}
}

// checkJavaHotspots holds the trace against Java's machine, before any decision has
// changed.
func (j *judge) checkJavaHotspots(m *moment) {
	refused := m.want.Result == "block"
	if len(m.hot.looks) == 0 || refused && m.want.BlockedBy != "param" || m.hot.asleep && j.config.Sleep != "record" {
		return
	}
	java := hotVerdict{wait: m.hot.java.wait}
	if refused {
		java.rule = m.want.Rule
	}
	if refused || len(m.rules) == 0 {
		java.wait = m.want.wait()
	}
	if java != m.hot.java {
		j.fail("hotspot: Java's machine says %+v, the trace %+v", m.hot.java, java)
	}
}

// followJava enters what Java takes of the values of a call.
func (m *hotMoment) followJava(c *call) {
	switch {
	case c.java.beforeHotspot():
	case c.java.Result == "block":
		m.mark()
	default:
		m.enterJava(c)
	}
}
