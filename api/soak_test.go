package api_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

var seed = chance.Seed

// Names beyond every cap, nested calls, origins, reloads, evictions, readers and a clock that leaps
// all occur at once. Under every schedule, each call is counted once, and nothing is held at the
// end.
func TestSoak(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	rounds := figure.Size(250, 700, 2_700, 2_700)
	if race.Enabled {
		rounds = 250
	}
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	clock.SetSleep(clocks.SleepRecord)
	g := newGuard(t, api.Config{Clock: clock, Caps: node.Caps{Resources: 20, Contexts: 4, Calls: 40, Origins: 10}})

	require.NoError(t, g.LoadRules(randomRules(rand.New(rand.NewPCG(*seed, 2)))))

	var passed, blocked, failed atomic.Int64
	call := func(rnd *rand.Rand) {
		ctx := api.WithContext(t.Context(), fmt.Sprint("ctx", rnd.IntN(8)))
		ctx = api.WithOrigin(ctx, []string{"", "app", "web", "x", "y", "z"}[rnd.IntN(6)])
		opts := []engine.Option{api.Inbound()}
		if rnd.IntN(4) == 0 {
			opts = append(opts, api.Prioritized(), api.Units(1+rnd.IntN(3)))
		}
		var open []api.Admitted
		for range 1 + rnd.IntN(3) {
			e, err := g.Entry(ctx, fmt.Sprint("r", rnd.IntN(40)), opts...)
			if err != nil {
				blocked.Add(1)
				continue
			}
			passed.Add(1)
			if rnd.IntN(5) == 0 {
				e.Fail(errors.New("x"))
				failed.Add(1)
			}
			open, ctx = append(open, e), e.Context()
		}
		for _, i := range rnd.Perm(len(open)) {
			open[i].Exit()
			open[i].Exit()
		}
	}
	var work sync.WaitGroup
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		rnd := rand.New(rand.NewPCG(*seed, 1))
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			clock.Advance(time.Duration(rnd.IntN(300)) * time.Millisecond)
			switch {
			case i%40 == 0:
				clock.Advance(2 * time.Minute) // idle nodes may be evicted
			case i%7 == 0:
				g.Engine().Tree().Evict(clock.Now())
			case i%5 == 0:
				assert.NoError(t, g.LoadRules(randomRules(rnd)))
			case i%3 == 0:
				g.Tree()
			}
		}
	})
	for i := range 8 {
		work.Go(func() {
			rnd := rand.New(rand.NewPCG(*seed, uint64(100+i)))
			for range rounds {
				call(rnd)
			}
		})
	}
	work.Wait()
	close(stop)
	others.Wait()

	inbound := g.Engine().Tree().Inbound()
	totals := inbound.Totals()
	assert.Equal(t, passed.Load(), totals.Entered)
	assert.Equal(t, passed.Load(), totals.Exited)
	assert.Positive(t, blocked.Load())
	assert.Zero(t, inbound.InFlight())
	assert.Zero(t, g.Engine().Failures())
	g.Engine().EachResource(func(r *engine.Resource) {
		assert.Zero(t, r.InFlight(), r.Name())
		if semaphore := r.Meters().Semaphore(nil); semaphore != nil {
			assert.Zero(t, semaphore.Held(), r.Name())
		}
	})
	clock.Advance(10 * time.Minute)
	g.Engine().EachResource(func(r *engine.Resource) {
		for _, w := range r.Meters().Windows() {
			assert.Zero(t, w.Waiting(clock.Now()), r.Name())
		}
	})
	require.NoError(t, g.LoadRules(rules.Set{}))
	g.Engine().Tree().Evict(clock.Now())
	assert.Zero(t, g.Engine().Tree().Resources().Used(), "nothing is in use, so everything can leave")
	assert.Zero(t, g.Engine().Tree().Calls().Used())
	assert.Zero(t, g.Engine().Tree().Origins().Used())
	assert.Zero(t, g.Engine().Tree().Contexts().Used())
}

func randomRules(rnd *rand.Rand) rules.Set {
	set := rules.Set{Flow: []flow.Rule{{ID: "shut", Resource: "r39"}}}
	for i := range rnd.IntN(12) {
		r := flow.Rule{ID: fmt.Sprint("rule", i), Resource: fmt.Sprint("r", rnd.IntN(20)), Threshold: float64(rnd.IntN(20))}
		switch rnd.IntN(8) {
		case 0:
			r.Metric = flow.Concurrency
		case 1:
			r.Behavior = flow.Throttle
		case 2:
			r.Behavior = flow.WarmUp
		case 3:
			r.Origin = []string{"app", "other", "w"}[rnd.IntN(3)]
		case 4:
			r.Relation, r.Ref = flow.Associated, fmt.Sprint("r", rnd.IntN(20))
		case 5:
			r.Relation, r.Ref = flow.Chain, fmt.Sprint("ctx", rnd.IntN(4))
		case 6:
			r.Resource, r.Match, r.Mode = "r1.*", spec.MatchRegex, spec.Mode(rnd.IntN(3))
		case 7:
			r.Interval, r.Window = 5*time.Second, flow.Strict
		}
		set.Flow = append(set.Flow, r)
	}
	return set
}
