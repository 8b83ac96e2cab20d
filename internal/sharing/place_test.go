package sharing_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/sharing"
)

// scattered is a store of three servers. It learns which server has a key from the first command
// for it.
type scattered struct {
	memories [3]*cluster.Memory
	down     [3]bool
	asked    bool
	mixed    int             // batches for two servers with known keys
	inVain   int             // batches for a server that is down
	keys     map[string]bool // all requested keys
	turned   int             // how far the servers have rotated
	restless bool
}

// server returns the server of a key.
func (s *scattered) server(key string) int {
	return (int(key[len(key)-2]) + s.turned) % len(s.memories)
}

func (s *scattered) Shard(key string) int {
	if s.restless {
		s.turned++
	}
	if !s.asked {
		return 7
	}
	return s.server(key)
}

func (s *scattered) Start(ctx context.Context, batch []store.Command, done func()) {
	s.Do(ctx, batch)
	done()
}

func (s *scattered) Do(ctx context.Context, batch []store.Command) {
	if s.asked && s.server(batch[0].Result().Key) != s.server(batch[len(batch)-1].Result().Key) {
		s.mixed++
	}
	s.asked = true
	failed := false
	for i, c := range batch {
		s.keys[c.Result().Key] = true
		if n := s.server(c.Result().Key); s.down[n] {
			c.Result().Err = context.DeadlineExceeded
			failed = true
		} else {
			s.memories[n].Do(ctx, batch[i:i+1])
		}
	}
	if failed {
		s.inVain++
	}
}

// scatter returns a member of such a store. The servers' clocks are 50 ms apart.
func scatter(t *testing.T) (*sharing.Member, *scattered, *clocks.Manual) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	clock.SetSleep(clocks.SleepAdvance)
	s := &scattered{keys: make(map[string]bool)}
	for i := range s.memories {
		s.memories[i] = cluster.NewMemory(ahead{clock, time.Duration(i) * 50 * time.Millisecond})
	}
	return join(t, s, clock), s, clock
}

// A member that first learns one location for all keys corrects that: with one of three servers
// down from the start, only that server's limits fall back, and few calls wait for it. known bug
// 198
func TestOneServerOfThreeIsDown(t *testing.T) {
	m, store, clock := scatter(t)
	store.down[1] = true
	var limits []sharing.Limit
	var stats []func() sharing.Stats
	rule := cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed}
	for i := range 40 {
		name := m.Key(fmt.Sprint("rule ", i))
		w, err := m.Window(name, sharing.WindowConfig{Shape: tenth, Threshold: 1000, Rule: rule})
		if err != nil {
			t.Fatal(err)
		}
		g, err := m.Throttle(name, sharing.ThrottleConfig{Interval: time.Second, Threshold: 1000, Rule: rule})
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Semaphore(name, sharing.SemaphoreConfig{Threshold: 1000, Rule: rule})
		if err != nil {
			t.Fatal(err)
		}
		limits = append(limits, w, g, s)
		stats = append(stats, w.Stats, g.Stats, s.Stats)
	}
	got := make([]int, len(limits))
	for range 20 {
		for i, l := range limits {
			need := []sharing.Need{{Limit: l, Units: 1, MaxWait: time.Millisecond}}
			if err := m.Fetch(t.Context(), time.Millisecond, need); err != nil {
				t.Fatal(err)
			}
			if need[0].Got {
				got[i]++
			}
			if s, ok := l.(*sharing.Semaphore); ok && need[0].Got {
				s.Release(0, 1)
			}
		}
		clock.Advance(50 * time.Millisecond)
	}
	away := 0
	for i := range limits {
		f := stats[i]()
		switch {
		case f.Unreachable && got[i] == 0:
			away++
		case f.Unreachable || got[i] < 19:
			t.Errorf("limit %d got %d of 20, %+v", i, got[i], f)
		}
	}
	if away < 20 || away > 60 {
		t.Errorf("%d of 120 limits are on the server that is down", away)
	}
	if store.inVain > 20 {
		t.Errorf("%d requests failed", store.inVain)
	}
	if store.mixed > 0 {
		t.Errorf("%d batches were for two servers", store.mixed)
	}
}

// Keys that move to a server with another clock stay within their limits.
func TestKeysThatMove(t *testing.T) {
	m, store, clock := scatter(t)
	all := shareMany(t, m, 30, 100)
	admitted := make([]int, len(all))
	call := func() {
		for i, w := range all {
			if fetch(t, m, w, 1).Got {
				admitted[i]++
			}
		}
	}
	for range 30 {
		call()
		clock.Advance(time.Millisecond)
	}
	store.turned++ // the keys' values aren't moved
	store.down[1] = true
	for range 60 {
		call()
		clock.Advance(time.Millisecond)
	}
	away := 0
	for i, w := range all {
		// known bug 198
		if f := w.Stats(); f.Unreachable {
			away++
		} else if admitted[i] < 60 || admitted[i] > 100 {
			t.Errorf("window %d has admitted %d of 90", i, admitted[i])
		}
	}
	meet := 0 // keys on the server that is down, or keys that asked it and have sent nothing since
	for key := range store.keys {
		was := (store.server(key) + len(store.down) - 1) % len(store.down)
		if store.down[store.server(key)] || store.down[was] {
			meet++
		}
	}
	if away == 0 || away > meet {
		t.Errorf("%d windows do without the store, %d asked the server that is down", away, meet)
	}
	if store.mixed > 0 {
		t.Errorf("%d batches were for two servers", store.mixed)
	}
}

// If a store names another server for a key each time, calls still get replies.
func TestStoreThatIsRestless(t *testing.T) {
	m, store, clock := scatter(t)
	store.memories[1], store.memories[2] = store.memories[0], store.memories[0]
	all := shareMany(t, m, 10, 1000)
	store.restless = true
	got := 0
	for range 100 {
		for _, w := range all {
			if fetch(t, m, w, 1).Got {
				got++
			}
		}
		clock.Advance(time.Millisecond)
	}
	if got < 900 {
		t.Errorf("%d of 1000 calls admitted", got)
	}
}

// A store that is short of memory, and loses each key at once, counts as unreachable: it isn't
// charged again and again. known bug 199
func TestStoreThatForgets(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	var log strings.Builder
	asked, full := 0, true
	memory := cluster.NewMemory(clock)
	store := starting{func(ctx context.Context, batch []store.Command) {
		asked++
		if full {
			cluster.NewMemory(clock).Do(ctx, batch)
			return
		}
		memory.Do(ctx, batch)
	}}
	m, err := sharing.Join(cluster.Config{Store: store, Clock: clock, Members: 4, Seed: seeds.Add(1), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	w := share(t, m, 100, cluster.Local)
	got := 0
	for range 100 {
		if fetch(t, m, w, 1).Got {
			got++
		}
		clock.Advance(time.Millisecond)
	}
	if f := w.Stats(); !f.Unreachable || f.Why == "" || got > 30 {
		t.Errorf("%d admitted, %+v", got, f)
	}
	if asked > 20 {
		t.Errorf("the store was asked %d times", asked)
	}
	full = false
	for range 300 {
		fetch(t, m, w, 1)
		clock.Advance(10 * time.Millisecond)
	}
	if f := w.Stats(); f.Unreachable {
		t.Errorf("the store has room again: %+v", f)
	}
	if n := strings.Count(log.String(), "is unusable"); n != 1 {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}
