package sharing_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/sharing"
)

// space returns a member's throttle with some turns per interval.
func space(t *testing.T, m *sharing.Member, turns float64, in time.Duration, on cluster.OnFailure) *sharing.Throttle {
	t.Helper()
	g, err := m.Throttle("turns", sharing.ThrottleConfig{Interval: in, Threshold: turns, Rule: cluster.Rule{Scope: cluster.Global, OnFailure: on}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// turn makes a call, and reports whether it got its turn.
func turn(t *testing.T, m *sharing.Member, g *sharing.Throttle, now, units int64, maxWait time.Duration) bool {
	t.Helper()
	switch a, _ := g.Ask(now, units, maxWait); a {
	case sharing.Fits:
		_, ok := g.TryTake(now, units, maxWait)
		return ok
	case sharing.Refuses:
		return false
	}
	need := []sharing.Need{{Limit: g, Units: units, MaxWait: maxWait}}
	if err := m.Fetch(t.Context(), g.Timeout(), need); err != nil {
		t.Fatal(err)
	}
	return need[0].Got
}

// The store refuses a call whose MaxWait ends just before its turn. The member can't tell, since
// its clock may be slower, but it doesn't ask again. known bug 202
func TestTurnThatIsAlmostInTime(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	store := cluster.NewMemory(clock)
	other, m := join(t, store, clock), join(t, store, clock)
	for range 2 { // the first call runs at once, the second in 20 ms
		if !turn(t, other, space(t, other, 1000, time.Second, cluster.Closed), clock.Now(), 20, time.Second) {
			t.Fatal("a call has no turn")
		}
	}
	g := space(t, m, 1000, time.Second, cluster.Closed)
	if turn(t, m, g, clock.Now(), 1, 21*time.Millisecond-5*time.Microsecond) {
		t.Error("a call waits longer than it may")
	}
	if f := g.Stats(); f.Requests != 1 {
		t.Errorf("%d requests for one call", f.Requests)
	}
	if !turn(t, m, g, clock.Now(), 1, 21*time.Millisecond) {
		t.Error("a call that may wait until its turn is refused")
	}
}

// Turns may be hours apart: no member takes one early.
func TestTurnsThatAreFarApart(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	store := cluster.NewMemory(clock)
	ran := 0
	for range 3 {
		m := join(t, store, clock)
		g := space(t, m, 6, time.Hour, cluster.Closed)
		if turn(t, m, g, clock.Now(), 1, 0) {
			ran++
		}
		clock.Advance(time.Minute + time.Second)
	}
	if ran != 1 {
		t.Fatalf("%d calls ran in three minutes, at 6 per hour", ran)
	}
}

// redisTurns is a store that only meets the minimum of the contract: Redis counts to 2^53.
type redisTurns struct{ *cluster.Memory }

func (s redisTurns) Start(ctx context.Context, batch []store.Command, done func()) {
	for _, c := range batch {
		if c, ok := c.(*store.Turn); ok && max(c.Need, c.Want) > (1<<52-1)/int64(c.Spacing) {
			c.Err = store.ErrNotExecuted
			done()
			return
		}
	}
	s.Memory.Start(ctx, batch, done)
}

// A call of any number of units is refused if its turn is too far away, with the store and without.
// Such calls don't make the store look unreachable.
func TestTurnsOfManyUnits(t *testing.T) {
	for _, units := range []int64{2, 4096, 8192, 65536, 1 << 20} {
		for _, up := range []bool{true, false} {
			t.Run(fmt.Sprint(units, " units, up: ", up), func(t *testing.T) {
				clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
				store := store.Store(down{})
				if up {
					store = redisTurns{cluster.NewMemory(clock)}
				}
				m, err := sharing.Join(cluster.Config{Store: store, Clock: clock, Namespace: "test", Members: 1 << 20, Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				g := space(t, m, 24, 24*time.Hour, cluster.Local)
				ran := 0
				for range 10 {
					clock.Advance(time.Second)
					if turn(t, m, g, clock.Now(), units, time.Minute) {
						ran++
					}
				}
				if a, _ := g.Look(clock.Now(), units, time.Minute); a == sharing.Fits || ran != 1 {
					t.Fatalf("%d of 10 calls ran, only the first should; the next call: %v", ran, a)
				}
				other := join(t, store, clock)
				if g := space(t, other, 24, 24*time.Hour, cluster.Closed); turn(t, other, g, clock.Now(), units, time.Minute) {
					t.Fatal("a call of another member ran")
				}
				if f := g.Stats(); f.Unreachable == up {
					t.Fatalf("%+v", f)
				}
			})
		}
	}
}

// Without the store, a member has its share of the turns and knows the next one; with onFailure
// closed, it doesn't.
func TestRetryAfterWithoutTheStore(t *testing.T) {
	for on, known := range map[cluster.OnFailure]bool{cluster.Local: true, cluster.Open: true, cluster.Closed: false} {
		t.Run(on.String(), func(t *testing.T) {
			clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
			m, err := sharing.Join(cluster.Config{Store: down{}, Clock: clock, Members: 10, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			const maxWait = 200 * time.Millisecond
			g := space(t, m, 10, time.Second, on)
			for range 20 {
				turn(t, m, g, clock.Now(), 1, 0)
				clock.Advance(20 * time.Millisecond)
			}
			for _, units := range []int64{1, 1, 3, 2} {
				wait, ok := g.RetryAfter(clock.Now(), units, maxWait)
				if ok != known {
					t.Fatalf("known: %t", ok)
				}
				if !known {
					continue
				}
				if a, _ := g.Look(clock.Now()+int64(wait)-1, units, maxWait); wait > 0 && a == sharing.Fits {
					t.Error("it fits before that")
				}
				clock.Advance(wait)
				if !turn(t, m, g, clock.Now(), units, maxWait) {
					t.Errorf("%d units are still refused after waiting %v as advised", units, wait)
				}
			}
		})
	}
}

// A foreign key is logged once, and the throttle falls back to its onFailure until the key is
// usable, which it checks once per second. The log handler may be subject to the same limit.
func TestKeyThatIsNoThrottles(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	var g *sharing.Throttle
	logged := 0
	log := slog.New(onLog{slog.DiscardHandler, func() {
		logged++
		g.TryTake(clock.Now(), 1, 0)
	}})
	foreign := &failing{Memory: cluster.NewMemory(clock), err: store.ErrForeign}
	m, err := sharing.Join(cluster.Config{Store: foreign, Clock: clock, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	g = space(t, m, 1000, time.Second, cluster.Closed)
	for range 100 {
		if turn(t, m, g, clock.Now(), 1, 0) {
			t.Fatal("a call has its turn, but onFailure is closed")
		}
		g.TryTake(clock.Now(), 1, 0)
		clock.Advance(25 * time.Millisecond)
	}
	if f := g.Stats(); logged != 1 || !f.Unreachable || f.Why != store.ErrForeign.Error() || f.Requests > 3 {
		t.Fatalf("logged %d times, %+v", logged, f)
	}
	if _, known := g.RetryAfter(clock.Now(), 1, 0); known {
		t.Error("it says when to come again")
	}
	foreign.err = nil
	clock.Advance(time.Second)
	turn(t, m, g, clock.Now(), 1, 0)
	clock.Advance(time.Second)
	if ok, f := turn(t, m, g, clock.Now(), 1, 0), g.Stats(); !ok || f.Unreachable || f.Why != "" {
		t.Fatalf("the key is usable: %t, %+v", ok, f)
	}
}

// apart is a store with a shard for each key.
type apart struct {
	*failing
	shards map[string]int
}

func (s apart) Shard(key string) int {
	if _, ok := s.shards[key]; !ok {
		s.shards[key] = len(s.shards)
	}
	return s.shards[key]
}

// A throttle with onFailure closed probes its shard by itself, since no other key may be there.
func TestClosedThrottleComesBack(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	store := apart{&failing{Memory: cluster.NewMemory(clock), err: store.ErrNotExecuted}, map[string]int{}}
	m := join(t, store, clock)
	g := space(t, m, 1000, time.Second, cluster.Closed)
	call := func() bool {
		clock.Advance(10 * time.Millisecond)
		return turn(t, m, g, clock.Now(), 1, 0)
	}
	for range 50 {
		if call() {
			t.Fatal("a call has its turn, but onFailure is closed")
		}
	}
	if f := g.Stats(); !f.Unreachable || f.Requests > 10 {
		t.Fatalf("%+v", f)
	}
	store.err = nil
	for range 150 {
		call()
	}
	if f := g.Stats(); f.Unreachable || !call() {
		t.Fatalf("%+v", f)
	}
}

// A member that leaves while calls hold permits stops asking for turns: its throttles fall back to
// onFailure. known bug 226
func TestATurnOfAMemberThatLeaves(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	store := &onItsWay{Memory: cluster.NewMemory(clock)}
	m := join(t, store, clock)
	open := cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Open}
	throttle, err := m.Throttle("turns", sharing.ThrottleConfig{Interval: time.Second, Threshold: 100, Rule: open})
	if err != nil {
		t.Fatal(err)
	}
	g, err := m.Semaphore("permits", sharing.SemaphoreConfig{Threshold: 10, Rule: open})
	if err != nil {
		t.Fatal(err)
	}
	g.TryAcquire(0, clock.Now(), 1)
	answer := func() {
		for len(store.dones) > 0 {
			store.answer()
		}
	}
	answer()
	if !g.TryAcquire(0, clock.Now(), 1) {
		t.Fatal("no permit")
	}
	m.Retire(func() {})
	answer()
	asked := throttle.Stats().Requests
	if _, ok := throttle.TryTake(clock.Now(), 1, time.Second); !ok || throttle.Stats().Requests != asked {
		t.Fatalf("a call passes: %t; %+v", ok, throttle.Stats())
	}
	g.Release(0, 1)
}
