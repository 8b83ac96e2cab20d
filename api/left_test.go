package api_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/isolation"
)

// leaves returns the option of a server that allows its calls a time d, 0 for no limit.
func leaves(d time.Duration) api.Option {
	return engine.InboundWithin(func(context.Context) (time.Duration, bool) { return d, d > 0 })
}

var slowly = api.RuleSet{
	Flow:      []flow.Rule{{Resource: "turns", Threshold: 1, Behavior: flow.Throttle, MaxWait: time.Hour}},
	Isolation: []isolation.Rule{{Resource: "queue", Threshold: 1, MaxQueue: 10, MaxWait: time.Hour}},
}

// outcome is the result of a call, and its wait.
type outcome struct {
	entry  api.Admitted
	err    error
	waited time.Duration
}

func bubbled(t *testing.T, f func(t *testing.T, g *api.Guard, call func(ctx context.Context, name string, opts ...api.Option) <-chan outcome)) {
	synctest.Test(t, func(t *testing.T) {
		g, err := api.New(api.Config{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		defer g.Close()
		require.NoError(t, g.LoadRules(slowly))
		f(t, g, func(ctx context.Context, name string, opts ...api.Option) <-chan outcome {
			done := make(chan outcome, 1)
			go func() {
				began := time.Now()
				e, err := g.Entry(ctx, name, opts...)
				done <- outcome{e, err, time.Since(began)}
			}()
			synctest.Wait()
			return done
		})
	})
}

// refusedAfter checks that a rule, not the end of its context, refused a call after that time.
func refusedAfter(t *testing.T, is outcome, want time.Duration) {
	t.Helper()
	require.ErrorIs(t, is.err, api.ErrBlocked)
	assert.NotErrorIs(t, is.err, context.DeadlineExceeded)
	assert.IsType(t, (*api.BlockError)(nil), is.err, "it has not given up waiting")
	assert.Equal(t, want, is.waited)
}

// A call waits no longer than its server allows for the response, and is refused at once only if its
// turn is known to be later.
func TestWaitsLeaveTimeToAnswer(t *testing.T) {
	bubbled(t, func(t *testing.T, g *api.Guard, call func(context.Context, string, ...api.Option) <-chan outcome) {
		ctx := t.Context()
		var all []<-chan outcome
		for range 3 {
			all = append(all, call(ctx, "turns", leaves(2500*time.Millisecond)))
		}
		refusedAfter(t, <-call(ctx, "turns", leaves(2500*time.Millisecond)), 0)
		unknown := call(ctx, "turns", leaves(0))
		for i, c := range all {
			is := <-c
			require.NoError(t, is.err)
			assert.Equal(t, time.Duration(i)*time.Second, is.waited)
			is.entry.Exit()
		}
		is := <-unknown
		require.NoError(t, is.err)
		assert.Equal(t, 3*time.Second, is.waited)
		is.entry.Exit()

		held := <-call(ctx, "queue")
		require.NoError(t, held.err)
		short, long := call(ctx, "queue", leaves(2*time.Second)), call(ctx, "queue", leaves(time.Minute))
		refusedAfter(t, <-short, 2*time.Second)
		soon, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		is = <-call(soon, "queue", leaves(2*time.Second))
		require.ErrorIs(t, is.err, context.DeadlineExceeded)
		late, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		refusedAfter(t, <-call(late, "queue", leaves(2*time.Second)), 2*time.Second)
		held.entry.Exit()
		is = <-long
		require.NoError(t, is.err, "what comes within the time is granted")
		is.entry.Exit()
	})
}

// Calls of one request share the server's time.
func TestNestedWaitsLeaveTimeToAnswer(t *testing.T) {
	bubbled(t, func(t *testing.T, g *api.Guard, call func(context.Context, string, ...api.Option) <-chan outcome) {
		ctx := t.Context()
		held, first := <-call(ctx, "queue"), <-call(ctx, "turns")
		outer := <-call(ctx, "turns", leaves(2500*time.Millisecond))
		require.NoError(t, outer.err)
		assert.Equal(t, time.Second, outer.waited)
		inner := outer.entry.Context()
		refusedAfter(t, <-call(api.WithOrigin(inner, "ann"), "queue", leaves(2500*time.Millisecond)), 1500*time.Millisecond)
		refusedAfter(t, <-call(inner, "queue", leaves(2500*time.Millisecond)), 0)
		for _, e := range []api.Admitted{held.entry, first.entry, outer.entry} {
			e.Exit()
		}
	})
}

// A turn that prioritized calls push back may be too late for a response.
func TestTurnsThatMoveLeaveTimeToAnswer(t *testing.T) {
	bubbled(t, func(t *testing.T, g *api.Guard, call func(context.Context, string, ...api.Option) <-chan outcome) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		(<-call(ctx, "turns")).entry.Exit()
		pushed := call(ctx, "turns", leaves(1500*time.Millisecond))
		time.Sleep(500 * time.Millisecond)
		before := <-call(ctx, "turns", api.Prioritized(), leaves(1500*time.Millisecond))
		require.NoError(t, before.err)
		before.entry.Exit()
		refusedAfter(t, <-pushed, 1500*time.Millisecond)
		next := <-call(ctx, "turns")
		require.NoError(t, next.err)
		assert.Equal(t, 500*time.Millisecond, next.waited, "the turn that was left goes to the next")
		next.entry.Exit()
	})
}
