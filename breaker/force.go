package breaker

import "fmt"

// Force makes the breaker of a rule on a resource, or all breakers of the rule if resource is
// empty, refuse or admit every call, until it is forced otherwise or released by [NotForced].
// That lasts as long as the rule does: loading rules doesn't end it.
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
		return fmt.Errorf("breaker: rule %q has no breaker on %q: look at the list of breakers; one of a rule for many resources or in shadow mode is there after the first call", rule, resource)
	}
	return nil
}

// force forces the breaker, or releases it: after being forced open it lets probes through next,
// after being forced closed it begins to count.
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
