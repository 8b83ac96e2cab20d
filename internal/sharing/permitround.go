package sharing

import "github.com/penstock-go/penstock/cluster/store"

// permitRound holds the store's count of permits, by the latest reply.
//
// Invariant: the store counts held of the total for this member. The next command goes out by
// renewAt, well before the permits expire at the store.
//
// The semaphore's mutex guards it.
type permitRound struct {
	renewAt int64
	total   int64 // permits held by all members
	held    int64
	active  int64 // members that hold permits
}

// replied records a reply, and returns the permits available to this member's calls. If members
// hold more than the limit, all come down to their shares as permits come back.
func (r *permitRound) replied(c *store.Permits, received int64) (good int64) {
	r.renewAt = received + int64(c.Expiry)/3
	r.total, r.held, r.active = c.Reply.Total, c.Reply.Held, max(1, c.Reply.Active)
	if good = r.held; r.total > c.Limit {
		good = min(good, c.Limit/r.active)
	}
	return good
}

// failed records that there is no reply, so that the next command goes out soon.
func (r *permitRound) failed(c *store.Permits, now int64) { r.renewAt = now + int64(c.Expiry)/8 }

// room returns the permits that no member holds; the whole limit before the first reply.
func (r *permitRound) room(limit int64) int64 { return max(0, limit-r.total) }
