package api_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
)

// A guard that drains refuses calls that wait, and later calls that would have to, and lets others
// run. Drain returns when the last call has ended.
func TestDrain(t *testing.T) {
	bubbled(t, func(t *testing.T, g *api.Guard, call func(ctx context.Context, name string, opts ...api.Option) <-chan outcome) {
		require.NoError(t, g.LoadRules(api.RuleSet{
			Flow: append(slowly.Flow, flow.Rule{Resource: "borrows", Threshold: 1},
				flow.Rule{Resource: "both", Threshold: 1, Behavior: flow.Throttle, MaxWait: time.Hour}),
			Isolation: append(slowly.Isolation, isolation.Rule{Resource: "both", Threshold: 1, MaxQueue: 10, MaxWait: time.Hour}),
		}))
		canLeave, cancel := context.WithCancel(t.Context())
		defer cancel()
		runs := make(map[string]outcome)
		waits := make(map[string][]<-chan outcome)
		for _, name := range []string{"turns", "queue", "both"} { // of calls that wait for both, the turn comes first
			runs[name] = <-call(t.Context(), name)
			require.NoError(t, runs[name].err)
			for _, ctx := range []context.Context{context.Background(), canLeave} {
				waits[name] = append(waits[name], call(ctx, name), call(ctx, name, api.Prioritized()))
			}
		}
		runs["borrows"] = <-call(t.Context(), "borrows")
		time.Sleep(600 * time.Millisecond) // of the bubble: the next second is near enough to borrow from
		waits["borrows"] = append(waits["borrows"], call(t.Context(), "borrows", api.Prioritized()))

		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		drained := make(chan error, 1)
		go func() { drained <- g.Drain(ctx) }()
		synctest.Wait()
		for name, all := range waits {
			for i, c := range all {
				select {
				case o := <-c:
					assert.ErrorIs(t, o.err, api.ErrDraining, name)
					assert.ErrorIs(t, o.err, api.ErrBlocked, name)
				default:
					t.Errorf("%s: call %d still waits", name, i)
				}
			}
			o := <-call(t.Context(), name, api.Prioritized())
			require.ErrorIs(t, o.err, api.ErrBlocked, name)
			assert.Zero(t, o.waited)
		}
		o := <-call(t.Context(), "no rule")
		require.NoError(t, o.err)
		o.entry.Exit()
		assert.Empty(t, drained, "calls run")
		for _, o := range runs {
			o.entry.Exit()
		}
		require.NoError(t, <-drained)
		assert.NoError(t, g.Drain(t.Context()), "once more")
	})
}

// Drain returns the context's error if the context ends while calls run.
func TestDrainGivesUp(t *testing.T) {
	bubbled(t, func(t *testing.T, g *api.Guard, call func(ctx context.Context, name string, opts ...api.Option) <-chan outcome) {
		o := <-call(t.Context(), "queue")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		assert.ErrorIs(t, g.Drain(ctx), context.DeadlineExceeded)
		assert.Equal(t, 5*time.Second, time.Since(began))
		o.entry.Exit()
		var endless context.Context
		assert.NoError(t, g.Drain(endless))
	})
}

// waker is a user's clock: its sleeps last until their context ends.
type waker struct {
	clocks.Clock
	asleep chan bool
}

func (w waker) Sleep(ctx context.Context, _ time.Duration) error {
	w.asleep <- true
	<-ctx.Done()
	return ctx.Err()
}

// Drain wakes calls on every kind of clock.
func TestDrainOnOtherClocks(t *testing.T) {
	manual := clocks.NewManual(time.Unix(1_700_000_000, 0))
	users := waker{manual, make(chan bool)}
	for name, c := range map[string]struct {
		clock clocks.Clock
		slept func() // returns when a call sleeps
	}{
		"manual":     {manual, func() { manual.AwaitParked(1) }},
		"the user's": {users, func() { <-users.asleep }},
	} {
		for _, resource := range []string{"turns", "queue"} {
			t.Run(name+", "+resource, func(t *testing.T) {
				g := newGuard(t, api.Config{Clock: c.clock})
				require.NoError(t, g.LoadRules(slowly))
				e, err := g.Entry(t.Context(), resource)
				require.NoError(t, err)
				refused := make(chan error)
				go func() {
					_, err := g.Entry(context.Background(), resource)
					refused <- err
				}()
				c.slept()
				drained := make(chan error)
				go func() { drained <- g.Drain(t.Context()) }()
				require.ErrorIs(t, <-refused, api.ErrDraining)
				e.Exit()
				require.NoError(t, <-drained)
			})
		}
	}
}

// If the client has disconnected, nobody reads the response. If the server closes, the error says
// so: because the guard drains, or with the cause that ended the requests' context, as in
// signal.NotifyContext.
func TestDepartedClientOrClosingServer(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(g *api.Guard, cancel context.CancelCauseFunc)
		reason refusal.Reason
		status int
	}{
		"the client disconnects": {func(_ *api.Guard, cancel context.CancelCauseFunc) { cancel(nil) }, refusal.Gone, 499},
		"a signal":               {func(_ *api.Guard, cancel context.CancelCauseFunc) { cancel(errors.New("terminated")) }, refusal.Closing, http.StatusServiceUnavailable},
		"the server closed":      {func(_ *api.Guard, cancel context.CancelCauseFunc) { cancel(http.ErrServerClosed) }, refusal.Closing, http.StatusServiceUnavailable},
		"both": {func(g *api.Guard, cancel context.CancelCauseFunc) {
			ended, end := context.WithCancel(context.Background())
			end()
			_ = g.Drain(ended)
			cancel(nil)
		}, refusal.Closing, http.StatusServiceUnavailable},
	} {
		for _, resource := range []string{"turns", "queue"} {
			t.Run(name+", "+resource, func(t *testing.T) {
				bubbled(t, func(t *testing.T, g *api.Guard, call func(ctx context.Context, name string, opts ...api.Option) <-chan outcome) {
					runs := <-call(t.Context(), resource)
					defer runs.entry.Exit()
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					waits := call(ctx, resource)
					c.end(g, cancel)
					refused := refusal.Of((<-waits).err)
					assert.Equal(t, c.reason, refused.Reason)
					assert.Equal(t, c.status, refused.HTTPStatus())
					after, known := refused.RetryAfter(time.Second)
					assert.Equal(t, c.reason == refusal.Closing, known)
					assert.Equal(t, known, after == 1)
				})
			})
		}
	}
}

// annotated wraps an error as github.com/pkg/errors does, whose Cause returns the wrapped error.
type annotated struct{ error }

func (a annotated) Cause() error  { return a.error }
func (a annotated) Unwrap() error { return a.error }

// A wrapper with a method Cause doesn't turn a disconnected client into a closing server.
func TestDepartedClientInAWrappedError(t *testing.T) {
	bubbled(t, func(t *testing.T, g *api.Guard, call func(ctx context.Context, name string, opts ...api.Option) <-chan outcome) {
		runs := <-call(t.Context(), "queue")
		defer runs.entry.Exit()
		ctx, cancel := context.WithCancel(t.Context())
		waits := call(ctx, "queue")
		cancel()
		assert.Equal(t, refusal.Gone, refusal.Of(annotated{(<-waits).err}).Reason)
	})
}

// several is an error that can't be compared.
type several []error

func (several) Error() string { return "several" }

// endsWith is a user's context that ends with such an error.
type endsWith struct {
	context.Context
	done chan struct{}
}

func (e endsWith) Done() <-chan struct{} { return e.done }
func (e endsWith) Err() error {
	select {
	case <-e.done:
		return several{}
	default:
		return nil
	}
}

// The error of a call that gave up has a text, regardless of the error that ended its context.
func TestTextOfACallThatGaveUp(t *testing.T) {
	bubbled(t, func(t *testing.T, g *api.Guard, call func(ctx context.Context, name string, opts ...api.Option) <-chan outcome) {
		runs := <-call(t.Context(), "queue")
		defer runs.entry.Exit()
		ctx := endsWith{context.WithoutCancel(t.Context()), make(chan struct{})}
		waits := call(ctx, "queue")
		close(ctx.done)
		err := (<-waits).err
		require.ErrorIs(t, err, api.ErrBlocked)
		assert.Contains(t, err.Error(), "gave up waiting")
	})
}
