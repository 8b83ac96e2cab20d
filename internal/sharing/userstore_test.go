package sharing_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/sharing"
)

// custom is a store with user code.
type custom func(context.Context, []store.Command)

func (custom) Shard(string) int { return 0 }

func (f custom) Do(ctx context.Context, batch []store.Command) { f(ctx, batch) }

// starting is a custom store that replies asynchronously.
type starting struct{ custom }

func (s starting) Start(ctx context.Context, batch []store.Command, done func()) {
	s.custom(ctx, batch)
	done()
}

// A store that violates its contract counts as unreachable, and each member has its share.
// known bug 175
func TestStoreThatIsNone(t *testing.T) {
	replies := func(take store.TakeReply) custom {
		return func(_ context.Context, batch []store.Command) {
			for _, c := range batch {
				if c, ok := c.(*store.Take); ok {
					c.Reply = take
				}
			}
		}
	}
	now := time.Unix(1_800_000_000, 0)
	good := store.TakeReply{Granted: 1, Bucket: 18_000_000_000, Current: 18_000_000_000, Left: time.Millisecond, Active: 1, Now: now.UnixNano(), Epoch: 1}
	bad := func(change func(*store.TakeReply)) custom {
		r := good
		change(&r)
		return replies(r)
	}
	for name, do := range map[string]custom{
		"panics":            func(context.Context, []store.Command) { panic("a store's mistake") },
		"panics with nil":   func(context.Context, []store.Command) { panic(nil) },
		"ends goroutine":    func(context.Context, []store.Command) { runtime.Goexit() },
		"never replies":     func(context.Context, []store.Command) {},
		"grants less":       bad(func(r *store.TakeReply) { r.Granted = -1 }),
		"grants too much":   bad(func(r *store.TakeReply) { r.Granted = 1 << 40 }),
		"grants the past":   bad(func(r *store.TakeReply) { r.Bucket-- }),
		"grants the future": bad(func(r *store.TakeReply) { r.Bucket += 11 }),
		"has no time":       bad(func(r *store.TakeReply) { r.Now = 0 }),
		"has no epoch":      bad(func(r *store.TakeReply) { r.Epoch = 0 }),
		"has no bucket":     bad(func(r *store.TakeReply) { r.Left = 0 }),
		"has no members":    bad(func(r *store.TakeReply) { r.Active = 0 }),
		"has all members":   bad(func(r *store.TakeReply) { r.Active = 1 << 40 }),
		"has a long bucket": bad(func(r *store.TakeReply) { r.Left = time.Hour }),
	} {
		stores := map[string]store.Store{"do": do, "start": starting{do}}
		if name == "ends goroutine" {
			delete(stores, "start") // that would be the caller's goroutine
		}
		for how, store := range stores {
			t.Run(name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m, err := sharing.Join(cluster.Config{Store: store, Clock: clocks.NewSystem(), Members: 4})
					if err != nil {
						t.Fatal(err)
					}
					defer m.Close()
					w := share(t, m, 100, cluster.Local)
					got := 0
					for range 200 {
						if n := fetch(t, m, w, 1); n.Got {
							got++
						}
						synctest.Wait()
					}
					if f := w.Stats(); got != 25 || !f.Unreachable || f.Requests > 20 {
						t.Fatalf("%d admitted, want 25; %+v", got, f)
					}
				})
			})
		}
	}
}

// A store may grant too much, but no lease holds more units than fit in it. known bug 200
func TestStoreThatGrantsTooMuch(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	m := join(t, starting{func(_ context.Context, batch []store.Command) {
		for _, c := range batch {
			switch c := c.(type) {
			case *store.Take:
				c.Reply = store.TakeReply{Granted: max(c.Need, c.Want), Bucket: 18_000_000_000, Current: 18_000_000_000, Left: 99 * time.Millisecond, Active: 1, Now: clock.Now(), Epoch: 1}
			case *store.Presence:
				c.Reply = store.PresenceReply{Now: clock.Now(), Members: 1}
			}
		}
	}}, clock)
	const most = 1 << 30
	w := share(t, m, most, cluster.Closed)
	for range 3 {
		if n := fetch(t, m, w, most); n.Got {
			defer w.Cancel(n.Token, most)
		}
		if leased := w.Stats().Leased; leased > most {
			t.Fatalf("%d units are leased", leased)
		}
	}
	clock.Advance(time.Millisecond)
	fetch(t, m, w, 1)
}

// A panic is logged with its stack, at most once a minute.
func TestPanicOfAStoreIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		store := custom(func(context.Context, []store.Command) { panic("a store's mistake") })
		m, err := sharing.Join(cluster.Config{Store: starting{store}, Clock: clocks.NewSystem(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		w := share(t, m, 100, cluster.Closed)
		for range 50 {
			fetch(t, m, w, 1)
			time.Sleep(time.Second)
		}
		m.Close()
		synctest.Wait()
		if n := strings.Count(log.String(), "a store's mistake"); n != 1 || !strings.Contains(log.String(), "userstore_test.go") {
			t.Errorf("logged %d times: %s", n, log.String())
		}
	})
}

// A store whose Do never returns counts as unreachable, is probed at a limited rate, and doesn't
// keep a member from leaving. known bug 175
func TestStoreThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		hanging := 0
		store := custom(func(context.Context, []store.Command) {
			mu.Lock()
			hanging++
			mu.Unlock()
			<-release
		})
		m, err := sharing.Join(cluster.Config{Store: store, Clock: clocks.NewSystem(), Members: 4})
		if err != nil {
			t.Fatal(err)
		}
		w := share(t, m, 100, cluster.Local)
		got := 0
		for range 200 {
			if n := fetch(t, m, w, 1); n.Got {
				got++
			}
		}
		if f := w.Stats(); !f.Unreachable || got < 25 || got > 50 {
			t.Errorf("%d admitted, %+v", got, f)
		}
		time.Sleep(time.Hour)
		mu.Lock()
		if hanging > 70 {
			t.Errorf("%d calls of a store that never returns", hanging)
		}
		mu.Unlock()
		begin := time.Now()
		m.Close()
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("Close took %v", took)
		}
		close(release)
		synctest.Wait()
	})
}

// A store that takes longer to connect than a call may wait is unreachable only until it has a
// connection: commands that no call waits for may take that long. known bug 181
func TestStoreThatIsSlowToConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := clocks.NewSystem()
		inner := cluster.NewMemory(clock)
		var connected atomic.Bool
		store := custom(func(ctx context.Context, batch []store.Command) {
			if !connected.Load() {
				select {
				case <-time.After(300 * time.Millisecond):
					connected.Store(true)
				case <-ctx.Done():
					return
				}
			}
			inner.Do(ctx, batch)
		})
		m, err := sharing.Join(cluster.Config{Store: store, Clock: clock, Members: 4})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		w := share(t, m, 100, cluster.Local)
		begin := time.Now()
		for time.Since(begin) < 3*time.Second {
			asked := time.Now()
			fetch(t, m, w, 1)
			if took := time.Since(asked); took > cluster.DefaultTimeout {
				t.Fatalf("a call waited for %v", took)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if f := w.Stats(); f.Unreachable {
			t.Errorf("the store is still away: %+v", f)
		}
	})
}

// lost is a store that at times can't locate a key.
type lost struct {
	store.Store
	panics atomic.Bool
}

func (s *lost) Shard(key string) int {
	if s.panics.Load() {
		panic("no idea where " + key + " is")
	}
	return s.Store.Shard(key)
}

// lostAtOnce is its asynchronous form.
type lostAtOnce struct{ *lost }

func (s lostAtOnce) Start(ctx context.Context, batch []store.Command, done func()) {
	s.Do(ctx, batch)
	done()
}

// A store that panics when asked to locate a key counts as unreachable until it can: each member
// has its share. known bug 175
func TestStoreThatCannotSayWhereAKeyIs(t *testing.T) {
	for _, atOnce := range []bool{false, true} {
		t.Run(fmt.Sprint("at once ", atOnce), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				clock := clocks.NewSystem()
				store := &lost{Store: cluster.NewMemory(clock)}
				store.panics.Store(true)
				cfg := cluster.Config{Store: store, Clock: clock, Members: 4, Logger: slog.New(slog.NewTextHandler(&log, nil))}
				if atOnce {
					cfg.Store = lostAtOnce{store}
				}
				m, err := sharing.Join(cfg)
				if err != nil {
					t.Fatal(err)
				}
				w := share(t, m, 100, cluster.Local)
				other, err := m.Semaphore("other", sharing.SemaphoreConfig{Threshold: 8, Rule: cluster.Rule{Scope: cluster.Global}})
				if err != nil {
					t.Fatal(err)
				}
				calls := func(n int) (got int) {
					for range n {
						needs := []sharing.Need{{Limit: w, Units: 1}, {Limit: other, Units: 1}}
						if err := m.Fetch(t.Context(), w.Timeout(), needs); err != nil {
							t.Fatal(err)
						}
						if needs[0].Got {
							got++
						}
						if needs[1].Got {
							other.Release(0, 1)
						}
						synctest.Wait()
					}
					return got
				}
				if got, f := calls(200), w.Stats(); got != 25 || !f.Unreachable || f.Requests > 20 {
					t.Errorf("%d admitted, want 25; %+v", got, f)
				}
				store.panics.Store(false)
				time.Sleep(3 * time.Second)
				calls(5)
				time.Sleep(2 * time.Second)
				if got, f := calls(150), w.Stats(); got != 100 || f.Unreachable {
					t.Errorf("%d admitted when it is back, want 100; %+v", got, f)
				}
				m.Close()
				synctest.Wait()
				if n := strings.Count(log.String(), "no idea where"); n != 1 {
					t.Errorf("logged %d times: %s", n, log.String())
				}
			})
		})
	}
}

// hesitant is a store that locates a key only when asked again.
type hesitant struct {
	*cluster.Memory
	asked map[string]int // since the key's latest command
	most  int            // commands in a batch
}

func (s *hesitant) Shard(key string) int {
	if s.asked[key]++; s.asked[key] <= 2 {
		panic("no idea where " + key + " is")
	}
	return 0
}

func (s *hesitant) Start(ctx context.Context, batch []store.Command, done func()) {
	s.most = max(s.most, len(batch))
	for _, c := range batch {
		s.asked[c.Result().Key] = 1
	}
	s.Memory.Start(ctx, batch, done)
}

// Keys with unknown shards are never in the same batch. known bug 175
func TestKeysThatMayBeAnywhere(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	store := &hesitant{Memory: cluster.NewMemory(clock), asked: map[string]int{}}
	m := join(t, store, clock)
	all := shareMany(t, m, 10, 1000)
	for range 10 {
		var needs []sharing.Need
		for _, w := range all {
			needs = append(needs, sharing.Need{Limit: w, Units: 30})
		}
		if err := m.Fetch(t.Context(), 0, needs); err != nil {
			t.Fatal(err)
		}
		for i := range needs {
			if !needs[i].Got {
				t.Fatalf("window %d: %+v", i, needs[i])
			}
		}
		clock.Advance(50 * time.Millisecond)
	}
	if store.most != 1 {
		t.Errorf("%d commands in a batch, of keys that may be anywhere", store.most)
	}
}

// ahead is a clock that is ahead of another.
type ahead struct {
	clocks.Clock
	by time.Duration
}

func (a ahead) Now() int64 { return a.Clock.Now() + int64(a.by) }

// Units that a member admitted before it first reached the store count there, regardless of the
// store's clock. known bug 176
func TestChargedByTheTimeOfTheStore(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, 0, time.Hour} {
		clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
		memory := cluster.NewMemory(ahead{clock, by})
		away := true
		m := join(t, starting{func(ctx context.Context, batch []store.Command) {
			if away {
				down{}.Do(ctx, batch)
				return
			}
			memory.Do(ctx, batch)
		}}, clock)
		shape := tenth
		shape.Strict = true
		w, err := m.Window("orders", sharing.WindowConfig{Shape: shape, Threshold: 100, Rule: cluster.Rule{Scope: cluster.Global}})
		if err != nil {
			t.Fatal(err)
		}
		const steps = 50 // per second
		var admitted []int
		for step := range 4 * steps {
			away = step < steps*3/2
			n := 0
			for range 20 {
				if fetch(t, m, w, 1).Got {
					n++
				}
			}
			admitted = append(admitted, n)
			clock.Advance(time.Second / steps)
		}
		in, most := 0, 0
		for i, n := range admitted {
			if in += n; i >= steps {
				in -= admitted[i-steps]
			}
			most = max(most, in)
		}
		if f := w.Stats(); most > 100 || most < 90 || f.Unreachable {
			t.Errorf("a store that is %v ahead: %d of 100 admitted in a second, %+v", by, most, f)
		}
	}
}
