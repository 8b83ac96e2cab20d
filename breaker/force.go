package breaker

import "fmt"

// Force makes a rule's breaker on a resource, or all its breakers if resource is empty, refuse or
// admit every call, until it is forced otherwise or released by [NotForced]. Loading rules doesn't
// release it; removing the rule does.
func (t *table) Force(rule, resource string, f Force) error {
	if f > ForceClosed {
		return fmt.Errorf("breaker: %v is unknown: use ForceOpen, ForceClosed or NotForced", f)
	}
	found := false
	t.each(func(c *controller) {
		if c.rule.ID == rule && (resource == "" || resource == c.resource) {
			found = true
			c.machine.force(f, t.Engine.Now()).notify()
		}
	})
	if !found {
		return fmt.Errorf("breaker: rule %q has no breaker on %q: check the list of breakers; a rule for many resources or in shadow mode has one only after its first call", rule, resource)
	}
	return nil
}

// force forces the breaker, or releases it: after being forced open it admits probes next, after
// being forced closed it starts counting.
func (m *machine) force(f Force, now int64) Change {
	m.lock()
	defer m.unlock()
	now = m.advanceLocked(now)
	state, _ := m.state()
	switch {
	case f == ForceOpen && state != ForcedOpen:
		return m.enterLocked(ForcedOpen, now, 0)
	case f == ForceClosed && state != ForcedClosed:
		return m.enterLocked(ForcedClosed, now, 0)
	case f == NotForced && state == ForcedOpen:
		change := m.enterLocked(Open, now, 0)
		m.gate.Store(always)
		return change
	case f == NotForced && state == ForcedClosed:
		return m.enterLocked(Closed, now, 0)
	}
	return Change{}
}
