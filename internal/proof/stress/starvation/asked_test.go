package starvation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/slots"
	"github.com/penstock-go/penstock/system"
)

// last is a slot behind all others: it sees whether all of them accepted the call when asked, and
// again when they took it.
type last struct{ asked, took bool }

func (*last) Name() string                                 { return "last" }
func (l *last) Ask(*engine.Invocation) (v engine.Verdict)  { l.asked = true; return v }
func (l *last) Take(*engine.Invocation) (v engine.Verdict) { l.took = true; return v }

// If calls are made one after the other, no rule that accepted a call when asked refuses it when
// taking. So a refusal names the first rule in the order of the chain and of the file, and an
// accepted call can fail only because other calls were quicker. known bug 115
func TestWhoIsAskedAndFitsTakes(t *testing.T) {
	histories := figure.Size(20, 60, 5000, 100_000)
	asked, wrong := 0, 0
	for i := range histories {
		synctest.Test(t, func(t *testing.T) {
			a, w := history(t, rand.New(rand.NewPCG(*chance.Seed, uint64(i))))
			asked, wrong = asked+a, wrong+w
		})
	}
	figure.Report(t, figure.Figure{
		Name: "refused by a rule that had room when asked", Value: float64(wrong), N: int64(asked), Seed: *chance.Seed,
	})
}

// history makes calls under rules of all families; the calls wait, give up, are canceled and meet
// changed rules. It returns the number of calls, and for how many of them the refusing rule differed
// from the rule when asked.
func history(t *testing.T, r *rand.Rand) (asked, wrong int) {
	behind := new(last)
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	g, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler), Chain: (*slots.Chain)(trial.Chain().With(behind, engine.After("outlier")))})
	require.NoError(t, err)
	set := anyRules(r)
	require.NoError(t, g.LoadRules(set))
	var mu sync.Mutex // several may be admitted at one instant
	var inside []api.Admitted
	var leave []context.CancelFunc
	for range 60 {
		switch r.IntN(8) {
		case 0:
			clock.Advance(time.Duration(r.IntN(300)) * time.Millisecond)
		case 1:
			if n := len(inside); n > 0 {
				k := r.IntN(n)
				e := inside[k]
				inside = slices.Delete(inside, k, k+1)
				if r.IntN(3) == 0 {
					e.Fail(errors.New("down"))
				}
				e.Exit() // admits others
			}
		case 2:
			if n := len(leave); n > 0 {
				k := r.IntN(n)
				leave[k]()
				leave = slices.Delete(leave, k, k+1)
			}
		case 3:
			if r.IntN(4) == 0 {
				set = changedRules(r, set)
				require.NoError(t, g.LoadRules(set))
			}
		default:
			opts := []engine.Option{api.Inbound(), api.Units(1 + r.IntN(2)), api.Param("user", r.IntN(2))}
			if r.IntN(2) == 0 {
				opts = append(opts, api.Prioritized())
			}
			ctx, cancel := context.WithCancel(api.WithOrigin(api.WithContext(context.Background(), "web"), []string{"", "a", "b"}[r.IntN(3)]))
			leave = append(leave, cancel)
			*behind = last{}
			asked++
			go func() {
				if e, err := g.Entry(ctx, "orders", opts...); err == nil {
					mu.Lock()
					inside = append(inside, e)
					mu.Unlock()
				}
			}()
			synctest.Wait()
			if behind.asked && !behind.took {
				t.Logf("every rule had room when asked, but one of them refused: %+v", set)
				wrong++
			}
		}
		synctest.Wait()
	}
	for _, cancel := range leave {
		cancel()
	}
	synctest.Wait()
	for _, e := range slices.Clone(inside) {
		e.Exit()
	}
	if n := g.Engine().Waiting(); n != 0 {
		t.Errorf("%d calls wait, of none", n)
	}
	require.NoError(t, g.Close())
	return asked, wrong
}

func anyRules(r *rand.Rand) (set rules.Set) {
	for i := range 1 + r.IntN(4) {
		set.Flow = append(set.Flow, anyFlow(r, fmt.Sprint("flow ", i)))
	}
	for i := range r.IntN(3) {
		queue := r.IntN(3)
		set.Isolation = append(set.Isolation, isolation.Rule{
			ID: fmt.Sprint("isolation ", i), Resource: "orders", Threshold: 1 + r.IntN(4), MaxQueue: queue, MaxWait: time.Duration(min(queue, 1)) * time.Second,
		})
	}
	for i := range r.IntN(3) {
		metric := []system.Metric{system.QPS, system.Concurrency}[r.IntN(2)]
		s := system.Rule{ID: fmt.Sprint("system ", i), Metric: metric, Threshold: float64(1 + r.IntN(6))}
		if metric == system.QPS {
			s.Buckets = []int{1, 2, 4, 5}[r.IntN(4)]
		}
		set.System = append(set.System, s)
	}
	if r.IntN(2) == 0 {
		set.Hotspot = append(set.Hotspot, hotspot.Rule{
			ID: "hotspot", Resource: "orders", Param: "user", Threshold: float64(1 + r.IntN(4)),
			Behavior: []hotspot.Behavior{hotspot.Reject, hotspot.Throttle, hotspot.TokenBucket}[r.IntN(3)],
		})
	}
	if r.IntN(2) == 0 {
		set.Adaptive = append(set.Adaptive, adaptive.Rule{ID: "adaptive", Resource: "orders", Start: 1 + r.IntN(4)})
	}
	if r.IntN(2) == 0 {
		set.Breaker = append(set.Breaker, breaker.Rule{ID: "breaker", Resource: "orders", Strategy: breaker.ErrorCount, Threshold: 1, MinCalls: 1, Recovery: 300 * time.Millisecond})
	}
	return set
}

func anyFlow(r *rand.Rand, id string) flow.Rule {
	f := flow.Rule{
		ID: id, Resource: "orders", Threshold: float64(1 + r.IntN(4)),
		Origin: []string{"", "", "a", flow.OriginOther}[r.IntN(4)],
	}
	switch r.IntN(4) {
	case 0:
		f.Metric = flow.Concurrency
	case 1:
		f.Behavior, f.MaxWait = flow.Throttle, time.Duration(r.IntN(3))*time.Second
	default:
		f.Interval, f.Buckets = []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}[r.IntN(3)], []int{1, 2, 4, 5}[r.IntN(4)]
		if r.IntN(4) != 0 {
			f.Window = flow.Ring
		}
	}
	return f
}

func changedRules(r *rand.Rand, set rules.Set) rules.Set {
	set.Flow = slices.Clone(set.Flow)
	i := r.IntN(len(set.Flow))
	set.Flow[i] = anyFlow(r, set.Flow[i].ID)
	return set
}
