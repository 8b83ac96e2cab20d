package model

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
)

// Breaker is the model of a breaker: its ended calls, and its state.
type Breaker struct {
	Rule     breaker.Rule
	Resource string
	State    breaker.State
	Since    int64   // when the state began
	Epoch    int     // number of earlier states
	Probes   []Probe // in flight
	Neutral  int64   // calls of this state without an outcome

	good  int // successful probes
	ended []ended
	model *Model
}

// Probe is a call that tests a resource, and the time until which the breaker waits for it.
type Probe struct {
	Call  *Call
	Until int64
}

// Change is a change of state, with the measured value if it opens.
type Change struct {
	Rule, Resource string
	From, To       breaker.State
	Value          *float64
}

// Changes returns the changes of breakers since the last call.
func (m *Model) Changes() []Change {
	changes := m.changes
	m.changes = nil
	return changes
}

// ended is a call that ended in a bucket, with the bucket's end.
type ended struct {
	at  int64
	bad bool
}

// stamp records which breaker admitted a call, and in which epoch.
type stamp struct {
	breaker *Breaker
	epoch   int
}

// Breakers returns the breakers of the rules at the existing resources.
func (m *Model) Breakers() []*Breaker { return m.breakers }

// watching returns the breakers of a resource, in the order of their rules.
func (m *Model) watching(resource string) (all []*Breaker) {
	for _, r := range about(m, m.set.Breaker, resource) {
		for _, b := range m.breakers {
			if b.Rule.ID == r.ID && b.Resource == resource && r.Mode != spec.Off {
				all = append(all, b)
			}
		}
	}
	return all
}

// applyBreakers puts the breaker rules into effect. A breaker keeps its state, and also its counts
// unless it now counts other calls.
func (m *Model) applyBreakers(names []string) {
	m.breakers = slices.DeleteFunc(m.breakers, func(b *Breaker) bool {
		return !slices.ContainsFunc(about(m, m.set.Breaker, b.Resource), func(r breaker.Rule) bool { return r.ID == b.Rule.ID })
	})
	for _, b := range m.breakers {
		if i := slices.IndexFunc(m.set.Breaker, func(r breaker.Rule) bool { return r.ID == b.Rule.ID }); i >= 0 {
			b.adopt(m.set.Breaker[i], m.now)
		}
	}
	for _, name := range names {
		for _, r := range about(m, m.set.Breaker, name) {
			there := slices.ContainsFunc(m.breakers, func(b *Breaker) bool { return b.Rule.ID == r.ID && b.Resource == name })
			if !there && r.Mode != spec.Off {
				m.breakers = append(m.breakers, &Breaker{Rule: r, Resource: name, model: m})
			}
		}
	}
}

func (b *Breaker) adopt(r breaker.Rule, now int64) {
	old := b.Rule
	b.Rule = r
	switch {
	case r.Mode == spec.Off:
		b.Rule = old
		b.Rule.Mode = spec.Off
	case r.Strategy != old.Strategy || r.SlowRT != old.SlowRT:
		b.ended = nil
	case r.Interval != old.Interval || r.Buckets != old.Buckets:
		width := int64(old.Interval) / int64(old.Buckets)
		b.ended = slices.DeleteFunc(b.ended, func(e ended) bool { return !counts(e, old, now) })
		for i := range b.ended {
			b.ended[i].at = min(now, floorDiv(b.ended[i].at, width)*width+width-1)
		}
	}
}

// counts reports whether an ended call is within the interval of a rule.
func counts(e ended, r breaker.Rule, now int64) bool {
	width := int64(r.Interval) / int64(r.Buckets)
	return floorDiv(e.at, width) > floorDiv(now, width)-int64(r.Buckets)
}

// refuses reports whether the breaker refuses a call.
func (b *Breaker) refuses(now int64) bool {
	switch b.State {
	case breaker.Open:
		return now < b.Since+int64(b.Rule.Recovery)
	case breaker.HalfOpen:
		out := 0
		for _, p := range b.Probes {
			if p.Until > now {
				out++
			}
		}
		return out >= max(1, b.Rule.Probes-b.good)
	}
	return false
}

// watcher is a breaker with the rule under which a call was decided.
type watcher struct {
	*Breaker
	holds bool
}

// admit asks the breakers about a call that is about to run: it returns the first that refuses it,
// or nil after all have admitted it. A call that has waited is checked under the previous rules.
func (m *Model) admit(c *Call) *By {
	if by := m.Refuser(c); by != nil {
		return by
	}
	for _, b := range c.watchers {
		if b.holds {
			b.admit(c, m.now)
		}
	}
	return nil
}

// Refuser returns the breaker that would refuse a call that has waited, or nil if the call would run.
func (m *Model) Refuser(c *Call) *By {
	for _, b := range c.watchers {
		if b.holds && b.refuses(m.now) {
			return m.by(core.KindBreaker, b.Rule.ID)
		}
	}
	return nil
}

// watchBreakers lets shadow breakers decide about a running call.
func (m *Model) watchBreakers(c *Call) {
	for _, b := range c.watchers {
		switch {
		case b.holds:
		case b.refuses(m.now):
			m.by(core.KindBreaker, b.Rule.ID).ShadowBlocked++
		default:
			b.admit(c, m.now)
		}
	}
}

func (b *Breaker) admit(c *Call, now int64) {
	if b.State == breaker.Open {
		b.enter(breaker.HalfOpen, now, nil)
	}
	if b.State == breaker.HalfOpen {
		b.Probes = slices.DeleteFunc(b.Probes, func(p Probe) bool { return p.Until <= now })
		b.Probes = append(b.Probes, Probe{c, now + int64(b.Rule.ProbeTimeout)})
		c.undo = append(c.undo, func() { b.drop(c) })
	}
	c.stamps = append(c.stamps, stamp{b, b.Epoch})
}

func (b *Breaker) drop(c *Call) {
	b.Probes = slices.DeleteFunc(b.Probes, func(p Probe) bool { return p.Call == c })
}

// Late reports whether the breaker admitted a call in an earlier state, or not at all.
func (b *Breaker) Late(c *Call) bool { return !slices.Contains(c.stamps, stamp{b, b.Epoch}) }

// end counts an ended call. A call without an outcome is treated as never admitted, unless it was
// slow and the breaker counts slow calls.
func (b *Breaker) end(c *Call, now int64) {
	if b.Late(c) {
		return
	}
	bad := c.failed
	if b.Rule.Strategy == breaker.SlowRatio {
		bad = time.Duration(now-c.at) > b.Rule.SlowRT // counted from when it ran, not from its arrival
	}
	switch {
	case !bad && c.Neutral:
		b.Neutral++
		b.drop(c)
	case b.State == breaker.HalfOpen && bad:
		b.enter(breaker.Open, now, new(1.0))
	case b.State == breaker.HalfOpen:
		if b.good++; b.good < b.Rule.Probes {
			b.drop(c)
			return
		}
		b.enter(breaker.Closed, now, nil)
	default:
		b.count(now, bad)
	}
}

// count counts a call that ended while the breaker is closed.
func (b *Breaker) count(now int64, bad bool) {
	b.ended = append(b.ended, ended{now, bad})
	var calls, wrong float64
	for _, e := range slices.Backward(b.ended) {
		row := b.Rule.Strategy == breaker.ConsecutiveErrors
		if row && !e.bad {
			break
		}
		if row || counts(e, b.Rule, now) {
			calls++
			if e.bad {
				wrong++
			}
		}
	}
	value := wrong
	if b.Rule.Strategy == breaker.ErrorRatio || b.Rule.Strategy == breaker.SlowRatio {
		value = wrong / calls
	}
	if wrong > 0 && calls >= float64(b.Rule.MinCalls) && value >= b.Rule.Threshold {
		b.enter(breaker.Open, now, &value)
	}
}

func (b *Breaker) enter(to breaker.State, now int64, value *float64) {
	b.model.changes = append(b.model.changes, Change{b.Rule.ID, b.Resource, b.State, to, value})
	b.State, b.Since, b.Epoch = to, now, b.Epoch+1
	b.Probes, b.ended, b.good, b.Neutral = nil, nil, 0, 0
}
