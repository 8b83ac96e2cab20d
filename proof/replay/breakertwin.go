package replay

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
)

// twin is what the runner itself knows of one breaker: a list of the calls that ended,
// and what follows from it. It says what our breaker must do where that is not what
// Java's did.
type twin struct {
	rule     breaker.Rule
	resource string
	state    breaker.State
	since    int64 // when the state began
	epoch    int   // how many states there were before
	probe    *call // that is out
	until    int64 // and waited for
	ended    []ended
	late     []int64         // when calls of an older state ended while this one counted
	astray   bool            // had strayed when the latest call ended
	events   *[]breakerEvent // of all twins, since the operation began
}

type ended struct {
	at  int64
	bad bool
}

// stamp is the state of a breaker in which a call was let in.
type stamp struct {
	twin  *twin
	epoch int
}

// breakerEvent is a change of state, as the traces have them.
type breakerEvent struct {
	Rule  string        `json:"rule"`
	From  breaker.State `json:"from"`
	To    breaker.State `json:"to"`
	Value *float64      `json:"value"`
}

func (e breakerEvent) String() string {
	s := fmt.Sprintf("%s: %v -> %v", e.Rule, e.From, e.To)
	if e.Value != nil {
		s += fmt.Sprintf(" (%v)", *e.Value)
	}
	return s
}

// hear notes what our breakers tell.
func (p *player) hear(c breaker.Change) {
	e := breakerEvent{Rule: c.Rule, From: c.From, To: c.To}
	if c.To == breaker.Open {
		e.Value = &c.Value
	}
	p.heard = append(p.heard, e)
}

// loadTwins goes on with the breakers that the rules still have.
func (p *player) loadTwins(rules []breaker.Rule) {
	old := p.twins
	p.breakers, p.twins = rules, nil
	for _, t := range old {
		i := slices.IndexFunc(rules, func(r breaker.Rule) bool { return r.ID == t.rule.ID })
		if i < 0 || rules[i].Mode == spec.Off {
			continue
		}
		if !spec.Equal(rules[i], t.rule) {
			p.carried[t.rule.ID] = true
		}
		t.rule = rules[i]
		p.twins = append(p.twins, t)
	}
}

// watching are the breakers of a resource, in the order of their rules.
func (p *player) watching(resource string) (twins []*twin) {
	own := false
	for _, r := range p.breakers {
		own = own || r.Mode == spec.Enforce && !r.Info().Default() && coversName(r, resource)
	}
	for _, r := range p.breakers {
		if r.Mode == spec.Off || !coversName(r, resource) || r.Resource == spec.AnyResource && own {
			continue
		}
		i := slices.IndexFunc(p.twins, func(t *twin) bool { return t.rule.ID == r.ID && t.resource == resource })
		if i < 0 {
			i = len(p.twins)
			p.twins = append(p.twins, &twin{rule: r, resource: resource, events: &p.untold})
		}
		twins = append(twins, p.twins[i])
	}
	return twins
}

func coversName(r breaker.Rule, resource string) bool {
	switch {
	case r.Resource == spec.AnyResource:
		return !slices.Contains(r.Exclude, resource)
	case r.Match == spec.MatchRegex:
		return wholeMatch(r.Resource, resource)
	}
	return r.Resource == resource
}

// refuses reports whether the breaker must refuse a call.
func (t *twin) refuses(now int64) bool {
	switch t.state {
	case breaker.Open:
		return now < t.retryAt()
	case breaker.HalfOpen:
		return t.probe != nil && now < t.until
	}
	return false
}

func (t *twin) retryAt() int64 { return t.since + int64(t.rule.Recovery) }

// admit lets a call in.
func (t *twin) admit(c *call, now int64) {
	if t.state == breaker.Open {
		t.enter(breaker.HalfOpen, now, nil)
	}
	if t.state == breaker.HalfOpen {
		t.probe, t.until = c, now+int64(t.rule.ProbeTimeout)
	}
	c.stamps = append(c.stamps, stamp{t, t.epoch})
}

// awaited is what became of a call whose wait is over: the breakers are asked again. If the reply
// is wrong, nothing has changed.
func (p *player) awaited(l *live, r reply) error {
	twins := p.watching(l.place.resource)
	i := slices.IndexFunc(twins, func(t *twin) bool { return t.refuses(l.released) })
	block, refused := errors.AsType[*core.BlockError](r.err)
	switch {
	case r.err != nil && (i < 0 || !refused || block.Rule != twins[i].rule.ID):
		return r.err
	case r.err == nil && i >= 0:
		return fmt.Errorf("breaker %q is %v and let the call pass", twins[i].rule.ID, twins[i].state)
	}
	l.entry, l.pending = r.entry, nil
	if r.err != nil {
		l.blocked = true
		for _, f := range slices.Backward(l.undo) {
			f()
		}
		p.leaveTurns(l.call)
		delete(p.open, l.id)
		return nil
	}
	for _, t := range twins {
		t.admit(l.call, l.released)
	}
	return nil
}

// end counts a call that ends.
func (t *twin) end(c *call, now int64, failed bool) {
	i := slices.IndexFunc(c.stamps, func(s stamp) bool { return s.twin == t })
	late := i < 0 || c.stamps[i].epoch != t.epoch
	if late {
		t.late = append(t.late, now)
	}
	if t.astray = t.strayed(now); late {
		return
	}
	bad := failed
	if t.rule.Strategy == breaker.SlowRatio {
		bad = time.Duration(now-c.asked) > t.rule.SlowRT
	}
	if t.state == breaker.HalfOpen {
		if t.probe == c {
			t.probe = nil
		}
		if bad {
			t.enter(breaker.Open, now, new(1.0))
		} else {
			t.enter(breaker.Closed, now, nil)
		}
		return
	}
	t.ended = append(t.ended, ended{now, bad})
	width := int64(t.rule.Interval) / int64(t.rule.Buckets)
	oldest := floor(now, width) + width - int64(t.rule.Interval)
	var calls, wrong float64
	for _, e := range t.ended {
		if e.at >= oldest {
			calls++
			if e.bad {
				wrong++
			}
		}
	}
	value := wrong
	if t.rule.Strategy != breaker.ErrorCount {
		value = wrong / calls
	}
	if wrong > 0 && calls >= float64(t.rule.MinCalls) && value >= t.rule.Threshold {
		t.enter(breaker.Open, now, &value)
	}
}

func (t *twin) enter(to breaker.State, now int64, value *float64) {
	*t.events = append(*t.events, breakerEvent{t.rule.ID, t.state, to, value})
	t.state, t.since, t.epoch = to, now, t.epoch+1
	t.probe, t.ended, t.late = nil, nil, nil
}

// strayed reports whether Java counts or decides by a call that belongs to an older
// state, or takes a probe for out that we no longer wait for.
func (t *twin) strayed(now int64) bool {
	since := floor(now, int64(t.rule.Interval))
	if t.state == breaker.HalfOpen {
		since = t.since
	}
	return t.state != breaker.Open && slices.ContainsFunc(t.late, func(at int64) bool { return at >= since }) ||
		t.probe != nil && now >= t.until
}
