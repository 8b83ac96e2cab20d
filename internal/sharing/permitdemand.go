package sharing

// permitDemand decides how many permits a member asks the store for, when it gives some back, and which calls
// are refused without asking.
//
// Invariant: permits that no call has used since idleAt was set go back then. Until fullUntil a call that
// needs more than is free is refused, and doesn't ask.
//
// The semaphore's mutex guards it.
type permitDemand struct {
	short     int64 // permits that were missing since the last command
	idleAt    int64 // when permits that were not in use since it was set go back
	fullUntil int64 // the store had too few
}

func newPermitDemand() permitDemand { return permitDemand{idleAt: never} }

// ask returns the permits that the member needs, and those that it wants, in all. It uses some now, and would
// keep good; it asks for more if calls wait or some were missing, and for a quarter more than that, for the
// next calls, if the limit is two permits a member at least.
func (d *permitDemand) ask(used, good int64, calls waiting, limit, active int64) (need, want int64) {
	short := d.short
	d.short = 0
	need, want = used, max(used, good)
	if calls.first == nil && short == 0 {
		return need, want
	}
	need = used + 1 // of several calls, one may fit
	if calls.first != nil {
		need = used + calls.first.Units
	}
	more := used + short + calls.units
	if limit >= 2*active {
		more += (more + 3) / 4
	}
	return need, max(want, need, more)
}

// keep plans when permits go back, if some are spare.
func (d *permitDemand) keep(now int64, spare bool) {
	if d.idleAt == never && spare {
		d.idleAt = now + idlePermits
	}
}

// refuses reports whether a call is refused without asking: it needs more than the limit, or than is free
// where the store has just had too few.
func (d *permitDemand) refuses(now, n, free, limit int64) bool {
	return n > limit || now < d.fullUntil && n > free
}

// full has calls that need more than is free refused for a while. Nobody knows when a permit comes free, and
// each call that asks costs a round trip.
func (d *permitDemand) full(now int64, rand random) {
	d.fullUntil = now + fullFor/2 + rand(fullFor)
}
