package entries

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/figure"
)

// Each kind of wait, on a resource with this many permits.
const permits = 2

var waits = []struct {
	name  string
	rules []flow.Rule
	// spend is the number of calls made first, so that the next one must wait.
	spend int
	pause time.Duration
	opts  []engine.Option
}{
	{"throttle", []flow.Rule{{Resource: "orders", Threshold: 10, Behavior: flow.Throttle}}, 1, 0, nil},
	{"borrow", []flow.Rule{{Resource: "orders", Threshold: 4}}, 4, 600 * time.Millisecond, []engine.Option{engine.Prioritized()}},
	{"both", []flow.Rule{
		{Resource: "orders", Threshold: 10, Behavior: flow.Throttle},
		{ID: "window", Resource: "orders", Threshold: 4},
	}, 1, 0, []engine.Option{engine.Prioritized()}},
}

// The context ends right before the grant, right after it, or on another goroutine at the same
// instant. The call runs or is refused, never both; it holds everything that it took, or nothing;
// and the next call takes its place. known bug 58, 59, 61
func TestCancelAtTheGrant(t *testing.T) {
	rounds := figure.Size(30, 400, 5_000, 50_000)
	wrong, n := 0, 0
	for _, wait := range waits {
		for _, order := range []string{"before", "after", "at once"} {
			t.Run(wait.name+"/"+order, func(t *testing.T) {
				clock := clocks.NewManual(start)
				rules := append([]flow.Rule{{ID: "room", Resource: "orders", Threshold: permits, Metric: flow.Concurrency}}, wait.rules...)
				e := newEngine(t, engine.Config{Clock: clock}, rules...)
				r, _ := e.FindResource("orders")
				admitted, refused := int64(0), int64(0)
				for range rounds {
					n++
					clock.Advance(time.Hour) // to the beginning of a bucket when everything is idle
					clock.AdvanceTo(clock.Now()/int64(time.Second)*int64(time.Second) + int64(time.Second))
					for range wait.spend {
						entry, err := e.Enter(t.Context(), "orders", nil)
						require.NoError(t, err)
						entry.Exit()
						admitted++
					}
					clock.Advance(wait.pause)

					ctx, cancel := context.WithCancel(t.Context())
					var inside atomic.Int64
					result := make(chan error, 1)
					exit := make(chan struct{})
					var call sync.WaitGroup
					call.Go(func() {
						entry, err := e.Enter(ctx, "orders", wait.opts)
						inside.Store(r.Meters().Semaphore(nil).InUse())
						result <- err
						<-exit
						entry.Exit()
					})
					clock.AwaitParked(1)
					if r.Meters().Semaphore(nil).InUse() != 1 {
						wrong++
						t.Error("a call that waits holds a permit")
					}
					switch order {
					case "before":
						cancel()
						clock.Advance(time.Second)
					case "after":
						clock.Advance(time.Second)
						cancel()
					default:
						var both sync.WaitGroup
						both.Go(cancel)
						clock.Advance(time.Second)
						both.Wait()
					}
					err := <-result
					want := int64(1)
					if err != nil {
						want = 0
						refused++
						require.ErrorIs(t, err, context.Canceled)
						require.ErrorIs(t, err, core.ErrBlocked)
					} else {
						admitted++
					}
					if order == "before" && err == nil || order == "after" && err != nil {
						wrong++
						t.Errorf("%s the grant: %v", order, err)
					}
					if inside.Load() != want || r.Meters().Semaphore(nil).InUse() != want {
						wrong++
						t.Errorf("%d permits in use, should be %d", r.Meters().Semaphore(nil).InUse(), want)
					}
					close(exit)
					call.Wait()
					cancel()
					totals := r.Totals()
					if totals.Pass != admitted || totals.Block != refused || e.Waiting() != 0 || clock.Parked() != 0 {
						wrong++
						t.Errorf("%d passed and %d refused are counted, should be %d and %d", totals.Pass, totals.Block, admitted, refused)
					}
				}
			})
		}
	}
	figure.Report(t, figure.Figure{Name: "waits lost or granted twice when cancelled at the grant", Value: float64(wrong), N: int64(n)})
}
