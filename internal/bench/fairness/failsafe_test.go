package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/priority"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// failsafe plays the overload on failsafe-go's limiter, with a fixed limit, its own queue, and a
// prioritizer that tracks the usage of each tenant, calibrated each 100 ms. It runs in a bubble of
// synctest, on virtual time.
func failsafe(s scenario) *outcome {
	o := &outcome{scenario: s, tenants: make([]share, len(s.tenants))}
	ctx, stop := context.WithCancel(context.Background())
	usage := priority.NewUsageTracker(10*time.Second, 1000)
	p := adaptivelimiter.NewPrioritizerBuilder().WithUsageTracker(usage).Build()
	limit := uint(s.limit)
	limiter := adaptivelimiter.NewBuilder[any]().WithLimits(limit, limit, limit).WithQueueing(2, 5).BuildPrioritized(p)
	p.ScheduleCalibrations(ctx, 100*time.Millisecond)
	began := time.Now()
	var mu sync.Mutex
	for i, t := range s.tenants {
		go func() {
			r := rand.New(rand.NewPCG(uint64(i), 3))
			for time.Since(began) < s.length {
				time.Sleep(time.Duration(r.ExpFloat64() * float64(time.Second) / t.rate))
				lasts := time.Duration(r.ExpFloat64() * float64(t.mean))
				go o.call(priority.Medium.AddTo(priority.ContextWithUser(ctx, fmt.Sprint(i))), &mu, limiter, i, lasts, began)
			}
		}()
	}
	time.Sleep(s.length + 10*time.Second)
	stop()
	synctest.Wait()
	return o
}

// call makes a call of a tenant.
func (o *outcome) call(ctx context.Context, mu *sync.Mutex, limiter adaptivelimiter.PriorityLimiter[any], tenant int, lasts time.Duration, began time.Time) {
	asked := time.Now()
	counts := asked.Sub(began) >= o.length/10 && asked.Sub(began) < o.length
	permit, err := limiter.AcquirePermitWithMaxWait(ctx, 2*time.Second)
	from := time.Now()
	mu.Lock()
	defer mu.Unlock()
	x := &o.tenants[tenant]
	if counts {
		x.asked++
	}
	if err != nil {
		if counts {
			x.turnedAway++
		}
		return
	}
	if counts {
		x.waits = append(x.waits, from.Sub(asked))
	}
	mu.Unlock()
	time.Sleep(lasts)
	permit.Record()
	mu.Lock()
	from = from.Add(max(0, began.Add(o.length/10).Sub(from)))
	until := time.Now()
	until = until.Add(-max(0, until.Sub(began.Add(o.length))))
	x.area += max(0, until.Sub(from).Seconds())
}

// The limiter that prioritizes by usage divides less evenly than shares do. Its choices are random,
// so its figures are logged: go test -v -run TestFailsafe ./fairness
func TestFailsafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := failsafe(overload())
		for i, x := range o.tenants {
			require.NotEmpty(t, x.waits)
			t.Logf("tenant %d: %.1f permits, %.0f %% refused, waits %v, p99 %v", i, x.permits(o.length), 100*x.refused(), x.wait().Round(100*time.Microsecond), x.p99().Round(100*time.Microsecond))
		}
		t.Logf("Jain's index of got / max-min: %.4f", o.jain())
		assert.Less(t, o.jain(), play(overload(), true).jain())
	})
}
