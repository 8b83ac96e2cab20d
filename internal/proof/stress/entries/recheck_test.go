package entries

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	breakers "github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

// A breaker opens while a call waits for a permit or for a turn: the call is refused at the end of
// its wait, and returns everything that it has taken: its units of every rule, its permits, and the
// turn, which goes to the next call.
func TestRefusedWhenItsWaitIsOver(t *testing.T) {
	const limit, turn, recovery = 10, time.Minute, time.Minute + time.Second
	for name, wait := range map[string]rules.Set{
		"a permit": {Isolation: []isolation.Rule{{Resource: "orders", Threshold: 2, MaxQueue: 9, MaxWait: time.Hour}}},
		"a turn": {Flow: []flow.Rule{{
			Resource: "orders", Threshold: 1, Interval: turn / 2, Behavior: flow.Throttle, MaxWait: time.Hour,
		}}},
		"the turn of a value": {Hotspot: []hotspot.Rule{{
			Resource: "orders", Param: "user", Threshold: 1, Interval: turn / 2, Behavior: hotspot.Throttle, MaxWait: time.Hour,
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := clocks.NewManual(start)
				g, err := api.New(api.Config{Clock: clock, Logger: silent})
				require.NoError(t, err)
				defer func() { require.NoError(t, g.Close()) }()
				set := wait
				set.Flow = append(set.Flow, flow.Rule{ID: "units", Resource: "orders", Threshold: limit, Interval: time.Hour},
					flow.Rule{ID: "at once", Resource: "orders", Threshold: limit, Metric: flow.Concurrency})
				set.System = []system.Rule{{Metric: system.QPS, Threshold: limit, Interval: time.Hour}}
				set.Breaker = []breakers.Rule{{Resource: "orders", Strategy: breakers.ErrorCount, Threshold: 1, MinCalls: 1, Recovery: recovery}}
				require.NoError(t, g.LoadRules(set))
				enter := func(units int) (api.Admitted, error) {
					return g.Entry(context.Background(), "orders", api.Inbound(), api.Units(units), api.Param("user", "ann"))
				}

				clock.SetSleep(clocks.SleepAdvance) // the second waits for its turn
				fails, err := enter(1)
				require.NoError(t, err)
				stays, err := enter(1)
				require.NoError(t, err)
				clock.SetSleep(clocks.SleepPark)
				waits := make(chan error)
				go func() {
					_, err := enter(2) // both permits, or two turns
					waits <- err
				}()
				synctest.Wait()
				require.EqualValues(t, 1, g.Engine().Waiting())
				fails.Fail(errors.New("down"))
				fails.Exit()
				synctest.Wait()
				require.Equal(t, breakers.Open, g.Breakers()[0].State)
				require.EqualValues(t, 1, g.Engine().Waiting(), "it waits for more than that")
				stays.Exit()
				clock.SetSleep(clocks.SleepRecord)
				clock.Advance(turn)
				require.Equal(t, core.KindBreaker, core.KindOf(<-waits))

				clock.Advance(recovery - turn) // less than a turn after the turn that it had
				require.Zero(t, g.Engine().Waiting())
				r, _ := g.Engine().FindResource("orders")
				for _, w := range append(r.Meters().Windows(), g.Engine().Tree().Inbound().Meters().Windows()...) {
					assert.EqualValues(t, 2, w.Sum(clock.Now()), "%v", w.Meter)
				}
				passed, slept := 0, len(clock.Slept())
				for range limit {
					if e, err := enter(1); err == nil {
						passed++
						e.Exit()
					}
					clock.Advance(turn)
				}
				assert.Equal(t, limit-2, passed, "two of ten have run")
				assert.Len(t, clock.Slept(), slept, "nobody waits for the turn of the call that was refused")
				assert.Empty(t, books.Unsettled(g.Engine()))
			})
		})
	}
}
