package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/cluster"
	penstockredis "github.com/penstock-go/penstock/cluster/redis"
	"github.com/penstock-go/penstock/cluster/redis/internal/server"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/stat"
)

const (
	loadMembers = 20
	loadRules   = 30
	loadLimit   = 10_000 // of each rule
	loadBatch   = 5      // units per call
	loadSeconds = 8
)

// timed is a store that measures its response times.
type timed struct {
	*penstockredis.Store
	mu   sync.Mutex // guards the fields below it
	took []time.Duration
}

func (s *timed) Do(ctx context.Context, batch []store.Command) {
	begin := time.Now()
	s.Store.Do(ctx, batch)
	took := time.Since(begin)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = append(s.took, took)
}

// load runs many members with many hot rules just below their limits, and returns the server's cost
// as text.
func load() (string, error) {
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	s, err := server.Start(dir)
	if err != nil {
		return "", err
	}
	defer s.Kill()
	ask := client(s.Addr)
	defer ask.Close()
	clock := clocks.NewSystem()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var offered, admitted atomic.Int64
	var stores []*timed
	var all sync.WaitGroup
	for range loadMembers {
		opened, err := penstockredis.Open("redis://" + s.Addr)
		if err != nil {
			return "", err
		}
		store := &timed{Store: opened}
		stores = append(stores, store)
		m, err := sharing.Join(cluster.Config{Store: store, Clock: clock, Namespace: "load", Members: loadMembers})
		if err != nil {
			return "", err
		}
		defer func() {
			m.Close()
			_ = opened.Close()
		}()
		var windows []*sharing.Window
		for i := range loadRules {
			w, err := m.Window(fmt.Sprint("rule ", i), sharing.WindowConfig{
				Shape: stat.Shape{Interval: time.Second, Buckets: 10, Strict: true}, Threshold: loadLimit,
				Rule: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed},
			})
			if err != nil {
				return "", err
			}
			windows = append(windows, w)
		}
		all.Go(func() { traffic(ctx, m, windows, clock, &offered, &admitted) })
	}
	time.Sleep(2 * time.Second)
	for _, s := range stores {
		s.mu.Lock()
		s.took = nil
		s.mu.Unlock()
	}
	if err := ask.ConfigResetStat(ctx).Err(); err != nil {
		return "", err
	}
	offered.Store(0)
	admitted.Store(0)
	before, begin := usage(ask), time.Now()
	time.Sleep(loadSeconds * time.Second)
	after, seconds := usage(ask), time.Since(begin).Seconds()
	used := 100 * float64(admitted.Load()) / float64(offered.Load())
	var scripts, micros float64
	stats := ask.InfoMap(ctx, "commandstats").Item("Commandstats", "cmdstat_evalsha")
	if _, err := fmt.Sscanf(stats, "calls=%f,usec=%f", &scripts, &micros); err != nil {
		return "", fmt.Errorf("the server's statistics are %q: %w", stats, err)
	}
	var took []time.Duration
	for _, s := range stores {
		s.mu.Lock()
		took = append(took, s.took...)
		s.mu.Unlock()
	}
	stop()
	all.Wait()
	slices.Sort(took)
	return fmt.Sprintf("%d members with %d hot rules of %d per second, 10 buckets: "+
		"%.0f scripts per second of %.1f µs each in %.0f round trips, %.0f %% of one core of Redis; "+
		"the median round trip takes %v and the 99th percentile is %v. %.1f %% of %.0f calls per second were admitted.\n",
		loadMembers, loadRules, loadLimit, scripts/seconds, micros/scripts, float64(len(took))/seconds, 100*(after.seconds-before.seconds)/seconds,
		took[len(took)/2].Round(10*time.Microsecond), took[len(took)*99/100].Round(10*time.Microsecond), used, float64(offered.Load())/seconds), nil
}

// traffic is the load of one member: its part of nine tenths of each limit. It counts the calls.
func traffic(ctx context.Context, m *sharing.Member, windows []*sharing.Window, clock *clocks.System, offered, admitted *atomic.Int64) {
	const each = time.Second * loadBatch * loadMembers * 10 / (9 * loadLimit)
	begin := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		time.Sleep(time.Until(begin.Add(time.Duration(n) * each)))
		for _, w := range windows {
			now := clock.Now()
			offered.Add(1)
			if _, ok := w.TryAdd(0, now, loadBatch); ok {
				admitted.Add(1)
				continue
			}
			if w.Ask(now, loadBatch) != sharing.NeedsMore {
				continue
			}
			go func() {
				needs := []sharing.Need{{Limit: w, Units: loadBatch}}
				if m.Fetch(ctx, w.Timeout(), needs) == nil && needs[0].Got {
					admitted.Add(1)
				}
			}()
		}
	}
}
