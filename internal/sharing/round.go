package sharing

import "github.com/penstock-go/penstock/cluster/store"

// round is a window's exchange with the store. Commands go out one at a time, and each reply is
// applied before the next command is made.
//
// Invariant: a granted unit that is neither spent nor in a lease is in backs until it is sent, and
// is sent once, unless the store has certainly not executed the command. A unit spent from an ended
// lot, or admitted without the store, is in account while it counts. Commands charge uncounted
// units until a reply confirms them: the store may count a unit twice, but misses none. A new epoch
// charges all of them again. While the store is reachable, a command with charges goes out at once,
// or with the next batch if one is in flight: until the store has the charges, it grants their room
// to other members.
//
// The window's mutex guards it.
type round struct {
	ring      store.Ring
	edge      edge
	epoch     int64 // of the key, 0 if unknown
	seen      int64 // Take.Seen
	shortfall int64 // Take.Shortfall
	backs     []store.Units
	backAt    int64 // when backs are sent even without another command
	account   account
	asking    *waiter // the call whose need the command in flight carries
	outdated  bool    // the grant of the command in flight goes back at once
	forgotten int     // consecutive replies from a store that had forgotten the key
	requests  int64
}

func newRound(ring store.Ring) round { return round{ring: ring, backAt: never} }

// unknownEpoch is the epoch of no key.
const unknownEpoch = 1

// counts returns the longest time that a unit counts, in nanoseconds.
func (r *round) counts() int64 { return (r.ring.Span() + 1) * int64(r.ring.Shape.Width()) }

// owes reports whether units that still count have yet to be charged to the store.
func (r *round) owes(now int64) bool { return r.account.owes(now - r.counts()) }

// due reports whether units must go back, or be charged, now.
func (r *round) due(now int64) bool {
	return len(r.backs) > 0 && now >= r.backAt || r.owes(now)
}

// handBack queues units of a bucket for the next command, which goes out by at.
func (r *round) handBack(u store.Units, at int64) {
	r.backAt = min(r.backAt, at)
	for i := range r.backs {
		if r.backs[i].Bucket == u.Bucket {
			r.backs[i].Units += u.Units
			return
		}
	}
	r.backs = append(r.backs, u)
}

// spend accounts for units of a lot, which the store counted when it granted them.
func (r *round) spend(u store.Units, at int64) {
	e := r.account.of(u.Bucket)
	e.counted += u.Units
	e.at = at
}

// unspend undoes spend for units that come back.
func (r *round) unspend(u store.Units) {
	e := r.account.of(u.Bucket)
	e.counted = max(0, e.counted-u.Units)
}

// admit accounts for units that have yet to be charged to the store. Those of a bucket stop at
// mostLimit, far beyond any limit, so that no sum overflows.
func (r *round) admit(u store.Units, at int64) {
	e := r.account.of(u.Bucket)
	e.uncharged += max(0, min(u.Units, mostLimit-e.units()))
	e.at = at
	if len(r.account) > 1 {
		r.account.forget(r.account[len(r.account)-1].bucket - r.ring.Span())
	}
}

// enter records the current bucket and its end, and reports whether the bucket is a new one.
func (r *round) enter(e edge) (another bool) {
	if another = e.bucket != r.edge.bucket; another {
		r.account.forget(e.bucket - r.ring.Span())
	}
	r.edge = e
	return another
}

// advances reports whether a bucket of the store takes the place of the latest: it is no older, or so
// much older that the store's clock must have been set back.
func (r *round) advances(bucket int64) bool {
	return bucket >= r.edge.bucket || bucket+r.ring.Span() <= r.edge.bucket
}

// command makes the command that asks for units, charges uncounted ones and hands back the rest. It
// returns nil if there is nothing to do, unless the command probes an unreachable store. leased
// means that the member has units of this epoch.
func (r *round) command(a ask, leased, probes bool) *store.Take {
	t := &store.Take{Ring: r.ring, Seen: r.seen, Shortfall: r.shortfall}
	t.Need, t.Want, t.Ahead, t.Borrow = a.need, a.want, a.ahead, a.borrow
	t.Charges = r.account.charge()
	r.backs, t.Backs = nil, r.backs // sent at most once
	r.backAt = never
	if t.Need|t.Want == 0 && len(t.Backs)+len(t.Charges) == 0 && !probes {
		return nil
	}
	switch {
	case r.epoch == 0 && len(t.Charges) > 0:
		t.Epoch = unknownEpoch // grant nothing before these are charged
	case r.epoch != 0 && (leased || len(t.Backs)+len(r.account) > 0):
		t.Epoch = r.epoch
	}
	r.requests++
	return t
}

// replied records a reply: the store has the charges if its epoch is the command's. It reports
// whether the epoch has changed; the caller then calls renew.
func (r *round) replied(t *store.Take) (renews bool) {
	r.account.charged(t.Epoch == t.Reply.Epoch)
	if t.Need|t.Want != 0 {
		r.seen = t.Reply.Current
	}
	return t.Reply.Epoch != r.epoch
}

// failed records that there is no reply. Hand-backs are kept, until a time, only if the store has
// certainly not executed the command.
func (r *round) failed(t *store.Take, mayHaveExecuted bool, until int64) {
	r.account.charged(false)
	r.asking, r.outdated = nil, false
	if !mayHaveExecuted {
		r.backs = append(r.backs, t.Backs...)
		r.backAt = until
	}
}

// renew begins an epoch: the key was created again, so all admitted units must be charged. bucketAt
// returns the bucket at a time. The caller has ended the leases, which belong to the previous
// epoch.
func (r *round) renew(epoch int64, bucketAt func(at int64) int64) {
	if r.epoch != 0 {
		r.backs = nil
		r.account.unchargeAll()
	} else { // earlier buckets may not be in the store's time
		before := r.account
		r.account = nil
		for _, e := range before {
			r.account.of(bucketAt(e.at)).join(e)
		}
	}
	r.epoch = epoch
}

// forgets records whether the store knew the key. It reports whether the store has forgotten it for
// so many commands in a row that the window should decide without it: each command would charge
// everything again.
func (r *round) forgets(t *store.Take) bool {
	switch t.Epoch {
	case 0, unknownEpoch: // the window expected no key
		return false
	case t.Reply.Epoch:
		r.forgotten = 0
		return false
	}
	r.forgotten++
	return r.forgotten >= mostFailures
}
