package sharing

// permitDemand decides how many permits to ask the store for, when to give some back, and which
// calls to refuse without asking.
//
// Invariant: while there are spare permits, idleAt is at most idlePermits ahead. At idleAt, permits
// that no call has used since the previous return go back, see permits.giveUp. So permits go back
// one to two times idlePermits after their last use. Until fullUntil a call that needs more than the
// free permits is refused without asking.
//
// The semaphore's mutex guards it.
type permitDemand struct {
	short     int64 // permits missing since the last command
	idleAt    int64 // when permits unused since it was set go back
	fullUntil int64 // until then the store counts as full
}

func newPermitDemand() permitDemand { return permitDemand{idleAt: never} }

// permitPosition is the input of a permitDemand.
type permitPosition struct {
	limit  int64 // of all members
	used   int64 // permits in use by calls
	good   int64 // permits available to calls
	room   int64 // permits that no member holds
	active int64 // members that hold permits
}

// free returns the permits not known to be in use by any member's calls.
func (p permitPosition) free() int64 { return p.room + max(0, p.good-p.used) }

// ask returns the total number of permits that the member needs, and the number it wants. It keeps
// the permits that are used or good. If calls wait or permits were missing, it adds those, and a
// quarter more for the next calls if the limit is at least two permits a member.
func (d *permitDemand) ask(calls waiting, p permitPosition) (need, want int64) {
	short := d.short
	d.short = 0
	need, want = p.used, max(p.used, p.good)
	if calls.first == nil && short == 0 {
		return need, want
	}
	need = p.used + 1 // of several calls, one may fit
	if calls.first != nil {
		need = p.used + calls.first.Units
	}
	more := p.used + short + calls.units
	if p.limit >= 2*p.active {
		more += (more + 3) / 4
	}
	return need, max(want, need, more)
}

// keep plans when spare permits go back. It asks whether there are any only if that is not planned
// yet, because the answer takes back the permits that were lent to lanes.
func (d *permitDemand) keep(now int64, spare func() bool) {
	if d.idleAt == never && spare() {
		d.idleAt = now + idlePermits
	}
}

// isFull reports whether calls that need more than the free permits are refused without asking.
func (d *permitDemand) isFull(now int64) bool { return now < d.fullUntil }

// full starts to refuse, for a while, calls that need more than the free permits. Nobody knows when
// a permit comes free, and each call that asks costs a round trip.
func (d *permitDemand) full(now int64, rand random) {
	d.fullUntil = now + fullFor/2 + rand(fullFor)
}
