package sharing

import (
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// storeClock is how far the store's clock is ahead of the member's: between low and high, at a time.
type storeClock struct {
	known     bool
	low, high int64
	at        int64
}

// The clocks' rates differ by a thousandth at most, and a clock that was set by less than
// stepTolerance counts as not set.
const (
	drift         = 1000
	stepTolerance = int64(5 * time.Millisecond)
)

// stepped notes what the store's clock shows, and reports whether the clock was set since the last
// time.
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

// storeTime is what the store's clock shows at now, as far as the member knows.
func (m *Member) storeTime(s *shard, now int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now + (s.clock.low+s.clock.high)/2
}

// saysNow is what the store's clock showed at the last command of the batch that it executed.
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
		case *store.Permits:
			now = c.Reply.Now
		case *store.Presence:
			now = c.Reply.Now
		}
	}
	return now, ok
}
