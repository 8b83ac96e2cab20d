package family

import (
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/sharing"
)

// Rehearse has a rule in shadow mode take of its limits what it would take if it were in force, and counts in
// record a call that it would refuse. No call waits for that: one that lacks units runs while they are fetched,
// and is counted when the store has answered. limit is the rule's, see [SharedRule].
func Rehearse(inv *engine.Invocation, record *engine.Record, limit func(*engine.Invocation, int) (Shared, int64)) {
	refused, before := &record.ShadowBlocked, inv.Reservations()
	lacks := false
	for i := 0; ; i++ {
		l, n := limit(inv, i)
		if l == nil {
			break
		}
		switch l.askShadow(inv, n) {
		case sharing.Refuses:
			refused.Add(inv.Lane(), 1)
			return
		case sharing.Lacks:
			lacks = true
		}
	}
	for i := 0; !lacks; i++ {
		l, n := limit(inv, i)
		if l == nil {
			break
		}
		switch l.takeShadow(inv, n) {
		case sharing.Refuses:
			inv.GiveBackFrom(before)
			refused.Add(inv.Lane(), 1)
			return
		case sharing.Lacks:
			inv.GiveBackFrom(before)
			lacks = true
		}
	}
	if !lacks {
		return
	}
	// All are fetched together, so that all go back if one is refused.
	var member *sharing.Member
	var needs []sharing.Need
	for i := 0; ; i++ {
		l, n := limit(inv, i)
		if l == nil {
			break
		}
		var need sharing.Need
		member, need = l.lack(inv, n)
		needs = append(needs, need)
	}
	inv.Reserve(engine.Reservation{Holder: late{member.FetchShadow(needs, inv.Lane(), refused)}})
}

// late is what a call that runs may yet get.
type late struct{ *sharing.Late }

// GiveBack is for a call that does not run after all.
func (l late) GiveBack(*engine.Reservation, int64) { l.Abandon() }
