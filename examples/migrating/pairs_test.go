// Package migrating_test checks docs/migrating.md against the libraries it covers: the old limiter
// or breaker and the rule that replaces it get the same calls at the same times.
package migrating_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/afex/hystrix-go/hystrix"
	sentinel "github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	sentinelbreaker "github.com/alibaba/sentinel-golang/core/circuitbreaker"
	sentinelflow "github.com/alibaba/sentinel-golang/core/flow"
	"github.com/alibaba/sentinel-golang/logging"
	"github.com/alibaba/sentinel-golang/util"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
)

var errDown = errors.New("down")

// guardOf returns a guard with the rules of a file next to this test. docs/migrating.md shows each
// of these files.
func guardOf(t *testing.T, file string, cfg api.Config) *api.Guard {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	set, err := api.ParseRules(file, text)
	require.NoError(t, err)
	g, err := api.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	require.NoError(t, g.LoadRules(set))
	return g
}

// passes reports whether the guard admits a call. The call ends at once.
func passes(t *testing.T, g *api.Guard, resource string, opts ...api.Option) bool {
	t.Helper()
	e, err := g.Entry(t.Context(), resource, opts...)
	if err != nil {
		require.ErrorIs(t, err, api.ErrBlocked)
		return false
	}
	e.Exit()
	return true
}

// A token bucket admits the same calls as rate.Limiter.
func TestRateAllow(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := api.NewManualClock(start)
	g := guardOf(t, "rate.yaml", api.Config{Clock: clock})
	limiter := rate.NewLimiter(100, 21)
	random := rand.New(rand.NewPCG(1, 2))
	now, refused := start, 0
	for i := range 20_000 {
		// Each step is whole milliseconds plus a microsecond, so it never hits the instant of a new
		// token, where one rounds a float and the other a nanosecond.
		step := time.Duration(random.IntN(17))*time.Millisecond + time.Microsecond
		now = now.Add(step)
		clock.Advance(step)
		n := 1 + random.IntN(2)
		allowed := limiter.AllowN(now, n)
		require.Equal(t, allowed, passes(t, g, "send mail", api.Units(n)), "call %d, %v after the start", i, now.Sub(start))
		if !allowed {
			refused++
		}
	}
	assert.Greater(t, refused, 1000)
}

// A throttle makes calls wait as long as rate.Limiter with a burst of one.
func TestRateWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guardOf(t, "ratewait.yaml", api.Config{})
		limiter := rate.NewLimiter(50, 1)
		start := time.Now()
		for range 50 {
			require.NoError(t, limiter.Wait(t.Context()))
		}
		waited := time.Since(start)
		start = time.Now()
		for range 50 {
			require.True(t, passes(t, g, "send mail"))
		}
		assert.Equal(t, waited, time.Since(start))
		assert.Equal(t, 980*time.Millisecond, waited)
	})
}

// A hotspot rule acts like a map of limiters.
func TestRatePerKey(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := api.NewManualClock(start)
	g := guardOf(t, "rateperkey.yaml", api.Config{Clock: clock})
	limiters := make(map[string]*rate.Limiter)
	random := rand.New(rand.NewPCG(3, 4))
	now := start
	for range 20_000 {
		step := time.Duration(random.IntN(17))*time.Millisecond + time.Microsecond
		now = now.Add(step)
		clock.Advance(step)
		user := []string{"ann", "bob", "eve"}[random.IntN(3)]
		if limiters[user] == nil {
			limiters[user] = rate.NewLimiter(10, 21)
		}
		require.Equal(t, limiters[user].AllowN(now, 1), passes(t, g, "GET /orders", api.Param("user", user)))
	}
}

// breakers makes calls that succeed or fail, with pauses, and checks that both admit the same calls.
func breakers(t *testing.T, g *api.Guard, resource string, old func(fails bool) (admitted bool)) {
	t.Helper()
	random := rand.New(rand.NewPCG(5, 6))
	opened := 0
	for i := range 5000 {
		time.Sleep(time.Duration(random.IntN(1000))*time.Millisecond + time.Microsecond)
		if random.IntN(60) == 0 {
			time.Sleep(65 * time.Second)
		}
		fails := random.IntN(10) < 7
		admitted := old(fails)
		if !admitted {
			opened++
		}
		err := g.Do(t.Context(), resource, func(context.Context) error {
			if fails {
				return errDown
			}
			return nil
		})
		require.Equal(t, admitted, !errors.Is(err, api.ErrBlocked), "call %d", i)
	}
	assert.Greater(t, opened, 100)
}

func TestGobreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := gobreaker.NewCircuitBreaker[string](gobreaker.Settings{Name: "payments"})
		breakers(t, guardOf(t, "gobreaker.yaml", api.Config{}), "payments", func(fails bool) bool {
			_, err := old.Execute(func() (string, error) {
				if fails {
					return "", errDown
				}
				return "", nil
			})
			return !errors.Is(err, gobreaker.ErrOpenState) && !errors.Is(err, gobreaker.ErrTooManyRequests)
		})
	})
}

// Windows of gobreaker start with each state while ours follow the clock, so the comparison stays
// within one window.
func TestGobreakerByRatio(t *testing.T) {
	for failed, opens := range map[int]bool{11: false, 12: true} {
		synctest.Test(t, func(t *testing.T) {
			old := gobreaker.NewCircuitBreaker[string](gobreaker.Settings{
				Name: "payments", Interval: 10 * time.Second, BucketPeriod: time.Second, Timeout: 30 * time.Second, MaxRequests: 3,
				ReadyToTrip: func(c gobreaker.Counts) bool {
					return c.Requests >= 20 && float64(c.TotalFailures) >= 0.6*float64(c.Requests)
				},
			})
			g := guardOf(t, "gobreakerratio.yaml", api.Config{})
			both := func(err error) (admitted bool) {
				_, was := old.Execute(func() (string, error) { return "", err })
				is := g.Do(t.Context(), "payments", func(context.Context) error { return err })
				admitted = !errors.Is(was, gobreaker.ErrOpenState) && !errors.Is(was, gobreaker.ErrTooManyRequests)
				assert.Equal(t, admitted, !errors.Is(is, api.ErrBlocked))
				return admitted
			}
			for range 20 - failed {
				both(nil)
			}
			for range failed {
				both(errDown)
			}
			assert.Equal(t, opens, !both(nil))
			time.Sleep(30*time.Second + time.Millisecond)
			for range 3 {
				assert.True(t, both(nil))
			}
			assert.Equal(t, gobreaker.StateClosed, old.State())
			assert.Equal(t, breaker.Closed, g.Breakers()[0].State)
		})
	}
}

func TestFailsafeBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := circuitbreaker.NewBuilder[string]().WithFailureThreshold(5).WithDelay(30 * time.Second).WithSuccessThreshold(2).Build()
		g := guardOf(t, "failsafe.yaml", api.Config{})
		breakers(t, g, "payments", func(fails bool) bool {
			if !old.TryAcquirePermit() {
				return false
			}
			if fails {
				old.RecordFailure()
			} else {
				old.RecordSuccess()
			}
			return true
		})
	})
}

// Concurrent calls wait equally long in a smooth rate limiter and in a throttle, and equally many
// are refused.
func TestFailsafeRateLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := ratelimiter.NewSmoothBuilder[string](100, time.Second).Build()
		waits, refused := make(map[time.Duration]int), 0
		for range 70 {
			if wait := old.TryReservePermit(500 * time.Millisecond); wait < 0 {
				refused++
			} else {
				waits[wait]++
			}
		}
		g := guardOf(t, "failsafe.yaml", api.Config{})
		start := time.Now()
		results := make(chan time.Duration)
		for range 70 {
			go func() {
				e, err := g.Entry(t.Context(), "GET /search")
				if err != nil {
					results <- -1
					return
				}
				wait := time.Since(start)
				e.Exit()
				results <- wait
			}()
		}
		for range 70 {
			if wait := <-results; wait < 0 {
				refused--
			} else {
				waits[wait]--
			}
		}
		assert.Zero(t, refused)
		for wait, n := range waits {
			assert.Zero(t, n, wait)
		}
	})
}

func TestFailsafeBulkhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := bulkhead.New[string](10)
		g := guardOf(t, "failsafe.yaml", api.Config{})
		for range 10 {
			require.True(t, old.TryAcquirePermit())
		}
		assert.ErrorIs(t, old.AcquirePermitWithMaxWait(t.Context(), 250*time.Millisecond), bulkhead.ErrFull)
		for range 10 {
			e, err := g.Entry(t.Context(), "render pdf")
			require.NoError(t, err)
			defer e.Exit()
		}
		start := time.Now()
		_, err := g.Entry(t.Context(), "render pdf")
		assert.Equal(t, api.KindIsolation, api.KindOf(err))
		assert.Equal(t, 250*time.Millisecond, time.Since(start))
	})
}

// hystrix.yaml has the defaults of a hystrix command.
func TestHystrix(t *testing.T) {
	set := guardOf(t, "hystrix.yaml", api.Config{}).Rules()
	assert.EqualValues(t, hystrix.DefaultMaxConcurrent, set.Isolation[0].Threshold)
	assert.EqualValues(t, hystrix.DefaultErrorPercentThreshold, set.Breaker[0].Threshold*100)
	assert.EqualValues(t, hystrix.DefaultVolumeThreshold, set.Breaker[0].MinCalls)
	assert.EqualValues(t, hystrix.DefaultSleepWindow, set.Breaker[0].Recovery.Milliseconds())
}

// Penstock reads the same sentinel.json as sentinel-golang, and admits the same calls.
func TestSentinel(t *testing.T) {
	// Counts of a resource outlive its rules, so a second run starts after the first.
	start := lastOfOld.Truncate(time.Minute).Add(time.Hour)
	clock := api.NewManualClock(start)
	g := guardOf(t, "sentinel.json", api.Config{Clock: clock})

	var file struct {
		FlowRules           []*sentinelflow.Rule
		CircuitBreakerRules []*sentinelbreaker.Rule
	}
	text, err := os.ReadFile("sentinel.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &file))
	old := &oldClock{now: start}
	util.SetClock(old)
	t.Cleanup(func() { lastOfOld = old.now })
	logging.ResetGlobalLoggerLevel(logging.ErrorLevel + 1)
	_, err = sentinelbreaker.LoadRules(nil)
	require.NoError(t, err)
	_, err = sentinelflow.LoadRules(file.FlowRules[:1])
	require.NoError(t, err)
	_, err = sentinelbreaker.LoadRules(file.CircuitBreakerRules)
	require.NoError(t, err)

	random := rand.New(rand.NewPCG(7, 8))
	refused := make(map[base.BlockType]int)
	for i := range 20_000 {
		step := time.Duration(random.IntN(150)) * time.Millisecond
		if random.IntN(200) == 0 {
			step += 12 * time.Second
		}
		old.now = old.now.Add(step)
		clock.Advance(step)
		for resource, fails := range map[string]bool{"GET /orders": false, "payments": random.IntN(10) == 0} {
			was, blocked := sentinel.Entry(resource)
			if blocked != nil {
				refused[blocked.BlockType()]++
			} else {
				if fails {
					sentinel.TraceError(was, errDown)
				}
				was.Exit()
			}
			e, err := g.Entry(t.Context(), resource)
			require.Equal(t, blocked == nil, err == nil, "call %d of %s at %v", i, resource, old.now.Sub(start))
			if err == nil {
				if fails {
					e.Fail(errDown)
				}
				e.Exit()
			} else {
				require.Equal(t, blocked.BlockType() == base.BlockTypeFlow, api.KindOf(err) == api.KindFlow)
				require.Equal(t, blocked.BlockType() == base.BlockTypeCircuitBreaking, api.KindOf(err) == api.KindBreaker)
			}
		}
	}
	assert.Greater(t, refused[base.BlockTypeFlow], 100)
	assert.Greater(t, refused[base.BlockTypeCircuitBreaking], 100)
}

// lastOfOld is the end of the latest run of TestSentinel, by sentinel-golang's clock.
var lastOfOld = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type oldClock struct{ now time.Time }

func (c *oldClock) Now() time.Time            { return c.now }
func (c *oldClock) Sleep(time.Duration)       {}
func (c *oldClock) CurrentTimeMillis() uint64 { return uint64(c.now.UnixMilli()) }
func (c *oldClock) CurrentTimeNano() uint64   { return uint64(c.now.UnixNano()) }
