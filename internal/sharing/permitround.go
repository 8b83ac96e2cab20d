package sharing

import "github.com/penstock-go/penstock/cluster/store"

// permitRound holds the store's count of permits, by the last reply.
//
// Invariant: of total, the store counts held for this member. The next command is sent at renewAt at the
// latest, well before its permits expire there.
//
// The semaphore's mutex guards it.
type permitRound struct {
	renewAt int64
	total   int64 // permits that all members hold
	held    int64
	active  int64 // members that hold any
}

// replied notes a reply, and returns the permits that this member's calls may have. Where members hold more
// than the limit, all come down to their shares as permits come back.
func (r *permitRound) replied(c *store.Permits, received int64) (good int64) {
	r.renewAt = received + int64(c.Expiry)/3
	r.total, r.held, r.active = c.Reply.Total, c.Reply.Held, max(1, c.Reply.Active)
	if good = r.held; r.total > c.Limit {
		good = min(good, c.Limit/r.active)
	}
	return good
}

// failed notes that there is no reply: the next command is sent soon.
func (r *permitRound) failed(c *store.Permits, now int64) { r.renewAt = now + int64(c.Expiry)/8 }

// room returns the permits that no member has; all if there was no reply.
func (r *permitRound) room(limit int64) int64 { return max(0, limit-r.total) }
