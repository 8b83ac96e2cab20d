package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/stat"
)

var cases = []struct {
	name  string
	moves bool // needs a movable clock
	run   func(*stage)
}{
	{name: "no more than the limit", run: func(s *stage) {
		w := s.window("w", s.hours(2, false), 10)
		s.equal("granted", w.take(1, 1, 8), 8)
		s.equal("beyond the limit", w.take(1, 3, 3), 0)
		s.equal("the remainder", w.take(1, 1, 5), 2)
		s.equal("of nothing", w.take(1, 1, 1), 0)
	}},
	{name: "the need comes before the share", run: func(s *stage) {
		w := s.window("w", s.hours(2, false), 100)
		for member := range int64(4) {
			w.seen = 0 // as by members that see this bucket for the first time
			w.take(1+member, 1, 1)
		}
		s.equal("a quarter of the room", w.take(1, 1, 100), 24)
		s.equal("a need", w.take(2, 50, 100), 50)
	}},
	{name: "a returned unit counts once", run: func(s *stage) {
		w := s.window("w", s.hours(2, true), 10)
		s.equal("granted", w.take(1, 10, 10), 10)
		back := w.command(1, 0, 0)
		back.Backs = []store.Units{{Bucket: w.seen, Units: 4}}
		w.send(back)
		w.send(back) // as a proxy that retries would
		s.equal("after units were returned", w.take(1, 1, 10), 4)
		s.equal("more than once", w.take(1, 1, 10), 0)
	}},
	{name: "returned units that arrive after a later command don't count", run: func(s *stage) {
		w := s.window("w", s.hours(2, true), 10)
		s.equal("granted", w.take(1, 10, 10), 10)
		late := w.command(1, 0, 0)
		late.Backs = []store.Units{{Bucket: w.seen, Units: 4}}
		w.take(1, 1, 1)
		w.send(late)
		s.equal("room", w.take(1, 1, 10), 0)
	}},
	{name: "returned units of another epoch don't count", run: func(s *stage) {
		w := s.window("w", s.hours(2, true), 10)
		s.equal("granted", w.take(1, 10, 10), 10)
		back := w.command(1, 0, 0)
		back.Epoch++
		back.Backs = []store.Units{{Bucket: w.seen, Units: 4}}
		w.send(back)
		s.equal("room", w.take(1, 1, 10), 0)
	}},
	{name: "returned units are at most what the bucket holds", run: func(s *stage) {
		w := s.window("w", s.hours(2, true), 10)
		s.equal("granted", w.take(1, 3, 3), 3)
		back := w.command(1, 0, 0)
		back.Backs = []store.Units{{Bucket: w.seen, Units: 5}, {Bucket: w.seen, Units: 5}, {Bucket: w.seen - 1, Units: 5}, {Bucket: w.seen - 100, Units: 5}}
		w.send(back)
		s.equal("room", w.take(1, 1, 100), 10)
	}},
	{name: "a charge counts beyond the limit", run: func(s *stage) {
		w := s.window("w", s.hours(3, false), 10)
		w.take(1, 1, 1)
		charge := w.command(1, 1, 1)
		charge.Charges = []store.Units{{Bucket: w.seen, Units: 20}, {Bucket: w.seen + 1, Units: 1}, {Bucket: w.seen - 2, Units: 1}, {Bucket: w.seen - 3, Units: 7}}
		s.equal("granted with it", w.send(charge).Granted, 0)
		back := w.command(1, 1, 100)
		back.Backs = []store.Units{{Bucket: w.seen, Units: 22}}
		s.equal("granted when the unit is back", w.send(back).Granted, 9)
	}},
	{name: "a member that doesn't know the epoch charges first", run: func(s *stage) {
		w := s.window("w", s.hours(2, false), 10)
		w.take(1, 1, 1)
		stranger := w.command(2, 1, 1)
		stranger.Epoch++
		s.equal("granted", w.send(stranger).Granted, 0)
		s.equal("granted then", w.take(2, 1, 1), 1)
	}},
	{name: "ahead is the next bucket", run: func(s *stage) {
		w := s.window("w", s.hours(2, false), 10)
		s.equal("now", w.take(1, 1, 4), 4)
		next := w.command(1, 1, 100)
		next.Ahead = w.seen + 1
		r := w.send(next)
		s.equal("then", r.Granted, 6)
		s.equal("its bucket", r.Bucket, r.Current+1)
		s.equal("room now", w.take(1, 1, 100), 0)
	}},
	{name: "a call that may wait borrows", run: func(s *stage) {
		w := s.window("w", s.hours(2, true), 10)
		w.take(1, 10, 10)
		c := w.command(1, 3, 100)
		c.Borrow = time.Hour
		s.equal("too soon", w.send(c).Granted, 0)
		c = w.command(1, 3, 100)
		c.Borrow = 10 * time.Hour
		s.equal("beyond what can be borrowed from", w.send(c).Granted, 0)
		w = s.window("plain", s.hours(2, false), 10)
		w.take(1, 10, 10)
		c = w.command(1, 3, 100)
		c.Borrow = 10 * time.Hour
		r := w.send(c)
		s.equal("granted", r.Granted, 3)
		s.equal("its bucket", r.Bucket, r.Current+2)
		s.equal("a probe", w.take(1, 1, 1), 0)
	}},
	{name: "a window of the most buckets", run: func(s *stage) {
		w := s.window("w", store.Ring{Shape: stat.Shape{Interval: stat.MaxInterval, Buckets: stat.MaxBuckets, Strict: true}}, 10)
		s.equal("granted", w.take(1, 4, 4), 4)
		far := w.command(1, 1, 2)
		far.Ahead = w.seen + stat.MaxBuckets
		s.equal("in the last bucket that can be borrowed from", w.send(far).Granted, 2)
		s.equal("the remainder", w.take(1, 1, 100), 4)
		s.equal("of nothing", w.take(1, 1, 1), 0)
	}},
	{name: "keys are independent, in one batch", run: func(s *stage) {
		ring := s.hours(2, false)
		var batch []store.Command
		shard := 0
		for i := range 64 {
			w := s.window(string(rune('A'+i)), ring, int64(i))
			if i == 0 {
				shard = s.store.Shard(w.name)
			}
			if s.store.Shard(w.name) == shard {
				batch = append(batch, w.command(1, 1, 100))
			}
		}
		s.do(batch...)
	}},
	{name: "many members at once", run: func(s *stage) {
		ring := s.hours(2, false)
		key := s.key("w")
		var granted atomic.Int64
		var all sync.WaitGroup
		for member := range int64(8) {
			all.Go(func() {
				for seq := range int64(25) {
					t := &store.Take{
						Outcome: store.Outcome{Key: key}, Caller: store.Caller{Member: 1 + member, Seq: 1 + seq}, Ring: ring,
						Limit: 100, Need: 1, Want: 1, NewEpoch: 1 + member,
					}
					s.store.Do(s.Context(), []store.Command{t})
					if t.Err != nil {
						s.Error(t.Err)
						return
					}
					granted.Add(t.Reply.Granted)
				}
			})
		}
		all.Wait()
		s.equal("granted", granted.Load(), 100)
	}},
	{name: "a key of another kind is reported", run: func(s *stage) {
		w := s.window("k", s.hours(2, false), 10)
		w.take(1, 1, 1)
		for _, c := range []store.Command{
			&store.Turn{Outcome: store.Outcome{Key: w.name}, Spacing: time.Second, Need: 1},
			&store.Tokens{Outcome: store.Outcome{Key: w.name}, Unit: 1e9, Spacing: time.Second, Need: 1},
			&store.Permits{Outcome: store.Outcome{Key: w.name}, Caller: s.caller(1), Limit: 1, Need: 1, Want: 1, Expiry: time.Second},
			&store.Presence{Outcome: store.Outcome{Key: w.name}, Caller: s.caller(1), Expiry: time.Second},
		} {
			s.store.Do(s.Context(), []store.Command{c})
			if err := c.Result().Err; !errors.Is(err, store.ErrForeign) {
				s.Errorf("%T: %v", c, err)
			}
		}
		s.equal("granted after it", w.take(1, 1, 1), 1)
		key := store.Outcome{Key: s.key("b")}
		s.do(&store.Tokens{Outcome: key, Unit: 1e9, Spacing: time.Second, Need: 1})
		turn := &store.Turn{Outcome: key, Spacing: time.Second, Need: 1}
		if s.store.Do(s.Context(), []store.Command{turn}); !errors.Is(turn.Err, store.ErrForeign) {
			s.Errorf("a turn of a bucket: %v", turn.Err)
		}
	}},
	{name: "every command gets its reply, even after the deadline", run: func(s *stage) {
		w := s.window("k", s.hours(2, false), 10)
		t := w.command(1, 1, 1)
		s.store.Do(gone(), []store.Command{t})
		if (t.Err == nil) == (t.Reply == store.TakeReply{}) {
			s.Errorf("error %v and reply %+v", t.Err, t.Reply)
		}
	}},
	{name: "turns are spaced", run: func(s *stage) {
		turn := func(need, want int64, within time.Duration) store.TurnReply {
			c := &store.Turn{Outcome: store.Outcome{Key: s.key("t")}, Spacing: time.Hour, Need: need, Want: want, Within: within}
			s.do(c)
			return c.Reply
		}
		s.equal("the first", int64(turn(3, 3, 0).Wait), 0)
		s.equal("no time to wait", turn(1, 1, time.Minute).Granted, 0)
		s.equal("some in a row", turn(1, 5, 2*time.Hour).Granted, 5)
		s.equal("after those", int64(turn(2, 2, 10*time.Hour).Wait.Round(time.Hour)), int64(7*time.Hour))
	}},
	{name: "a bucket gives its burst at once", run: func(s *stage) {
		take := func(unit float64, need, want int64, within time.Duration) store.TurnReply {
			c := &store.Tokens{Outcome: store.Outcome{Key: s.key("b")}, Unit: unit * float64(time.Hour), Spacing: time.Duration(unit * float64(time.Hour)),
				Need: need, Want: want, Within: within}
			s.do(c)
			return c.Reply
		}
		s.equal("more than it holds", take(1, 11, 11, 9*time.Hour+59*time.Minute).Granted, 0)
		r := take(1, 1, 4, 9*time.Hour+59*time.Minute)
		s.equal("some", r.Granted, 4)
		s.equal("the first", int64(r.Wait), 0)
		s.equal("more than the remainder", take(1, 7, 9, 9*time.Hour+59*time.Minute).Granted, 0)
		s.equal("the remainder", take(1, 6, 9, 9*time.Hour+59*time.Minute).Granted, 6)
		r = take(1, 1, 9, 9*time.Hour+59*time.Minute)
		s.equal("of nothing", r.Granted, 0)
		s.equal("the next turn", int64(r.Wait.Round(time.Hour)), int64(10*time.Hour))
		s.equal("at half the rate", int64(take(2, 1, 1, 0).Wait.Round(time.Hour)), int64(20*time.Hour))
		s.equal("a debt", take(1, 3, 3, 50*24*time.Hour).Granted, 3)
		s.equal("after it", int64(take(1, 1, 1, 0).Wait.Round(time.Hour)), int64(13*time.Hour))
	}},
	{name: "the turns of a bucket that is full may be used later", run: func(s *stage) {
		take := func(need int64) store.TurnReply {
			c := &store.Tokens{Outcome: store.Outcome{Key: s.key("b")}, Unit: float64(time.Hour), Spacing: time.Hour, Need: need,
				Hold: 30 * time.Minute, Within: 119 * time.Minute}
			s.do(c)
			return c.Reply
		}
		s.equal("more than it holds", take(3).Granted, 0)
		r := take(1)
		s.equal("granted", r.Granted, 1)
		s.equal("the first", int64(r.Wait), 0)
		r = take(1)
		s.equal("one more", r.Granted, 1)
		s.equal("after that was used", int64(r.Wait.Round(time.Minute)), int64(90*time.Minute))
		s.equal("the next", int64(take(1).Wait.Round(time.Minute)), int64(150*time.Minute))
	}},
	{name: "permits are absolute", run: func(s *stage) {
		ask := func(member, claim, need, want int64) *store.Permits {
			return &store.Permits{Outcome: store.Outcome{Key: s.key("p")}, Caller: s.caller(member), Limit: 10, Claim: claim,
				Need: need, Want: want, Expiry: time.Hour}
		}
		held := func(c *store.Permits) int64 {
			s.do(c)
			return c.Reply.Held
		}
		s.equal("the first", held(ask(1, 0, 1, 4)), 4)
		more := ask(1, 4, 6, 6)
		s.equal("more", held(more), 6)
		s.equal("sent twice", held(more), 6)
		s.equal("a need that doesn't fit", held(ask(2, 0, 5, 5)), 0)
		s.equal("a need that fits", held(ask(2, 0, 4, 8)), 4)
		s.equal("calls that run", held(ask(3, 5, 5, 5)), 5)
		late := ask(1, 0, 0, 0)
		s.equal("given back", held(ask(1, 2, 2, 2)), 2)
		s.equal("a command that arrives after a later one", held(late), 2)
	}},
	{name: "members come and go", run: func(s *stage) {
		say := func(member int64, leave bool) int64 {
			c := &store.Presence{Outcome: store.Outcome{Key: s.key("m")}, Caller: s.caller(member), Expiry: time.Hour, Leave: leave}
			s.do(c)
			return c.Reply.Members
		}
		s.equal("one", say(1, false), 1)
		s.equal("two", say(2, false), 2)
		s.equal("the same", say(2, false), 2)
		s.equal("one leaves", say(1, true), 1)
		s.equal("the other leaves", say(2, true), 0)
	}},
	{name: "random takes", run: func(s *stage) {
		for _, buckets := range []int{1, 2, 10} {
			for _, strict := range []bool{false, true} {
				s.randomTakes(stat.Shape{Interval: 20 * time.Millisecond, Buckets: buckets, Strict: strict})
			}
		}
	}},
	{name: "random turns", run: (*stage).randomTurns},
	{name: "random tokens", run: (*stage).randomTokens},
	{name: "random permits", run: (*stage).randomPermits},

	{name: "a clock that is set back stands still", moves: true, run: func(s *stage) {
		ring := store.Ring{Shape: stat.Shape{Interval: time.Second, Buckets: 10}}
		w := s.window("w", ring, 10)
		w.take(1, 5, 5)
		head := w.seen
		s.cfg.Advance(-500 * time.Millisecond)
		r := w.send(w.command(1, 5, 5))
		s.equal("granted", r.Granted, 5)
		s.equal("in the bucket that was current", r.Bucket, head)
		s.equal("which lasts", int64(r.Left), ring.Begins(head+1)-r.Now)
	}},
	{name: "a later bucket begins when a clock that was set back gets there", moves: true, run: func(s *stage) {
		ring := store.Ring{Shape: stat.Shape{Interval: time.Second, Buckets: 2}}
		w := s.window("w", ring, 10)
		w.take(1, 6, 6)
		c := w.command(1, 6, 6)
		c.Ahead = w.seen + 1
		s.equal("ahead, where nothing fits", w.send(c).Granted, 0)
		s.cfg.Advance(-400 * time.Millisecond)
		borrow := func(wait time.Duration) store.TakeReply {
			c := w.command(1, 6, 6)
			c.Borrow = wait
			return w.send(c)
		}
		second := time.Duration(ring.Begins(c.Reply.Current+2) - w.send(w.command(1, 0, 0)).Now)
		s.equal("borrowed with a shorter wait", borrow(second).Granted, 0)
		s.equal("borrowed", borrow(second+1).Granted, 6)
	}},
	{name: "a repeated command never gives a key an epoch that it had", moves: true, run: func(s *stage) {
		w := s.window("w", store.Ring{Shape: stat.Shape{Interval: time.Second, Buckets: 2}}, 10)
		c := w.command(1, 1, 1)
		had := map[int64]bool{w.send(c).Epoch: true}
		for range 3 {
			s.cfg.Advance(-time.Hour)
			epoch := w.send(c).Epoch // as a proxy that retries would
			if had[epoch] {
				s.Fatalf("epoch %d for the second time", epoch)
			}
			had[epoch] = true
		}
	}},
	{name: "a clock that is set back a lot forgets nothing", moves: true, run: func(s *stage) {
		ring := store.Ring{Shape: stat.Shape{Interval: time.Second, Buckets: 10, Strict: true}}
		w := s.window("w", ring, 10)
		w.take(1, 3, 3)
		s.cfg.Advance(150 * time.Millisecond)
		w.take(1, 3, 3)
		epoch := w.epoch
		s.cfg.Advance(-time.Hour)
		if c := w.command(1, 1, 100); w.send(c).Granted != 0 || w.epoch == epoch {
			s.Fatalf("%s", text(c))
		}
		s.equal("the remainder, as three may yet be spent", w.take(1, 1, 100), 1)
		s.cfg.Advance(time.Second)
		s.equal("while they count", w.take(1, 1, 100), 0)
		s.cfg.Advance(100 * time.Millisecond)
		s.equal("while the units count that were spent later", w.take(1, 1, 100), 7)
		s.cfg.Advance(100 * time.Millisecond)
		s.equal("after it", w.take(1, 1, 100), 3)
	}},
	{name: "units leased from the current bucket count as long as they may be spent", moves: true, run: func(s *stage) {
		ring := store.Ring{Shape: stat.Shape{Interval: time.Second, Buckets: 2}}
		w := s.window("w", ring, 5)
		s.cfg.Advance(time.Duration(ring.Begins(1+w.send(w.command(1, 0, 0)).Current)-w.send(w.command(1, 0, 0)).Now) + time.Millisecond)
		s.equal("now", w.take(1, 4, 4), 4)             // until 499 ms from now
		s.cfg.Advance(-time.Hour - 2*time.Millisecond) // 1 ms before a bucket ends
		w.send(w.command(1, 0, 0))
		s.cfg.Advance(501 * time.Millisecond)
		s.equal("a moment after it was spent", w.take(1, 5, 5), 0)
		s.cfg.Advance(500 * time.Millisecond)
		s.equal("a bucket later", w.take(1, 5, 5), 5)
	}},
	{name: "large counts", run: func(s *stage) {
		const most = store.MostNumber - 1
		w := s.window("w", s.hours(1, false), most)
		s.equal("granted", w.take(1, most-1, most-1), most-1)
		s.equal("the remainder", w.take(2, 1, 1), 1)
		s.equal("beyond it", w.take(1, 1, 1), 0)
	}},
	{name: "a clock that is set back a lot forgets nothing in later buckets", moves: true, run: func(s *stage) {
		ring := store.Ring{Shape: stat.Shape{Interval: time.Second, Buckets: 2, Strict: true}}
		w := s.window("w", ring, 5)
		w.send(w.command(1, 0, 0))
		c := w.command(1, 4, 4)
		c.Ahead = w.seen + 1
		s.equal("ahead", w.send(c).Granted, 4)
		s.cfg.Advance(-1500 * time.Millisecond) // just the ring
		w.send(w.command(1, 0, 0))
		s.equal("while all counts", w.take(1, 1, 1), 0)
		s.cfg.Advance(1500 * time.Millisecond) // they may have been spent half a second ago
		s.equal("from the later bucket", w.take(1, 1, 5), 1)
		s.cfg.Advance(1500 * time.Millisecond)
		s.equal("after it", w.take(1, 1, 5), 5)
	}},
	{name: "borrowed units outlive their key's idle time", moves: true, run: func(s *stage) {
		ring := store.Ring{Shape: stat.Shape{Interval: time.Second, Buckets: 2}}
		w := s.window("w", ring, 10)
		w.take(1, 10, 10)
		c := w.command(1, 10, 10)
		c.Borrow = time.Minute
		r := w.send(c)
		s.equal("granted", r.Granted, 10)
		s.cfg.Advance(time.Duration(r.Bucket-r.Current) * ring.Shape.Width())
		s.equal("when the borrowed bucket is current", w.take(1, 1, 1), 0)
		s.cfg.Advance(ring.Shape.Width())
		s.equal("while it counts", w.take(1, 1, 1), 0)
		s.cfg.Advance(ring.Shape.Width())
		s.equal("after it", w.take(1, 1, 1), 1)
	}},
	{name: "an unused key expires, and returns with another epoch", moves: true, run: func(s *stage) {
		ring := store.Ring{Shape: stat.Shape{Interval: time.Second, Buckets: 10}}
		w := s.window("w", ring, 10)
		w.take(1, 10, 10)
		epoch := w.epoch
		s.cfg.Advance(1300 * time.Millisecond)
		w.epoch = 0
		s.equal("granted", w.take(1, 10, 10), 10)
		if w.epoch == epoch {
			s.Fatal("the epoch is the old one")
		}
	}},
	{name: "turns that are far apart are kept", moves: true, run: func(s *stage) {
		spacing := 24 * time.Hour // the longest
		turn := func(need int64) store.TurnReply {
			c := &store.Turn{Outcome: store.Outcome{Key: s.key("t")}, Spacing: spacing, Need: need}
			s.do(c)
			return c.Reply
		}
		s.equal("the first", turn(1).Granted, 1)
		for range 3 {
			s.cfg.Advance(2 * time.Minute)
			s.equal("minutes later", turn(1).Granted, 0)
		}
		s.cfg.Advance(spacing - 6*time.Minute)
		s.equal("a spacing later", turn(1).Granted, 1)
		s.cfg.Advance(51 * spacing)
		s.equal("52 units, too soon", int64(turn(52).Wait), int64(spacing))
		spacing = time.Hour
		s.cfg.Advance(52 * 24 * time.Hour)
		s.equal("many units", turn(1000).Granted, 1000)
		s.cfg.Advance(999 * spacing)
		s.equal("as many, too soon", int64(turn(1000).Wait), int64(spacing))
	}},
	{name: "a bucket is kept until it is full", moves: true, run: func(s *stage) {
		take := func(need int64) int64 {
			c := &store.Tokens{Outcome: store.Outcome{Key: s.key("b")}, Unit: float64(24 * time.Hour), Spacing: 24 * time.Hour, Need: need, Within: 4 * 24 * time.Hour}
			s.do(c)
			return c.Reply.Granted
		}
		s.equal("all", take(5), 5)
		for range 3 {
			s.cfg.Advance(2 * time.Minute)
			s.equal("minutes later", take(1), 0)
		}
		s.cfg.Advance(24*time.Hour - 6*time.Minute)
		s.equal("a day later", take(1), 1)
		s.cfg.Advance(-time.Hour)
		s.equal("when the clock was set back", take(1), 0)
		s.cfg.Advance(23 * time.Hour)
		s.equal("an hour before the next", take(1), 0)
		s.cfg.Advance(time.Hour)
		s.equal("the next", take(1), 1)
	}},
	{name: "permits of a member that is gone expire", moves: true, run: func(s *stage) {
		ask := func(member int64) int64 {
			c := &store.Permits{Outcome: store.Outcome{Key: s.key("p")}, Caller: s.caller(member), Limit: 10, Need: 10, Want: 10, Expiry: time.Second}
			s.do(c)
			return c.Reply.Held
		}
		s.equal("one", ask(1), 10)
		s.cfg.Advance(999 * time.Millisecond)
		s.equal("the other", ask(2), 0)
		s.cfg.Advance(time.Millisecond)
		s.equal("the other then", ask(2), 10)
	}},
}
