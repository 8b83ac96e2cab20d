package replay

import (
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/breaker"
)

// Java's names for our families.
var javaKinds = map[string]string{"breaker": "degrade", "hotspot": "param"}

func javaKind(kind string) string {
	if name, ok := javaKinds[kind]; ok {
		return name
	}
	return kind
}

// endAtBreakers notifies the twins of a call that ends.
func (j *judge) endAtBreakers(l *live) {
	for _, t := range j.watching(l.place.resource) {
		t.end(l.call, j.due)
	}
}

// compareEvents compares the changes reported by our breakers with the twins, and with Java.
func (j *judge) compareEvents(op *Op) {
	got, due := j.heard, []breakerEvent(nil)
	for _, c := range j.model.Changes() {
		due = append(due, breakerEvent{c.Rule, c.From, c.To, c.Value})
	}
	j.heard = nil
	if !slices.EqualFunc(got, due, breakerEvent.equal) {
		j.fail("breakers reported %v, not %v", got, due)
		return
	}
	if j.diverged() || slices.EqualFunc(got, op.Expect.Events, breakerEvent.equal) {
		return
	}
	for _, r := range j.table {
		if r.events != nil && r.events(j, op, got) {
			if r.eventsAside {
				j.outcome.Asides[r.id]++
			} else {
				j.outcome.Row = r.id
				j.outcome.Change = fmt.Sprintf("Java: %v, here: %v", op.Expect.Events, got)
			}
			return
		}
	}
	j.fail("expected the events %v, got %v", op.Expect.Events, got)
}

func (e breakerEvent) equal(f breakerEvent) bool {
	return e.Rule == f.Rule && e.From == f.From && e.To == f.To &&
		(e.Value == nil) == (f.Value == nil) && (e.Value == nil || near(*e.Value, *f.Value))
}

// inspectBreaker compares a breaker's state, if the operation is about one.
func (j *judge) inspectBreaker(op *Op) {
	if op.Expect.State == nil {
		return
	}
	i := slices.IndexFunc(j.breakers, func(r breaker.Rule) bool { return r.ID == op.Rule })
	if i < 0 || *op.Expect.State == "" {
		return
	}
	resource := op.Resource
	if resource == "" {
		resource = j.breakers[i].Resource
	}
	got := breaker.Status{State: breaker.Closed} // even for a breaker that is off or was never asked
	for _, s := range j.guard.Breakers() {
		if s.Rule == op.Rule && s.Resource == resource {
			got = s
		}
	}
	for _, b := range j.model.Breakers() {
		if b.Rule.ID == op.Rule && b.Resource == resource && b.State != got.State {
			j.fail("breaker %q is %v, not %v", op.Rule, got.State, b.State)
		}
	}
	if j.diverged() {
		return
	}
	same := got.State.String() == *op.Expect.State
	if same && got.State == breaker.Open && op.Expect.RetryAtMs != nil {
		same = got.RetryAt.UnixNano() == j.epoch+int64(fromMs(*op.Expect.RetryAtMs))
	}
	if same {
		j.outcome.Figures++
		return
	}
	for _, r := range j.table {
		if r.state != nil && r.state(j, op.Rule) {
			j.outcome.Explained[r.id]++
			return
		}
	}
	j.fail("expected that breaker %q is %s, got %v until %v", op.Rule, *op.Expect.State, got.State, got.RetryAt)
}

// lateCounted: in Java it does not matter in which state a call was admitted, and a probe is never
// given up.
func lateCounted(j *judge, op *Op, got []breakerEvent) bool {
	events := slices.Concat(got, op.Expect.Events)
	for _, t := range j.twins {
		if len(events) > 0 && t.Rule.ID == events[0].Rule && t.astray {
			return true
		}
	}
	return false
}

// waitCounted: the response time that Java's breaker sees includes the wait in a queue.
func waitCounted(j *judge, op *Op, got []breakerEvent) bool {
	events := slices.Concat(got, op.Expect.Events)
	for _, t := range j.twins {
		if len(events) > 0 && t.Rule.ID == events[0].Rule && t.slowed {
			return true
		}
	}
	return false
}

// slowed is like waitCounted, but for a verdict instead of a state change.
func slowed(m *moment) bool {
	return slices.ContainsFunc(m.watching(m.call.place.resource), func(t *twin) bool {
		return (t.Rule.ID == m.want.Rule || t.Rule.ID == m.got.rule) && t.tookWaits(m.now())
	})
}

// strayed is like lateCounted, but for a verdict instead of a state change.
func strayed(m *moment) bool {
	return slices.ContainsFunc(m.watching(m.call.place.resource), func(t *twin) bool {
		return (t.Rule.ID == m.want.Rule || t.Rule.ID == m.got.rule) && t.strayed(m.now())
	})
}

// probeRefusedElsewhere: if another breaker refuses the call, Java's goes half-open and back. Ours
// does not change for a probe that does not run.
func probeRefusedElsewhere(_ *judge, op *Op, got []breakerEvent) bool {
	java := op.Expect.Events
	if op.Expect.Result != "block" || len(got) != 0 || len(java)%2 != 0 {
		return false
	}
	for i := 0; i < len(java); i += 2 {
		if a, b := java[i], java[i+1]; a.Rule != b.Rule || a.From != breaker.Open || b.To != breaker.Open {
			return false
		}
	}
	return true
}

// breakerKept: a rule that a reload changed keeps its state.
func breakerKept(m *moment) bool {
	return m.got.blockedBy == "degrade" && m.carried[m.got.rule] || m.want.BlockedBy == "degrade" && m.carried[m.want.Rule]
}

func breakerStateKept(j *judge, rule string) bool { return j.carried[rule] }
