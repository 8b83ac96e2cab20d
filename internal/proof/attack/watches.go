package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// manyWatches begins and ends watches of a large file on one guard, and measures the remains.
func manyWatches(r *round) error {
	s := &sourceRound{round: r, dir: r.folder()}
	s.guard, _ = r.bareGuard(api.Config{})
	var set rules.Set
	for i := range 1000 {
		set.Flow = append(set.Flow, flow.Rule{ID: fmt.Sprint(i), Resource: fmt.Sprint("resource ", i), Threshold: 1})
	}
	path := s.file(set)
	watch := func(times int) error {
		for range times {
			ctx, end := context.WithCancel(r.ctx)
			err := s.guard.WatchRules(ctx, path)
			end()
			if err != nil {
				return err
			}
			r.offered.Add(1)
		}
		return nil
	}
	if err := watch(2); err != nil {
		return err
	}
	goroutines := settledGoroutines()
	before := heap()
	const times = 8
	if err := watch(times); err != nil {
		return err
	}
	left := goroutinesBeyond(goroutines)
	grown := heap() - before
	r.checked.Add(2)
	if left > 0 {
		return fmt.Errorf("%d watches have ended, but %d of their goroutines remain", times, left)
	}
	if most := int64(times * 32 << 10); grown > most {
		return fmt.Errorf("%d watches of a file of %d rules have ended, but still hold %d KiB each", times, len(set.Flow), grown/times>>10)
	}
	return nil
}

// heap returns the bytes in use.
func heap() int64 {
	var m runtime.MemStats
	for range 3 { // memory with finalizers or weak pointers takes more than one
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// goroutinesBeyond returns the number of goroutines above most, after giving ending ones as
// much time as a busy machine may need.
func goroutinesBeyond(most int) int {
	for until := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > most && time.Now().Before(until); {
		time.Sleep(ms)
	}
	return runtime.NumGoroutine() - most
}

// settledGoroutines returns the number of goroutines once all ending ones have ended.
func settledGoroutines() int {
	least := runtime.NumGoroutine()
	for unchanged := 0; unchanged < 20; unchanged++ {
		time.Sleep(ms) // those ending need a moment
		if n := runtime.NumGoroutine(); n < least {
			least, unchanged = n, 0
		}
	}
	return least
}
