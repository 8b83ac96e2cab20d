package engine

import (
	"cmp"
	"fmt"
	"math"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// cost is a number of units of one kind that a call takes in addition to itself, such as tokens or
// bytes. Rules that name the unit reserve it; see api.Cost.
type cost struct {
	unit    string
	n       int64 // 0 if the call names none, and some rule reserved its own estimate
	more    int64 // granted since; see [Entry.More]
	counted int64 // as reserved, in the resource's counts
	settled bool

	// The result of the settlement, counted when the call exits: the amounts that the resource's counts
	// need to show the units used. Rules that reserved less give less back, and charge more.
	refunded, overdrawn, forgiven int64
}

// Bounds on the costs of a call.
const (
	MaxCost     = 1 << 40 // units of one kind
	MaxUnitName = 64      // bytes
	maxCosts    = 8       // kinds that a call names
)

// maxUsed is the number of units at which the consumption of a call is capped: beyond it, float64
// figures are no longer exact.
const maxUsed = 1 << 53

// Cost adds units of a kind to the call.
func Cost(unit string, n int64) Option {
	return Option{kind: optionCost, param: param{name: unit, value: argument.Int(n)}}
}

// addCost adds the units of an option to the call's costs.
func (inv *Invocation) addCost(unit string, n int64) {
	n = min(max(1, n), MaxCost+1) // so that no sum overflows
	if i := inv.costAt(unit); i >= 0 {
		inv.costs[i].n += n
		return
	}
	inv.costs = append(inv.costs, cost{unit: unit, n: n})
}

// checkCosts returns an error if the call has costs that it can't have.
func (inv *Invocation) checkCosts() error {
	if len(inv.costs) > maxCosts {
		return fmt.Errorf("%w: costs in %d units, a call has at most %d", core.ErrInvalid, len(inv.costs), maxCosts)
	}
	for i := range inv.costs {
		switch c := &inv.costs[i]; {
		case !ValidUnit(c.unit):
			return fmt.Errorf("%w: unit %.*q: use 1 to %d letters, digits, '.', '_' or '-', and Units for calls",
				core.ErrInvalid, MaxUnitName+1, c.unit, MaxUnitName)
		case c.n > MaxCost:
			return fmt.Errorf("%w: a cost of more than %d %s", core.ErrInvalid, int64(MaxCost), c.unit)
		}
	}
	return nil
}

// UnitOfCalls is no unit's name: rules without a unit count calls.
const UnitOfCalls = "calls"

// ValidUnit reports whether a cost may have that name.
func ValidUnit(name string) bool {
	for _, c := range []byte(name) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= MaxUnitName && name != UnitOfCalls
}

// CostOf returns the units of a kind that the call names, or 0 if it names none.
func (inv *Invocation) CostOf(unit string) int64 {
	if i := inv.costAt(unit); i >= 0 {
		return inv.costs[i].n
	}
	return 0
}

// SettleBy makes the call's latest reservation one of units of a kind, to be settled with the call's
// other reservations of that kind.
func (inv *Invocation) SettleBy(unit string) {
	i := inv.costAt(unit)
	if i < 0 {
		i = len(inv.costs)
		inv.costs = append(inv.costs, cost{unit: unit})
	}
	inv.held[len(inv.held)-1].cost = uint8(i) + 1
}

// costAt returns the index of the call's cost in a unit, or -1.
func (inv *Invocation) costAt(unit string) int {
	for i := range inv.costs {
		if inv.costs[i].unit == unit {
			return i
		}
	}
	return -1
}

// MaxUnits is the number of units that the rules of a set may name. So the number of a call's cost
// fits into a byte.
const MaxUnits = 16

// Settler is a [Holder] of units that are settled when the call's consumption is known. Its methods
// must not panic, and reserve nothing.
type Settler interface {
	Holder
	// Refund gives back n of the reserved units.
	Refund(r *Reservation, n, now int64)
	// Charge counts n more units, regardless of the limit, and returns the number that it left out.
	Charge(r *Reservation, n, now int64) (forgiven int64)
}

// Overdraft bounds what a window is charged: see Reservation.Holder.
type Overdraft interface {
	Holder
	// Most returns the number of units beyond which the window is not charged.
	Most(now int64) int64
}

// Settle replaces the units that the call reserved by the units that it used. See api.Admitted.
//
// It holds the entry's busy flag, and Exit waits for it: so the reservations are those of this call.
// An entry that has exited changes nothing. The log is written without the flag: its handler may be
// slow, or end the call.
func (e Entry) Settle(unit string, used int64) {
	if e.inv == nil {
		return
	}
	engine := e.inv.engine
	if stray := e.settle(unit, used); stray != "" {
		engine.strays.add(engine, unit, stray)
	}
}

// settle returns why it did nothing, or "". Settling 0 where there is nothing to give back is no
// mistake of a call that runs: code that cleans up does so, whatever was settled before.
func (e Entry) settle(unit string, used int64) (stray string) {
	if !e.set(flagBusy) {
		return "the call has exited"
	}
	inv := e.inv
	defer inv.word.And(^uint64(flagBusy)) // a custom clock may panic
	i := inv.costAt(unit)
	switch {
	case used == 0 && (i < 0 || inv.costs[i].settled):
		return ""
	case i < 0:
		return "the call has no cost of this unit"
	case inv.costs[i].settled:
		return "it is settled already"
	}
	inv.costs[i].settled = true
	inv.settleCost(uint8(i)+1, min(max(0, used), maxUsed))
	return ""
}

// settleCost settles every reservation of one cost. Rules may reserve different amounts, so each
// reservation is compared with the consumption. The clock is read for charges only: a refund leaves
// the bucket in which its units count.
//
// A holder may have several reservations, once the call asked for more. They are settled as one: with
// the reservation of the entry or, if there is none, with the latest grant.
func (inv *Invocation) settleCost(number uint8, used int64) {
	c, now := &inv.costs[number-1], inv.now
	if c.more > 0 {
		inv.Follow() // so that all units of the call in one window are known
	}
	if c.counted > 0 {
		c.refunded, c.overdrawn = max(0, c.counted-used), max(0, used-c.counted)
	}
	charged := false
	var all grants
	if c.more > 0 {
		all = inv.grants()
	}
	for i := range inv.held {
		r := &inv.held[i]
		if r.cost != number {
			continue
		}
		entry, later := r, (*Reservation)(nil)
		if c.more > 0 {
			entry, later = all.of(r, false), all.of(r, true)
			if r != cmp.Or(entry, later) {
				continue
			}
		}
		reserved := c.n + c.more
		if entry != nil {
			reserved = entry.Units + c.more
		}
		switch n := used - reserved; {
		case n < 0:
			n = -n
			if later != nil {
				back := min(n, later.Units)
				inv.refund(later, back, now)
				n -= back
			}
			if entry != nil && n > 0 {
				inv.refund(entry, min(n, entry.Units), now)
			}
		case n > 0:
			if !charged {
				now, charged = max(now, inv.engine.Now()), true
			}
			c.forgiven = max(c.forgiven, inv.charge(r, n, now))
		}
	}
}

// grants finds reservations of a cost by their holder: the latest grant of More or, if more is
// false, the reservation of the entry. Grants that the call has followed from another window come
// behind the one that it was given in this window itself, if any; the first one is found. A call
// that holds many gets an index, since searching for each would take time quadratic in their number.
type grants struct {
	inv   *Invocation
	index map[grant]int
}

// grant identifies a reservation of a cost.
type grant struct {
	cost uint8
	more bool
	by   counter
}

// counter identifies the place where units are counted together: a window, a semaphore or a holder, or
// the values of a hotspot rule and one of them.
type counter struct {
	by    any
	value argument.Value
}

func (inv *Invocation) grants() grants {
	g := grants{inv: inv}
	if len(inv.held) > fewHeld {
		g.index = make(map[grant]int, len(inv.held))
		for i := range inv.held {
			g.add(i)
		}
	}
	return g
}

// add makes a reservation known that was appended to the call's.
func (g grants) add(i int) {
	r := &g.inv.held[i]
	if g.index == nil || r.cost == 0 {
		return
	}
	key := grant{r.cost, r.more, r.countedBy()}
	if _, known := g.index[key]; !known {
		g.index[key] = i
	}
}

// of returns the reservation with the cost and the holder of r, or nil if there is none.
func (g grants) of(r *Reservation, more bool) *Reservation {
	by := r.countedBy()
	if g.index != nil {
		if i, ok := g.index[grant{r.cost, more, by}]; ok {
			return &g.inv.held[i]
		}
		return nil
	}
	for i := range g.inv.held {
		if x := &g.inv.held[i]; x.cost == r.cost && x.more == more && x.countedBy() == by {
			return x
		}
	}
	return nil
}

// countedBy returns what counts the units.
func (r *Reservation) countedBy() (c counter) {
	switch {
	case r.window != nil:
		c.by = r.window
	case r.semaphore != nil:
		c.by = r.semaphore
	default:
		switch x := r.Holder.(type) {
		case interface{ Counts() any }:
			c.by = x.Counts()
		case interface{ CountsOf() (any, argument.Value) }: // without an allocation
			c.by, c.value = x.CountsOf()
		default:
			c.by = x
		}
	}
	return c
}

// refund gives back n units of a reservation that the call didn't use.
func (inv *Invocation) refund(r *Reservation, n, now int64) {
	switch r.kind {
	case inWindow:
		r.window.Cancel(r.Receipt(), n)
	case inFlight:
		r.semaphore.Release(inv.lane, n)
		r.Units -= n // the call releases the rest as it exits
	default:
		if s, ok := r.Holder.(Settler); ok {
			s.Refund(r, n, now)
		}
	}
}

// charge counts n units that the call used beyond a reservation, and returns the number of forgiven
// units.
func (inv *Invocation) charge(r *Reservation, n, now int64) (forgiven int64) {
	switch r.kind {
	case inWindow:
		most := int64(math.MaxInt64)
		if o, ok := r.Holder.(Overdraft); ok {
			most = o.Most(now)
		}
		return chargeWindow(r.window, r.Receipt(), now, n, most)
	case inFlight:
		if !r.semaphore.TryAcquire(inv.lane, n, math.MaxInt64) { // it holds as much as it can count
			return n
		}
		r.Units += n
	default:
		if s, ok := r.Holder.(Settler); ok {
			forgiven = s.Charge(r, n, now)
		}
	}
	return forgiven
}

// chargeWindow charges a window for the call that holds a receipt there, and the windows that were
// handed its units but not this debit. It returns the maximum number of units forgiven by any.
//
// Every window that decides calls ends up with the debit exactly once. A window that takes the place
// of another counts what that one holds, instead of what it held before. If the other was charged
// before, the debit comes with it, and the call's own receipt is void: Charge returns false. If it
// is charged afterwards, it names this window among its successors, and whatever the window was
// charged directly is gone.
func chargeWindow(w *stat.Window, r stat.Receipt, now, n, most int64) (forgiven int64) {
	counted, elsewhere, ok := w.Charge(r, now, n, most)
	if !ok {
		return 0
	}
	forgiven = n - counted
	for _, h := range elsewhere {
		forgiven = max(forgiven, chargeWindow(h.Window, h.Receipt, now, n, most))
	}
	return forgiven
}

// strays reports the first settlement that did nothing: it is a mistake in the program, which
// repeats it with every call.
type strays struct{ seen shared.Bool }

func (s *strays) add(e *Engine, unit, why string) {
	if s.seen.Load() || s.seen.Swap(true) {
		return
	}
	e.logger.Warn("penstock: Settle did nothing; further ones are not reported", "unit", unit, "because", why)
}
