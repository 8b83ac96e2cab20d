package storetest

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/stat"
)

// member is the knowledge of a member that sends random commands.
type member struct {
	seen, shortfall, epoch int64
	known                  []int64 // buckets that it was granted units in
}

// randomTakes sends random commands from some members, including ones that no real member would
// send.
func (s *stage) randomTakes(shape stat.Shape) {
	r := s.random
	width := int64(shape.Width() / time.Microsecond)
	ring := store.Ring{Shape: shape, Phase: time.Duration(r.Int64N(width)) * time.Microsecond}
	key := s.key(fmt.Sprintf("w-%d-%t", shape.Buckets, shape.Strict))
	members := make([]member, 4)
	var last *store.Take
	for range s.cfg.Commands {
		if s.cfg.Advance != nil {
			d := time.Duration(r.Int64N(width)) * time.Microsecond
			switch r.IntN(40) {
			case 0:
				d *= 20
			case 1:
				d *= -2
			case 2:
				d *= -30
			}
			s.cfg.Advance(d)
		}
		if last != nil && r.IntN(10) == 0 {
			again := *last // a proxy retries
			s.do(&again)
			continue
		}
		id := r.IntN(len(members))
		m := &members[id]
		t := &store.Take{
			Outcome: store.Outcome{Key: key}, Caller: s.caller(int64(1 + id)), Ring: ring, Limit: []int64{20, 20, 20, 7, 0}[r.IntN(5)],
			Need: r.Int64N(8), Seen: m.seen, Shortfall: m.shortfall, Epoch: m.epoch, NewEpoch: 2 + r.Int64N(store.MaxEpoch-1),
		}
		t.Want = t.Need * r.Int64N(3)
		switch r.IntN(6) {
		case 0:
			t.Epoch = 0
		case 1:
			t.Ahead = m.seen + r.Int64N(4)
		case 2:
			t.Borrow = time.Duration(r.Int64N(3*width)) * time.Microsecond
		}
		for range r.IntN(3) {
			u := store.Units{Bucket: m.seen + r.Int64N(7) - 4, Units: r.Int64N(5)}
			if len(m.known) > 0 && r.IntN(4) > 0 {
				u.Bucket = m.known[r.IntN(len(m.known))]
			}
			if r.IntN(3) > 0 {
				t.Backs = append(t.Backs, u)
			} else {
				t.Charges = append(t.Charges, u)
			}
		}
		s.do(t)
		m.seen, m.epoch, last = t.Reply.Current, t.Reply.Epoch, t
		if t.Reply.Granted > 0 && t.Reply.Granted < t.Want {
			m.shortfall = t.Reply.Current
		}
		if m.known = append(m.known, t.Reply.Bucket); len(m.known) > 3 {
			m.known = m.known[1:]
		}
	}
}

// randomTurns asks for turns spaced as closely as commands arrive.
func (s *stage) randomTurns() {
	r := s.random
	for range s.cfg.Commands {
		if s.cfg.Advance != nil {
			s.cfg.Advance(time.Duration(r.Int64N(500)-50) * time.Microsecond)
		}
		s.do(&store.Turn{
			Outcome: store.Outcome{Key: s.key("t")}, Spacing: time.Duration(1+r.Int64N(200)) * time.Microsecond,
			Need: 1 + r.Int64N(3), Want: r.Int64N(8), Within: time.Duration(r.Int64N(2000)) * time.Microsecond,
		})
	}
}

// randomTokens asks for units of a bucket that gains them about as fast as commands take them, and
// whose rate changes.
func (s *stage) randomTokens() {
	r := s.random
	for range s.cfg.Commands {
		if s.cfg.Advance != nil {
			s.cfg.Advance(time.Duration(r.Int64N(500)-50) * time.Microsecond)
		}
		c := &store.Tokens{
			Outcome: store.Outcome{Key: s.key("b")}, Spacing: 100 * time.Microsecond, Unit: 99_999.5,
			Need: 1 + r.Int64N(3), Want: r.Int64N(12), Hold: time.Duration(r.Int64N(200)) * time.Microsecond,
			Within: time.Duration(r.Int64N(2000)) * time.Microsecond,
		}
		switch r.IntN(50) {
		case 0:
			c.Spacing, c.Unit = 33333*time.Nanosecond, 1e5/3
		case 1:
			c.Need, c.Within = 20, time.Second // a debt
		}
		s.do(c)
	}
}

// randomPermits makes members join, ask, give back and fall silent.
func (s *stage) randomPermits() {
	r := s.random
	var last *store.Permits
	for range s.cfg.Commands {
		if s.cfg.Advance != nil {
			s.cfg.Advance(time.Duration(r.Int64N(500)-20) * time.Millisecond)
		}
		if last != nil && r.IntN(10) == 0 {
			again := *last
			s.do(&again)
			continue
		}
		last = &store.Permits{
			Outcome: store.Outcome{Key: s.key("p")}, Caller: s.caller(1 + r.Int64N(5)), Limit: []int64{20, 20, 9}[r.IntN(3)],
			Claim: max(0, r.Int64N(12)-6), Want: r.Int64N(20), Expiry: time.Duration(1+r.Int64N(2000)) * time.Millisecond,
		}
		last.Need = last.Claim + r.Int64N(5)
		s.do(last)
		s.do(&store.Presence{
			Outcome: store.Outcome{Key: s.key("m")}, Caller: s.caller(1 + r.Int64N(5)), Expiry: last.Expiry, Leave: r.IntN(6) == 0,
		})
	}
}
