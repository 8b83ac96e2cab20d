package family

import (
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/sharing"
)

// Rehearse makes a rule in shadow mode take from its limits the units that it would take if it were
// enforced, and counts a call that it would reject in record. No call waits for that: a call
// without enough units runs while they are fetched, and is counted when the store has replied.
// limit is the rule's, see [SharedRule]; unit is empty for calls.
func Rehearse(inv *engine.Invocation, record *engine.Record, unit string, limit func(*engine.Invocation, int) (Shared, int64)) {
	refused, before := &record.ShadowBlocked, inv.Reservations()
	short := false
	for i := 0; ; i++ {
		l, n := limit(inv, i)
		if l == nil {
			break
		}
		switch l.askShadow(inv, n) {
		case sharing.Refuses:
			refused.Add(inv.Lane(), 1)
			return
		case sharing.NeedsMore:
			short = true
		}
	}
	for i := 0; !short; i++ {
		l, n := limit(inv, i)
		if l == nil {
			break
		}
		switch l.takeShadow(inv, n) {
		case sharing.Refuses:
			inv.GiveBackFrom(before)
			refused.Add(inv.Lane(), 1)
			return
		case sharing.NeedsMore:
			inv.GiveBackFrom(before)
			short = true
		}
	}
	if !short {
		return
	}
	// All are fetched together, so that all are returned if one is rejected.
	var member *sharing.Member
	var needs []sharing.Need
	var counts []any
	for i := 0; ; i++ {
		l, n := limit(inv, i)
		if l == nil {
			break
		}
		var need sharing.Need
		member, need = l.need(inv, n)
		needs, counts = append(needs, need), append(counts, l.Counts())
	}
	units := make([]int64, len(needs))
	for i := range needs {
		units[i] = needs[i].Units
	}
	fetched := member.FetchShadow(needs, inv.Lane(), refused)
	inv.Reserve(engine.Reservation{Holder: late{fetched, 0, counts[0]}, Units: units[0]})
	if unit == "" {
		return
	}
	sharedUnit(unit).settles(inv)
	for i := 1; i < len(units); i++ { // each is settled by itself
		inv.Reserve(engine.Reservation{Holder: late{fetched, i, counts[i]}, Units: units[i]})
		sharedUnit(unit).settles(inv)
	}
}

// late is a need of a fetch that may still succeed after the call has begun to run.
type late struct {
	fetch  *sharing.Late
	need   int // its index
	counts any
}

// GiveBack is for a call that does not run after all: the first need abandons all.
func (l late) GiveBack(*engine.Reservation, int64) {
	if l.need == 0 {
		l.fetch.Abandon()
	}
}

// Refund gives back units that the call didn't use, once it has got them.
func (l late) Refund(_ *engine.Reservation, n, _ int64) { l.fetch.Settle(l.need, -n) }

// Charge counts units that the call used beyond its reservation, once it has got that.
func (l late) Charge(_ *engine.Reservation, n, _ int64) (forgiven int64) {
	l.fetch.Settle(l.need, n)
	return 0
}

// Counts is that of the limit.
func (l late) Counts() any { return l.counts }
