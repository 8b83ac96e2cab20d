package engine

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/penstock-go/penstock/core"
)

// Coster is the part of a [Checker] that has rules with a unit. Its methods are those of Checker and
// ShadowChecker, but only for rules with the unit of the invocation's cost.
type Coster interface {
	AskCost(*Invocation) Verdict
	TakeCost(*Invocation) Verdict
	ShadowCost(*Invocation)
	// Shares returns the rules with shared limits, or nil if there are none. They are asked, and
	// take, after the others.
	Shares() Sharer
	// Units returns the units of the rules; some may be equal.
	Units() []string
}

// More asks for n units more of a kind. See api.Admitted.
//
// It is a second invocation at the place of the first, with this one cost. The rules in force decide
// on it as on a call, and no recorder hears of it. Its reservations join those of the call under the
// entry's busy flag, or go back if the call has exited: so it is granted by every rule or by none.
func (e Entry) More(ctx context.Context, unit string, n int64) error {
	if !ValidUnit(unit) || n > MaxCost {
		return fmt.Errorf("%w: %d more of unit %.*q: use a valid unit, and at most %d", core.ErrInvalid, n, MaxUnitName+1, unit, int64(MaxCost))
	}
	if e.inv == nil {
		return nil // the zero entry limits nothing
	}
	if ctx == nil {
		ctx = context.Background()
	}
	m, err := e.another(ctx, unit)
	if err != nil {
		return err
	}
	m.costs = append(m.costs[:0], cost{unit: unit, n: max(1, n)})
	return m.more(e)
}

// another returns an invocation at the place of a running call, which asks for itself, or the reason
// why the call can't have more of the unit. It belongs to no entry.
func (e Entry) another(ctx context.Context, unit string) (*Invocation, error) {
	if !e.set(flagBusy) {
		return nil, core.ErrExited
	}
	inv := e.inv
	defer inv.word.And(^uint64(flagBusy))
	if _, err := inv.grows(unit); err != nil {
		return nil, err
	}
	m := inv.engine.pool.Get().(*Invocation)
	m.call = call{
		ctx: ctx, context: inv.context, resource: inv.resource, bound: inv.bound, units: 1, args: inv.args,
		endpoint: inv.endpoint, inbound: inv.inbound, asksMore: true,
		entrance: inv.entrance, node: inv.node, origin: inv.origin,
	}
	m.params = append(m.params[:0], inv.params...)
	m.beyond = inv.beyond
	return m, nil
}

// grows returns the index of the cost that More adds to, which is the next one if the call has none
// of the unit, or the reason why there is none. A call that asks for more of ever other units ends up
// with as many costs as a reservation can number.
func (inv *Invocation) grows(unit string) (i int, err error) {
	if i = inv.costAt(unit); i < 0 {
		if i = len(inv.costs); i == math.MaxUint8 {
			err = fmt.Errorf("%w: more of %s: a call has costs in at most %d units", core.ErrInvalid, unit, math.MaxUint8)
		}
		return i, err
	}
	if inv.costs[i].settled {
		err = core.ErrExited
	}
	return i, err
}

// Reserved returns the units of a kind that the call reserved and was granted. A call that named none
// has reserved the largest estimate of a rule; one that has exited has nothing.
func (e Entry) Reserved(unit string) (n int64) {
	if e.inv == nil || !e.set(flagBusy) {
		return 0
	}
	inv := e.inv
	if i := inv.costAt(unit); i >= 0 {
		c := &inv.costs[i]
		if n = c.n; n == 0 {
			n = inv.reservedFor(i)
		}
		n += c.more
	}
	inv.word.And(^uint64(flagBusy))
	return n
}

// AsksMore reports whether the invocation asks for a running call; see [Entry.More].
func (inv *Invocation) AsksMore() bool { return inv.asksMore }

// more decides, and passes what it was granted to the call of the entry.
func (inv *Invocation) more(e Entry) (err error) {
	over := false
	defer func() {
		if over { // otherwise a custom clock or context has panicked, and wait has given back
			inv.recycle()
		}
	}()
	inv.began = inv.engine.Now()
	inv.now = inv.began
	inv.rebindMore()
	by, cause := inv.decideMore()
	if by == nil {
		err = e.join(inv)
	}
	if by != nil || err != nil {
		inv.giveBack()
	}
	switch {
	case by == nil:
	case cause != nil:
		err = abandon(by, cause, inv.ctx)
	default:
		err = by
	}
	if by != nil {
		inv.CountRefusedCosts()
	}
	over = true
	return err
}

// rebindMore finds the rules in force: those of the entry may be older.
func (inv *Invocation) rebindMore() {
	e, r := inv.engine, inv.resource
	if inv.bound = r.bound.Load(); inv.bound == nil || inv.bound.set != e.rules.Load() || r == e.resources.overflow {
		inv.bound = e.lookUp(r, inv.Name(), inv.now, true)
	}
}

// decideMore asks the rules with the unit, then takes, and waits if they make it wait. It returns the
// refusal, and the error of the context that ended the wait. Units of shared limits are fetched as
// for a call, but kept through a wait: they were granted by the time of the decision.
func (inv *Invocation) decideMore() (by *core.BlockError, cause error) {
	var longest Verdict
	if b := inv.bound; !b.direct || len(b.checkers) > 1 || len(b.costSharers) > 0 { // see direct
		if longest, by, cause = inv.verdictsOnMore(Coster.AskCost, Checker.Ask); by != nil {
			return by, cause
		}
		if longest.Wait > 0 && !inv.inTime(longest.Wait) {
			return inv.named(longest.By), inv.ctx.Err()
		}
	}
	if longest, by, cause = inv.verdictsOnMore(Coster.TakeCost, Checker.Take); by != nil {
		return by, cause
	}
	if inv.later {
		inv.later = false
		for _, s := range inv.bound.costSharers {
			s.Wants(inv)
		}
		if by, cause = inv.fetchMore(&longest); by != nil {
			return by, cause
		}
	}
	for _, c := range inv.bound.costers {
		c.ShadowCost(inv)
	}
	if longest.Wait > 0 {
		returned, by, cause := inv.wait(longest, notYet)
		returned()
		if by != nil {
			return by, cause
		}
	}
	if len(inv.turns) > 0 {
		inv.runTurns()
	}
	return nil, nil
}

// verdictsOnMore returns the longest wait, or the first refusal. It fetches the units that are missing
// by then.
func (inv *Invocation) verdictsOnMore(say func(Coster, *Invocation) Verdict, sayShared func(Checker, *Invocation) Verdict) (longest Verdict, by *core.BlockError, cause error) {
	for _, c := range inv.bound.costers {
		v := say(c, inv)
		if v.Block != nil {
			return longest, v.Block, nil
		}
		longest.longest(v)
	}
	for _, s := range inv.bound.costSharers {
		v := sayShared(s, inv)
		if v.Block == nil {
			longest.longest(v)
		} else if !v.NeedsMore() {
			return longest, v.Block, nil
		}
	}
	by, cause = inv.fetchMore(&longest)
	return longest, by, cause
}

// fetchMore fetches what the invocation wants, if anything.
func (inv *Invocation) fetchMore(longest *Verdict) (by *core.BlockError, cause error) {
	if !inv.wantsSome() {
		return nil, nil
	}
	v, by, cause := inv.fetch(inv.ctx)
	longest.longest(v)
	return by, cause
}

// join passes the reservations of m to the call of the entry. Turns stay behind: they are over.
//
// The call's reservations stay few, however often it asks: of each holder it keeps the entry's and
// the latest grant. Asking for more means that what was granted before is used.
func (e Entry) join(m *Invocation) error {
	if !e.set(flagBusy) {
		return core.ErrExited
	}
	inv, from := e.inv, &m.costs[0]
	defer inv.word.And(^uint64(flagBusy))
	i, err := inv.grows(from.unit)
	if err != nil {
		return err
	}
	if i == len(inv.costs) {
		inv.costs = append(inv.costs, cost{unit: from.unit})
	}
	all := inv.grants()
	counted := false
	for j := range m.held {
		r := &m.held[j]
		if r.cost == 0 {
			continue
		}
		counted = true
		r.cost, r.more = uint8(i)+1, true
		switch before := all.of(r, true); {
		case before == nil:
			inv.held = append(inv.held, *r)
			all.add(len(inv.held) - 1)
		case r.joins(before):
			before.Units += r.Units
			if r.kind == byHolder {
				before.Undo = r.Undo // such as the rate of the latest grant
			}
		default:
			earlier := *before
			*before = *r
			if earlier.UntilExit { // behind the latest, it is not settled
				inv.held = append(inv.held, earlier)
			}
		}
	}
	m.empty(m.held)
	for _, home := range m.homes { // of rules that count the call from now on
		if !slices.Contains(inv.homes, home) {
			inv.homes = append(inv.homes, home)
		}
	}
	inv.costs[i].more += from.n
	if counted {
		inv.costs[i].counted += from.n
		inv.resource.units.of(from.unit).addReserved(m.now, from.n)
	}
	return nil
}

// joins reports whether the units of a grant go back to the very place from which an earlier one of
// the same holder came. A token means something only to whoever gave it.
func (r *Reservation) joins(before *Reservation) bool {
	switch {
	case r.semaphore != nil:
		return true
	case r.window != nil:
		return before.Token == r.Token
	}
	return before.Holder == r.Holder && (r.UntilExit || before.Token == r.Token)
}

// addCoster adds the rules of a checker that have a unit, enforced or in shadow mode, if any.
func (b *binding) addCoster(checker any) {
	has, ok := checker.(interface{ Costs() Coster })
	if !ok {
		return
	}
	c := has.Costs()
	if c == nil {
		return
	}
	b.costers = append(b.costers, c)
	if s := c.Shares(); s != nil {
		b.costSharers = append(b.costSharers, s)
	}
}
