package engine

import (
	"strings"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/shared"
)

// unitStats counts the units of the calls of one resource, by kind: of those kinds that a rule counts.
// So names that come from outside take no memory. The zero value is empty. It is safe for
// concurrent use.
type unitStats struct {
	list shared.Pointer[[]*unitCounts] // replaced as a whole

	mu shared.Mutex // guards replacing list
}

// unitCounts counts the units of one kind: in all, and in each of the last 60 seconds.
type unitCounts struct {
	unit string

	mu      shared.Mutex // guards the fields below it
	total   core.UnitCounts
	seconds [60]unitSecond
}

type unitSecond struct {
	number int64
	core.UnitCounts
}

// find returns the counts of a kind, or nil.
func (u *unitStats) find(unit string) *unitCounts {
	if list := u.list.Load(); list != nil {
		for _, c := range *list {
			if c.unit == unit {
				return c
			}
		}
	}
	return nil
}

// of returns the counts of a kind, made if there are none.
func (u *unitStats) of(unit string) *unitCounts {
	if c := u.find(unit); c != nil {
		return c
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := u.find(unit); c != nil {
		return c
	}
	var list []*unitCounts
	if old := u.list.Load(); old != nil {
		list = append(list, *old...)
	}
	c := &unitCounts{unit: strings.Clone(unit)} // it may be part of a whole request
	list = append(list, c)
	u.list.Store(&list)
	return c
}

// secondLocked returns the counts of the second of now, or others that nobody reads if that is long
// over.
func (c *unitCounts) secondLocked(now int64) *core.UnitCounts {
	number := now / int64(time.Second)
	s := &c.seconds[uint64(number)%uint64(len(c.seconds))]
	switch {
	case s.number < number:
		*s = unitSecond{number: number}
	case s.number > number:
		return new(core.UnitCounts)
	}
	return &s.UnitCounts
}

// addReserved counts reserved units. Like the functions below it changes few numbers: this costs
// much less than adding whole UnitCounts.
func (c *unitCounts) addReserved(now, n int64) {
	c.mu.Lock()
	second := c.secondLocked(now)
	raise(&c.total.Reserved, &second.Reserved, n)
	c.mu.Unlock()
}

func (c *unitCounts) addRefused(now, n int64) {
	c.mu.Lock()
	second := c.secondLocked(now)
	raise(&c.total.Refused, &second.Refused, n)
	c.mu.Unlock()
}

func (c *unitCounts) addUncosted(now int64) {
	c.mu.Lock()
	second := c.secondLocked(now)
	raise(&c.total.Uncosted, &second.Uncosted, 1)
	c.mu.Unlock()
}

func (c *unitCounts) addSettled(now int64, x *cost) {
	c.mu.Lock()
	second := c.secondLocked(now)
	raise(&c.total.Refunded, &second.Refunded, x.refunded)
	if x.overdrawn|x.forgiven != 0 {
		raise(&c.total.Overdrawn, &second.Overdrawn, x.overdrawn)
		raise(&c.total.Forgiven, &second.Forgiven, x.forgiven)
	}
	c.mu.Unlock()
}

// raise adds n to both numbers, which stop at the maximum of [core.UnitCounts].
func raise(total, second *int64, n int64) {
	*total, *second = min(*total+n, maxCounted), min(*second+n, maxCounted)
}

const maxCounted = 1 << 62

// look returns the total and the sum of the last minute.
func (c *unitCounts) look(now int64) (total, minute core.UnitCounts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	number := now / int64(time.Second)
	for i := range c.seconds {
		if s := &c.seconds[i]; s.number > number-int64(len(c.seconds)) && s.number <= number {
			minute = minute.Plus(s.UnitCounts)
		}
	}
	return c.total, minute
}

// UnitStats returns the counts of each kind of units that rules count of calls of the resource, in the
// order of their first calls.
func (r *Resource) UnitStats() []core.UnitStats {
	list := r.units.list.Load()
	if list == nil {
		return nil
	}
	all := make([]core.UnitStats, 0, len(*list))
	for _, c := range *list {
		total, minute := c.look(r.engine.Now())
		all = append(all, core.UnitStats{Unit: c.unit, Total: total, Minute: minute})
	}
	return all
}

// CountCosts counts the units that the call has reserved, as it is admitted.
func (inv *Invocation) CountCosts() {
	for i := range inv.costs {
		n := inv.reservedFor(i)
		if inv.costs[i].counted = n; n > 0 {
			inv.resource.units.of(inv.costs[i].unit).addReserved(inv.now, n)
		}
	}
}

// reservedFor returns the largest reservation of a cost, without grants of More.
func (inv *Invocation) reservedFor(cost int) (n int64) {
	for i := range inv.held {
		if r := &inv.held[i]; r.cost == uint8(cost)+1 && !r.more {
			n = max(n, r.Units)
		}
	}
	return n
}

// CountSettledCosts counts what the call gave back and was charged, as it exits.
func (inv *Invocation) CountSettledCosts() {
	for i := range inv.costs {
		x := &inv.costs[i]
		if x.refunded|x.overdrawn|x.forgiven == 0 {
			continue
		}
		if c := inv.resource.units.find(x.unit); c != nil {
			c.addSettled(inv.now, x)
		}
	}
}

// CountRefusedCosts counts the units that a refused call named.
func (inv *Invocation) CountRefusedCosts() {
	for i := range inv.costs {
		if c := inv.resource.units.find(inv.costs[i].unit); c != nil {
			c.addRefused(inv.now, inv.costs[i].n)
		}
	}
}

// HasCosts reports whether the call has costs.
func (inv *Invocation) HasCosts() bool { return len(inv.costs) > 0 }
