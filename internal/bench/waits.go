package main

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/rules"
)

// timerClock records how long each sleep took on the timer alone.
type timerClock struct {
	*clocks.System
	asleep time.Duration
}

func (c *timerClock) Sleep(ctx context.Context, d time.Duration) error {
	start := time.Now()
	err := c.System.Sleep(ctx, d)
	c.asleep += time.Since(start)
	return err
}

// waited holds the allocations of waiting calls, and the 99th percentile of the time beyond their
// timer's sleep, in microseconds.
type waited struct{ allocs, p99 float64 }

func waits(ctx context.Context, rule flow.Rule, n int, opts ...engine.Option) waited {
	clock := &timerClock{System: clocks.NewSystem()}
	rule.Resource = resource
	g := guard(api.Config{Clock: clock}, rules.Set{Flow: []flow.Rule{rule}})
	defer g.Close()
	beyond := make([]float64, 0, n)
	call := func() {
		clock.asleep = 0
		start := time.Now()
		e, err := g.Entry(ctx, resource, opts...)
		took := time.Since(start)
		if err != nil {
			time.Sleep(time.Millisecond)
			return
		}
		e.Exit()
		if clock.asleep > 0 {
			beyond = append(beyond, float64(took-clock.asleep)/float64(time.Microsecond))
		}
	}
	for range 10 {
		call()
	}
	beyond = beyond[:0]
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	// A late call finds room at once, so it doesn't wait and isn't counted.
	for range 3 * n {
		if len(beyond) == n {
			break
		}
		call()
	}
	runtime.ReadMemStats(&after)
	allocs := float64(after.Mallocs-before.Mallocs) / float64(max(1, len(beyond)))
	slices.Sort(beyond)
	return waited{allocs, beyond[len(beyond)*99/100]}
}

// timerAllocs returns the allocations of a cancelable sleep on a plain Go timer.
func timerAllocs() float64 {
	const n = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		timer := time.NewTimer(time.Microsecond)
		<-timer.C
		timer.Stop()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / n
}
