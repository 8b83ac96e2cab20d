package replay

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/model"
)

// hotspots holds the hotspot rules in effect, and Java's machine for them: until a decision changes
// it must agree with the trace. So if it differs from the model, the cause is known, and is the
// evidence for a row of the table.
type hotspots struct {
	rules []*hotRule
}

type hotRule struct {
	hotspot.Rule
	java   JavaHotspotRule
	index  int // in Java, which resolves a negative one once
	values map[argument.Value]*hotValue
}

// hotValue holds the known state of a value.
type hotValue struct {
	// Java's, in milliseconds.
	javaFilled, javaLeft, javaLast, javaCalls int64
	javaSeen                                  bool
	// Why the two differ, if they do.
	listed, charged, replaced bool
}

// hotVerdict is a machine's verdict: the rule that refuses, or the call's wait.
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

// hotLook is a rule and the values that it looks at.
type hotLook struct {
	*hotRule
	units  int64
	values []argument.Value // in order, with duplicates
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

// judge returns both machines' verdicts on a call, and charges the call to Java's machine.
func (h *hotspots) judge(ours *model.Model, c *call, javaNow int64) *hotMoment {
	m := &hotMoment{}
	for _, r := range h.rules {
		if r.Resource != c.place.resource {
			continue
		}
		look := hotLook{hotRule: r, units: c.units}
		own, ok := r.Index.Scalar().(int64)
		if index := int(own); ok {
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
	m.ours.rule, m.ours.wait = ours.AskValues(c.m)
	if !c.java.beforeHotspot() {
		m.java = m.judgeJava(c, javaNow/int64(time.Millisecond))
	}
	return m
}

// beforeHotspot reports whether Java refused before it asked a hotspot rule.
func (e *Expect) beforeHotspot() bool { return e.BlockedBy == "authority" || e.BlockedBy == "system" }

// each returns the distinct values.
func (l *hotLook) each() (values []argument.Value) {
	for _, v := range l.values {
		if !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// checkJavaHotspots compares the trace with Java's machine, before any decision has changed.
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

// followJava records what Java takes of the values of a call.
func (m *hotMoment) followJava(c *call) {
	switch {
	case c.java.beforeHotspot():
	case c.java.Result == "block":
		m.mark()
	default:
		m.enterJava(c)
	}
}
