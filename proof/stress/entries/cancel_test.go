package entries

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/proof/figure"
)

// A wait of each kind, on a resource with room for permits.
const permits = 2

var waits = []struct {
	name  string
	rules []flow.Rule
	// spend is how many calls come first, so that the next must wait.
	spend int
	pause time.Duration
	opts  []core.Option
}{
	{"throttle", []flow.Rule{{Resource: "orders", Threshold: 10, Behavior: flow.Throttle}}, 1, 0, nil},
	{"borrow", []flow.Rule{{Resource: "orders", Threshold: 4}}, 4, 600 * time.Millisecond, []core.Option{core.Prioritized()}},
	{"both", []flow.Rule{
		{Resource: "orders", Threshold: 10, Behavior: flow.Throttle},
		{ID: "window", Resource: "orders", Threshold: 4},
	}, 1, 0, []core.Option{core.Prioritized()}},
}

// The context ends right before the grant, right after it, or on another goroutine at
// the same instant. The call runs or is refused, never both; it has what it took, or
// nothing; and who comes next finds its place free. known bug 58, 59, 61
func TestCancelAtTheGrant(t *testing.T) {
	rounds := figure.Size(30, 400, 5_000, 50_000)
	wrong, n := 0, 0
	for _, wait := range waits {
		for _, order := range []string{"before", "after", "at once"} {
			t.Run(wait.name+"/"+order, func(t *testing.T) {
				clock := clocks.NewManual(start)
				rules := append([]flow.Rule{{ID: "room", Resource: "orders", Threshold: permits, Metric: flow.Concurrency}}, wait.rules...)
				e := newEngine(t, core.Config{Clock: clock}, rules...)
				r, _ := e.FindResource("orders")
				admitted, refused := int64(0), int64(0)
				for range rounds {
					n++
					clock.Advance(time.Hour) // to a time when all is idle, at the begin of a bucket
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
						inside.Store(r.Semaphore(nil).InUse())
						result <- err
						<-exit
						entry.Exit()
					})
					clock.AwaitParked(1)
					if r.Semaphore(nil).InUse() != 1 {
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
					if inside.Load() != want || r.Semaphore(nil).InUse() != want {
						wrong++
						t.Errorf("%d permits in use, should be %d", r.Semaphore(nil).InUse(), want)
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

// A place that a cancelled call leaves in the window it borrowed from, or at the end
// of a queue, is there for the next one. known bug 58, 62
func TestPlaceOfACancelledCallIsFree(t *testing.T) {
	for _, wait := range waits {
		t.Run(wait.name, func(t *testing.T) {
			clock := clocks.NewManual(start)
			e := newEngine(t, core.Config{Clock: clock}, wait.rules...)
			for range wait.spend {
				entry, err := e.Enter(t.Context(), "orders", nil)
				require.NoError(t, err)
				entry.Exit()
			}
			clock.Advance(wait.pause)
			var first time.Duration
			for i := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				result := make(chan error, 1)
				go func() {
					_, err := e.Enter(ctx, "orders", wait.opts)
					result <- err
				}()
				clock.AwaitParked(1)
				cancel()
				require.ErrorIs(t, <-result, context.Canceled)
				slept := clock.Slept()
				if i == 0 {
					first = slept[len(slept)-1]
				}
				require.Equal(t, first, slept[len(slept)-1], "call %d waits no longer than the first", i)
			}
		})
	}
}

// On the machine's clock, in fake time: many callers in one queue, most of whose
// contexts end at the instant of some grant. Whoever is let in comes no sooner than the
// rule says after the one before, nobody waits forever, and nothing is held in the end.
func TestManyCancelledWaits(t *testing.T) {
	for round := range figure.Size(2, 10, 100, 1000) {
		rnd := random(t, uint64(round))
		delays := make([]time.Duration, 120)
		for i := range delays {
			delays[i] = time.Duration(1+rnd.IntN(50)) * 10 * time.Millisecond // when grants are
		}
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEngine(t, core.Config{Clock: clocks.NewSystem()},
					flow.Rule{Resource: "orders", Threshold: 100, Behavior: flow.Throttle, MaxWait: 10 * time.Second},
					flow.Rule{ID: "room", Resource: "orders", Threshold: 1000, Metric: flow.Concurrency})
				began := time.Now()
				var mu sync.Mutex
				runs := map[time.Duration]int{}
				var done sync.WaitGroup
				var passed, refused atomic.Int64
				for i, delay := range delays {
					done.Go(func() {
						ctx := t.Context()
						if i%4 != 0 {
							var cancel context.CancelFunc
							ctx, cancel = context.WithCancel(ctx)
							defer cancel()
							time.AfterFunc(delay, cancel)
						}
						entry, err := e.Enter(ctx, "orders", nil)
						defer entry.Exit()
						if err != nil {
							refused.Add(1)
							assert.ErrorIs(t, err, context.Canceled)
							assert.NotZero(t, i%4, "who has all the time runs")
							return
						}
						passed.Add(1)
						mu.Lock()
						defer mu.Unlock()
						runs[time.Since(began)]++
					})
				}
				done.Wait()
				for at, n := range runs {
					assert.Equal(t, 1, n, "at %v", at)
				}
				r, _ := e.FindResource("orders")
				totals := r.Totals()
				assert.Equal(t, int64(len(delays)), passed.Load()+refused.Load())
				assert.Equal(t, passed.Load(), totals.Pass)
				assert.Equal(t, refused.Load(), totals.Block)
				assert.Zero(t, r.Semaphore(nil).InUse())
			})
		})
	}
}
