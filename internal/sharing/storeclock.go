package sharing

import (
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// storeClock is the range of the store's clock minus the member's, from low to high, as measured at
// a time.
type storeClock struct {
	known     bool
	low, high int64
	at        int64
}

// Clock rates differ by a thousandth at most. A clock set by less than stepTolerance counts as not
// set.
const (
	drift         = 1000
	stepTolerance = int64(5 * time.Millisecond)
)

// stepped records the store's time, and reports whether its clock was set since the previous call.
func (m *Member) stepped(s *shard, shows, sent, received int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &s.clock
	low, high := shows-received, shows-sent
	may := stepTolerance + (received-c.at)/drift
	step := c.known && (low > c.high+may || high < c.low-may)
	c.known, c.low, c.high, c.at = true, low, high, received
	return step
}

// storeTime estimates the store's time at now.
func (m *Member) storeTime(s *shard, now int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now + (s.clock.low+s.clock.high)/2
}

// trip returns the time that the latest reply of a shard took, or 0 if there was none.
func (m *Member) trip(s *shard) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Duration(s.clock.high - s.clock.low)
}

// saysNow returns the store's time at the last command of the batch that it executed.
func saysNow(batch []store.Command) (now int64, ok bool) {
	for _, c := range batch {
		if c.Result().Err != nil {
			continue
		}
		ok = true
		switch c := c.(type) {
		case *store.Take:
			now = c.Reply.Now
		case *store.Turn:
			now = c.Reply.Now
		case *store.Tokens:
			now = c.Reply.Now
		case *store.Permits:
			now = c.Reply.Now
		case *store.Presence:
			now = c.Reply.Now
		}
	}
	return now, ok
}
