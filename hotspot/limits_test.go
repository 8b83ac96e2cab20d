package hotspot_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
)

// A function that panics, fails or returns what no rule can have is asked again, later each time, and
// the value keeps its limit; the log has a line, and the statistics count.
func TestLimitsFromCodeThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		clock := api.NewManualClock(start)
		calls := 0
		reply := func() (float64, time.Duration, error) { return 3, time.Second, nil }
		guard, err := api.New(api.Config{
			Clock: clock, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Limits: func(_ context.Context, rule string, key argument.Value) (float64, time.Duration, error) {
				calls++
				assert.Equal(t, []any{"users", "ann"}, []any{rule, key.Scalar()})
				return reply()
			},
		})
		require.NoError(t, err)
		defer guard.Close()
		require.NoError(t, guard.LoadRules(api.RuleSet{Hotspot: []hotspot.Rule{{
			ID: "users", Resource: "GET /orders", Param: "user", Threshold: 1, Interval: 10 * time.Minute, LimitsFromCode: true,
		}}}))
		passes := func() (n int) {
			for range 10 {
				if e, err := guard.Entry(t.Context(), "GET /orders", api.Param("user", "ann")); err == nil {
					n++
					e.Exit()
				}
				synctest.Wait()
			}
			return n
		}
		stats := func() *hotspot.LimitStats {
			return guard.Tree().Rules[0].Details.(hotspot.Stats).LimitsFromCode
		}
		assert.Equal(t, 3, passes(), "the first call asks")
		assert.Equal(t, &hotspot.LimitStats{Values: 1, Answers: 1}, stats())

		pause := time.Second
		for i, bad := range []func() (float64, time.Duration, error){
			func() (float64, time.Duration, error) { return 0, 0, errors.New("no connection") },
			func() (float64, time.Duration, error) { panic("x") },
			func() (float64, time.Duration, error) { return -1, time.Second, nil },
			func() (float64, time.Duration, error) { return 1, time.Millisecond, nil },
		} {
			if i == 0 {
				clock.Advance(time.Second)
			} else {
				clock.Advance(pause - 1)
				calls = 0
				assert.Zero(t, passes()+calls, "not yet")
				clock.Advance(1)
				pause *= 2
			}
			reply = bad
			calls = 0
			assert.Zero(t, passes(), "three of three are used")
			assert.Equal(t, 1, calls)
			assert.Equal(t, int64(i+1), stats().Errors)
		}
		assert.Contains(t, stats().LastError, "ttl is 1ms: use a duration from 100ms to 24h")
		assert.Contains(t, log.String(), "level=WARN")
		assert.Contains(t, log.String(), "questions about limits failed")
		assert.Contains(t, log.String(), `rule=users resource="GET /orders" error="no connection" errors=1`)
		x, err := guard.Explain(t.Context(), "GET /orders", api.Param("user", "ann"))
		require.NoError(t, err)
		assert.Contains(t, x.String(), "limit 3 from code, ")
		assert.Contains(t, x.String(), " old; the latest question failed\n")
		assert.Contains(t, strings.Join(guard.Tree().Rules[0].Details.Lines(time.Time{}), "\n"), "limits from code: 1 values, 1 answers, 4 errors, the latest: ")

		clock.Advance(time.Minute)
		reply = func() (float64, time.Duration, error) { return 5, time.Hour, nil }
		assert.Equal(t, 2, passes(), "three of five were used")
	})
}

// Without a function, the threshold holds and the log says why.
func TestLimitsFromCodeWithoutCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, hotspot.Rule{ID: "r", Param: "user", Threshold: 2, LimitsFromCode: true})
		assert.Equal(t, "pass x2, block", g.outcomes(3, user("ann")))
		synctest.Wait()
		assert.Equal(t, hotspot.LimitStats{Errors: 1, LastError: "api.Config.Limits is nil: set it, or remove limitsFromCode"}, *g.details("r").LimitsFromCode)
		require.NoError(t, g.Close())
	})
}

// Exceptions, and values without a place of their own, aren't asked about. At most sixteen questions
// run, however many values arrive, and a rule that refuses all values by default still asks.
func TestLimitsFromCodeAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, asked := 0, map[string]int{}
		release := make(chan struct{})
		limits := func(ctx context.Context, _ string, key argument.Value) (float64, time.Duration, error) {
			running++
			asked[key.String()]++
			<-release
			return 1, time.Hour, nil
		}
		g := newGuardWith(t, engine.Config{Limits: limits}, hotspot.Rule{
			ID: "r", Param: "user", LimitsFromCode: true, Interval: time.Hour,
			Exceptions: []hotspot.Exception{{Value: hotspot.ValueOf("banned")}},
		})
		for i := range 100 {
			assert.Equal(t, "block", g.outcome(user("banned")))
			assert.Equal(t, "block", g.outcome(engine.Param("user", i)))
			synctest.Wait()
		}
		assert.Equal(t, engine.MaxBackground, running)
		close(release)
		synctest.Wait()
		for i := range 100 {
			if i >= engine.MaxBackground {
				assert.Equal(t, "block", g.outcome(engine.Param("user", i)), "which asks")
				synctest.Wait()
			}
			assert.Equal(t, "pass, block", g.outcomes(2, engine.Param("user", i)))
		}
		assert.Len(t, asked, 100)
		for v, n := range asked {
			assert.Equal(t, 1, n, v)
		}
		assert.Equal(t, 100, g.details("r").LimitsFromCode.Values)
		require.NoError(t, g.Close())
	})
}

func TestLimitsFromCodeAllocateNothing(t *testing.T) {
	answered := make(chan struct{}, 1)
	limits := func(context.Context, string, argument.Value) (float64, time.Duration, error) {
		answered <- struct{}{}
		return 1e9, time.Hour, nil
	}
	for _, rule := range []hotspot.Rule{{}, {Metric: hotspot.Concurrency}, {Behavior: hotspot.TokenBucket, Burst: 1e6}} {
		rule.ID, rule.Param, rule.Threshold, rule.LimitsFromCode = "r", "user", 1e9, true
		g := newGuardWith(t, engine.Config{Limits: limits}, rule)
		_ = g.outcome(user("ann"))
		<-answered
		require.NoError(t, g.Close()) // waits until the answer is stored
		opts := []engine.Option{user("ann")}
		race.AllocatesNothing(t, 1000, func() {
			e, err := g.Enter(t.Context(), "orders", opts)
			if e.Exit(); err != nil {
				t.Fatal(err)
			}
		})
		assert.Equal(t, 1, g.details("r").LimitsFromCode.Values)
	}
}
