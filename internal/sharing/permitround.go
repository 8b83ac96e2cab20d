package sharing

import (
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// permitRound is what a semaphore knows of the store's count, by the last reply.
//
// Invariant: held is what the store counts for this member, of total; the store hears of the member again at renewAt,
// well before its permits expire there.
//
// The semaphore's mutex guards it.
type permitRound struct {
	renewAt int64
	total   int64 // permits that all members hold
	held    int64
	active  int64 // members that hold any
}

// replied takes note of a reply, and returns how many permits this member's calls may have. Where members hold more than the
// limit, all come down to their shares as permits come back.
func (r *permitRound) replied(c *store.Permits, expiry time.Duration, received int64) (good int64) {
	r.renewAt = received + int64(expiry)/3
	r.total, r.held, r.active = c.Reply.Total, c.Reply.Held, max(1, c.Reply.Active)
	if good = r.held; r.total > c.Limit {
		good = min(good, c.Limit/r.active)
	}
	return good
}

// failed takes note that there is no reply: the member is heard of again soon.
func (r *permitRound) failed(expiry time.Duration, now int64) { r.renewAt = now + int64(expiry)/8 }

// room is how many permits no member has; all if there was no reply.
func (r *permitRound) room(limit int64) int64 { return max(0, limit-r.total) }
