package sharing

import "github.com/penstock-go/penstock/cluster/store"

// round is a window's exchange with the store: commands go out one at a time, and each reply is applied
// before the next command is made.
//
// Invariant: a unit that was granted and is neither spent nor in a lease is in backs until it is sent, and is
// sent once, unless the store has certainly not executed the command. A unit that was spent of a lot that is
// over, or admitted without the store, is in account as long as it counts. Commands charge what the store has
// not counted until a reply says that it has: it may count a unit twice, but none is left out. A new epoch
// has all of them charged again.
//
// The window's mutex guards it.
type round struct {
	ring      store.Ring
	edge      edge
	epoch     int64 // the key's, 0 if unknown
	seen      int64 // Take.Seen
	lacked    int64 // Take.Lacked
	backs     []store.Units
	backAt    int64 // when they are sent even if nothing else is; never if there are none
	account   account
	asking    *waiter // whose need is in the command on its way
	outdated  bool    // what the command on its way is granted goes back at once
	forgotten int     // replies in a row by which the store no longer knew the key
	requests  int64
}

func newRound(ring store.Ring) round { return round{ring: ring, backAt: never} }

// unknownEpoch is no key's.
const unknownEpoch = 1

// counts returns the longest that a unit counts.
func (r *round) counts() int64 { return (r.ring.Span() + 1) * int64(r.ring.Shape.Width()) }

// owes reports whether the store has yet to be charged with units that still count.
func (r *round) owes(now int64) bool { return r.account.owes(now - r.counts()) }

// due reports whether units have to go back, or be charged, now.
func (r *round) due(now int64) bool {
	return len(r.backs) > 0 && now >= r.backAt || r.owes(now)
}

// handBack has units of a bucket sent back with the next command, at the latest at a time.
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

// spend accounts for units of a lot that the store has counted as it granted them.
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

// admit accounts for units that the store has yet to be charged with.
func (r *round) admit(u store.Units, at int64) {
	e := r.account.of(u.Bucket)
	e.uncharged += u.Units
	e.at = at
	if len(r.account) > 1 {
		r.account.forget(r.account[len(r.account)-1].bucket - r.ring.Span())
	}
}

// enter notes which bucket is current, and when it ends. It reports whether that is another one than before.
func (r *round) enter(e edge) (another bool) {
	if another = e.bucket != r.edge.bucket; another {
		r.account.forget(e.bucket - r.ring.Span())
	}
	r.edge = e
	return another
}

// isCurrent reports whether a bucket is no older than the current one, or so much that the store's clock was
// set back.
func (r *round) isCurrent(bucket int64) bool {
	return bucket >= r.edge.bucket || bucket+r.ring.Span() <= r.edge.bucket
}

// command makes the command that asks for units, charges what the store has yet to count and hands back what
// there is; nil if it would do none of it, unless it probes whether the store is back. leased says that the
// member has units of this epoch.
func (r *round) command(a ask, leased, probes bool) *store.Take {
	t := &store.Take{Ring: r.ring, Seen: r.seen, Shortfall: r.lacked}
	t.Need, t.Want, t.Ahead, t.Borrow = a.need, a.want, a.ahead, a.borrow
	t.Charges = r.account.charge()
	r.backs, t.Backs = nil, r.backs // forgotten as they are sent
	r.backAt = never
	if t.Need|t.Want == 0 && len(t.Backs)+len(t.Charges) == 0 && !probes {
		return nil
	}
	switch {
	case r.epoch == 0 && len(t.Charges) > 0:
		t.Epoch = unknownEpoch // nothing is granted before they are charged
	case r.epoch != 0 && (leased || len(t.Backs)+len(r.account) > 0):
		t.Epoch = r.epoch
	}
	r.requests++
	return t
}

// replied notes a reply: the store has the charges if the epoch is that of the command. It reports whether
// the epoch is another one than before; the caller then calls renew.
func (r *round) replied(t *store.Take) (renews bool) {
	r.account.charged(t.Epoch == t.Reply.Epoch)
	if t.Need|t.Want != 0 {
		r.seen = t.Reply.Current
	}
	return t.Reply.Epoch != r.epoch
}

// failed notes that there is no reply. What was to go back is kept only if the store has certainly not
// executed the command, until a time.
func (r *round) failed(t *store.Take, executed bool, until int64) {
	r.account.charged(false)
	r.asking, r.outdated = nil, false
	if !executed {
		r.backs = append(r.backs, t.Backs...)
		r.backAt = until
	}
}

// renew begins with an epoch: the key was made anew, so the store has to be charged with what was admitted.
// bucketAt is the bucket of a time. The caller has ended the leases, which are of the epoch before.
func (r *round) renew(epoch int64, bucketAt func(at int64) int64) {
	if r.epoch != 0 {
		r.backs = nil
		r.account.unchargeAll()
	} else { // what was admitted before is in buckets of a time that was perhaps not the store's
		before := r.account
		r.account = nil
		for _, e := range before {
			r.account.of(bucketAt(e.at)).join(e)
		}
	}
	r.epoch = epoch
}

// forgets notes whether the store knew the key. It reports whether it hasn't for so many commands in a row
// that the window is to decide without it: each command would charge again what was admitted.
func (r *round) forgets(t *store.Take) bool {
	switch t.Epoch {
	case 0, unknownEpoch: // the window knew of no key
		return false
	case t.Reply.Epoch:
		r.forgotten = 0
		return false
	}
	r.forgotten++
	return r.forgotten >= mostFailures
}
