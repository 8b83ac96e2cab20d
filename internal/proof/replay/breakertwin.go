package replay

import (
	"errors"
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/proof/model"
)

// twin records, for one breaker, calls of an older state that Java may count or use for decisions.
type twin struct {
	*model.Breaker
	epoch  int
	late   []int64 // end times of calls of an older state while this one counted
	slowed bool    // tookWaits when the latest call ended
	astray bool    // had strayed when the latest call ended
	waited []int64 // end times of calls of this state that Java counts as slow because they had waited
}

// breakerEvent is a change of state, in the traces' form.
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

// hear records the changes that our breakers report.
func (p *player) hear(c breaker.Change) {
	e := breakerEvent{Rule: c.Rule, From: c.From, To: c.To}
	if c.To == breaker.Open {
		e.Value = &c.Value
	}
	p.heard = append(p.heard, e)
}

// loadTwins records which breakers continue under other rules.
func (p *player) loadTwins(rules []breaker.Rule) {
	for _, old := range p.breakers {
		i := slices.IndexFunc(rules, func(r breaker.Rule) bool { return r.ID == old.ID })
		asked := slices.ContainsFunc(p.model.Breakers(), func(b *model.Breaker) bool { return b.Rule.ID == old.ID })
		if i >= 0 && rules[i].Mode != spec.Off && asked && !spec.Equal(rules[i], old) {
			p.carried[old.ID] = true
		}
	}
	p.breakers = rules
}

// watching returns the breakers of a resource.
func (p *player) watching(resource string) (twins []*twin) {
	for _, b := range p.model.Breakers() {
		if b.Resource != resource || b.Rule.Mode == spec.Off {
			continue
		}
		if p.twins[b] == nil {
			p.twins[b] = &twin{Breaker: b, epoch: b.Epoch}
		}
		t := p.twins[b]
		if t.epoch != b.Epoch {
			t.epoch, t.late, t.waited = b.Epoch, nil, nil
		}
		twins = append(twins, t)
	}
	return twins
}

// awaited handles a call whose wait has ended: the breakers are asked again. If the reply is wrong,
// nothing has changed.
func (p *player) awaited(l *live, r reply) error {
	by := p.model.Refuser(l.m)
	block, refused := errors.AsType[*core.BlockError](r.err)
	switch {
	case r.err != nil && (by == nil || !refused || block.Rule != by.ID):
		return r.err
	case r.err == nil && by != nil:
		return fmt.Errorf("breaker %q let the call pass", by.ID)
	}
	l.entry, l.pending = r.entry, nil
	if p.model.Run(l.m); r.err != nil {
		l.blocked = true
		p.retime(l.released)
		delete(p.open, l.id)
	}
	return nil
}

// end records a call that ends, before the breaker counts it.
func (t *twin) end(c *call, now int64) {
	switch {
	case t.Late(c.m):
		t.late = append(t.late, now)
	case t.Rule.Strategy == breaker.SlowRatio && now-c.asked > int64(t.Rule.SlowRT) && now-c.released <= int64(t.Rule.SlowRT):
		t.waited = append(t.waited, now)
	}
	t.slowed = t.tookWaits(now)
	t.astray = t.strayed(now)
}

// tookWaits reports whether Java counts or uses the wait of a call.
func (t *twin) tookWaits(now int64) bool {
	since := floor(now, int64(t.Rule.Interval))
	return t.State != breaker.Open && slices.ContainsFunc(t.waited, func(at int64) bool { return at >= since })
}

// strayed reports whether Java counts or uses a call of an older state, or still considers a probe
// in flight that we have given up on.
func (t *twin) strayed(now int64) bool {
	since := floor(now, int64(t.Rule.Interval))
	if t.State == breaker.HalfOpen {
		since = t.Since
	}
	return t.State != breaker.Open && slices.ContainsFunc(t.late, func(at int64) bool { return at >= since }) ||
		slices.ContainsFunc(t.Probes, func(p model.Probe) bool { return now >= p.Until })
}
