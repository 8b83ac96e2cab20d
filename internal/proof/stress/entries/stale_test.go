package entries

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/race"
)

// uses lists the operations on an ended handle, by method. Each reports whether the method behaved
// as it must on an ended entry.
var uses = map[string][]func(engine.Entry) bool{
	"Exit":         {func(e engine.Entry) bool { e.Exit(); return true }},
	"Fail":         {func(e engine.Entry) bool { e.Fail(errBroken); return true }},
	"ExitFailed":   {func(e engine.Entry) bool { e.ExitFailed(); return true }},
	"Settle":       {func(e engine.Entry) bool { e.Settle("tokens", 5); return true }},
	"More":         {func(e engine.Entry) bool { return errors.Is(e.More(context.Background(), "tokens", 5), core.ErrExited) }},
	"Reserved":     {func(e engine.Entry) bool { return e.Reserved("tokens") == 0 }},
	"Remaining":    {func(e engine.Entry) bool { _, known := e.Remaining(""); return !known }},
	"SetLongLived": {func(e engine.Entry) bool { e.SetLongLived(); return true }},
	"Context":      {func(e engine.Entry) bool { return e.Context() == context.Background() }},
	"ContextIn":    {func(e engine.Entry) bool { return e.ContextIn(new(engine.Nested)) == context.Background() }},
}

// A new method of Entry needs its uses here.
func TestEveryMethodIsUsed(t *testing.T) {
	methods := map[string]bool{}
	for _, entry := range []reflect.Type{reflect.TypeFor[engine.Entry](), reflect.TypeFor[*engine.Entry]()} {
		for method := range entry.Methods() {
			methods[method.Name] = true
			assert.Contains(t, uses, method.Name, "say what can be done with it when the entry has ended")
		}
	}
	for name := range uses {
		assert.Contains(t, methods, name)
	}
}

// user is one goroutine with its own resource, so that it knows exactly what is in flight there.
type user struct {
	engine   *engine.Engine
	resource *engine.Resource
	ctx      context.Context
	name     string
	entered  int64
	failed   int64
	harmed   int64
}

// check records an error if the number of calls in flight shows that a live call was affected.
func (u *user) check(want int64) {
	if u.resource.Meters().Semaphore(nil).InUse() != want {
		u.harmed++
	}
}

func (u *user) enter() engine.Entry {
	entry, err := u.engine.Enter(u.ctx, u.name, nil)
	if err != nil {
		u.harmed++ // there is room, unless another call's exit was lost
		return entry
	}
	u.entered++
	return entry
}

// Ended handles, the caller's own and others', are used in every way while the state behind them
// serves live calls; entries exit twice, at once, and on other goroutines. No live call notices.
// known bug 53, 56, 65
func TestUseAfterExit(t *testing.T) {
	const users = 4
	rounds := figure.Size(20_000, 800_000, 10_000_000, 50_000_000) / users
	if race.Enabled {
		rounds /= 6
	}
	rules := make([]flow.Rule, users)
	for i := range rules {
		rules[i] = flow.Rule{Resource: strconv.Itoa(i), Threshold: 2, Metric: flow.Concurrency}
	}
	e := newEngine(t, engine.Config{}, rules...)
	var all []func(engine.Entry) bool
	for _, some := range uses {
		all = append(all, some...)
	}
	var over [64]atomic.Pointer[engine.Entry] // handles for anybody to use
	elsewhere := make(chan func())
	var helpers, done sync.WaitGroup
	for range 2 {
		helpers.Go(func() {
			for exit := range elsewhere {
				exit()
			}
		})
	}
	var entered, harmed, failed atomic.Int64
	for i := range users {
		rnd := random(t, uint64(i))
		done.Go(func() {
			r, ok := e.FindResource(strconv.Itoa(i))
			if !ok {
				t.Error("the rule's resource is missing")
				return
			}
			u := &user{engine: e, resource: r, name: r.Name(), ctx: engine.WithOrigin(context.Background(), r.Name())}
			misuse := func(n int) {
				for range n {
					if h := over[rnd.IntN(len(over))].Load(); h != nil && !all[rnd.IntN(len(all))](*h) {
						u.harmed++
					}
				}
			}
			for round := range rounds / 2 {
				first := u.enter()
				fails := rnd.IntN(8) == 0
				if fails {
					first.Fail(errBroken)
					u.failed++
				}
				misuse(1)
				u.check(1)
				if round%256 == 0 { // on two other goroutines, at once
					var both sync.WaitGroup
					both.Add(2)
					for range 2 {
						elsewhere <- func() { first.Exit(); both.Done() }
					}
					both.Wait()
				} else {
					first.Exit()
				}
				u.check(0)
				over[rnd.IntN(len(over))].Store(&first)

				second := u.enter() // most likely reuses the state of the first
				for _, use := range all[:1+round%len(all)] {
					if !use(first) {
						u.harmed++
					}
				}
				misuse(2)
				u.check(1)
				if round%16 == 0 {
					if c := engine.ContextOf(second.Context()); c == nil || c.Origin() != u.name {
						u.harmed++
					}
				}
				second.Exit()
				u.check(0)
			}
			totals := r.Totals()
			if totals.Entered != u.entered || totals.Exited != u.entered || totals.Exception != u.failed || totals.LongLived != 0 {
				u.harmed++
			}
			entered.Add(u.entered)
			harmed.Add(u.harmed)
			failed.Add(u.failed)
		})
	}
	done.Wait()
	close(elsewhere)
	helpers.Wait()
	require.Positive(t, failed.Load())
	figure.Report(t, figure.Figure{Name: "use after exit harms a stranger", Value: float64(harmed.Load()), N: entered.Load(), Seed: *seed})
}
