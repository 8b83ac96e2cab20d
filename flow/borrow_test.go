package flow_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
)

func TestBorrow(t *testing.T) {
	four := flow.Rule{ID: "r", Resource: "orders", Threshold: 4, Window: flow.Ring}
	for _, tt := range []struct {
		name   string
		cfg    engine.Config
		rules  []flow.Rule
		script []step
	}{
		{"what expires can be borrowed", engine.Config{}, []flow.Rule{four}, []step{
			{100 * ms, "orders", 4, "pass x4"},
			{600 * ms, "orders", 1, "block"},
			{600 * ms, "orders first", 5, "400ms x4, block"},
			{1000 * ms, "orders", 1, "block"}, // borrowed
			{1500 * ms, "orders", 1, "block"},
			{2000 * ms, "orders", 5, "pass x4, block"},
		}},
		{"nothing expires in the next bucket", engine.Config{}, []flow.Rule{four}, []step{
			{600 * ms, "orders", 4, "pass x4"},
			{700 * ms, "orders first", 1, "block"}, // 800 ms away
		}},
		{"never at the edge", engine.Config{}, []flow.Rule{four}, []step{
			{0, "orders", 4, "pass x4"},
			{500 * ms, "orders first", 1, "block"}, // 500 ms is not below the time-out
			{500*ms + 1, "orders first", 1, "499.999999ms"},
		}},
		{"a longer time-out", engine.Config{OccupyTimeout: time.Second}, []flow.Rule{four}, []step{
			{600 * ms, "orders", 4, "pass x4"},
			{700 * ms, "orders first", 2, "800ms x2"},
			{1200 * ms, "orders first", 3, "300ms x2, block"},
		}},
		{"batches", engine.Config{}, []flow.Rule{four}, []step{
			{100 * ms, "orders x4", 1, "pass"},
			{600 * ms, "orders x3 first", 2, "400ms, block"},
			{600 * ms, "orders x5 first", 1, "block"},
			{600 * ms, "orders first", 2, "400ms, block"},
		}},
		{"who fits doesn't wait", engine.Config{}, []flow.Rule{four}, []step{
			{100 * ms, "orders first", 5, "pass x4, block"}, // the next bucket pushes out an empty one
		}},
		{"a threshold of nothing", engine.Config{}, []flow.Rule{{Resource: "orders", Threshold: 0.5, Window: flow.Ring}}, []step{
			{100 * ms, "orders first", 2, "block x2"},
		}},
		{"strict", engine.Config{}, []flow.Rule{{Resource: "orders", Threshold: 4, Buckets: 2, Window: flow.Strict}}, []step{
			{100 * ms, "orders", 4, "pass x4"},
			{600 * ms, "orders first", 1, "block"}, // the units count for 1.5 s
			{1100 * ms, "orders first", 5, "400ms x4, block"},
			{1500 * ms, "orders", 1, "block"},
		}},
		{"finer buckets", engine.Config{}, []flow.Rule{{Resource: "orders", Threshold: 4, Buckets: 10, Window: flow.Ring}}, []step{
			{0, "orders", 2, "pass x2"},
			{100 * ms, "orders", 2, "pass x2"},
			{950 * ms, "orders first", 5, "50ms x2, 150ms x2, block"},
		}},
		{"a warm-up rule lends nothing", engine.Config{}, []flow.Rule{{Resource: "orders", Threshold: 12, Behavior: flow.WarmUp, Window: flow.Ring}}, []step{
			{100 * ms, "orders", 4, "pass x4"},
			{600 * ms, "orders first", 1, "block"},
		}},
		{"permits can't be borrowed", engine.Config{}, []flow.Rule{{Resource: "orders", Threshold: 0.5, Metric: flow.Concurrency}}, []step{
			{100 * ms, "orders first", 1, "block"},
		}},
		{"two limits on one window", engine.Config{}, []flow.Rule{
			{ID: "a", Resource: "orders", Threshold: 10, Window: flow.Ring}, {ID: "b", Resource: "orders", Threshold: 4, Window: flow.Ring},
		}, []step{
			{100 * ms, "orders", 5, "pass x4, block"},
			{600 * ms, "orders first", 5, "400ms x4, block"},
			{1000 * ms, "orders", 1, "block"},
		}},
		{"two limits, the other way round", engine.Config{}, []flow.Rule{
			{ID: "b", Resource: "orders", Threshold: 4, Window: flow.Ring}, {ID: "a", Resource: "orders", Threshold: 10, Window: flow.Ring},
		}, []step{
			{100 * ms, "orders", 5, "pass x4, block"},
			{600 * ms, "orders first", 5, "400ms x4, block"},
			{1000 * ms, "orders", 1, "block"},
		}},
		{"two windows: the borrower counts when it runs", engine.Config{}, []flow.Rule{
			four, {ID: "s", Resource: "orders", Threshold: 6, Interval: time.Second, Buckets: 10, Window: flow.Ring},
		}, []step{
			{100 * ms, "orders", 4, "pass x4"},
			{600 * ms, "orders first", 3, "400ms x2, block"}, // a third would make seven at 1.0 s
			{1000 * ms, "orders", 1, "block"},
			{1100 * ms, "orders", 3, "pass x2, block"},
		}},
		{"the other resource lends nothing, but makes wait", engine.Config{}, []flow.Rule{
			{Resource: "orders", Threshold: 4, Relation: flow.Associated, Ref: "sql", Window: flow.Ring},
		}, []step{
			{100 * ms, "sql", 4, "pass x4"},
			{600 * ms, "orders", 1, "block"},
			{600 * ms, "orders first", 6, "400ms x6"}, // they take nothing from sql
			{1000 * ms, "orders", 1, "pass"},
		}},
		{"a queue that is longer", engine.Config{}, []flow.Rule{four, {ID: "q", Resource: "orders", Threshold: 2, Behavior: flow.Throttle, MaxWait: time.Hour}}, []step{
			{100 * ms, "orders", 4, "pass, 500ms, 1s, 1.5s"},
			{600 * ms, "orders first", 1, "1.5s"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			newGuardWith(t, tt.cfg, tt.rules...).run(tt.script)
		})
	}
}

// A borrower counts in the bucket in which it runs, as passed and as occupied, on every node of the
// call.
func TestBorrowersAreCounted(t *testing.T) {
	g := newGuard(t, flow.Rule{Resource: "orders", Threshold: 4, Window: flow.Ring})
	g.clock.SetSleep(clocks.SleepAdvance)
	g.run([]step{{100 * ms, "orders from app", 4, "pass x4"}, {600 * ms, "orders x3 from app first", 1, "400ms"}})
	r := g.resource("orders")
	app, _ := r.Origins().Find("app")
	for name, n := range map[string]interface {
		Waiting(int64) int64
	}{"cluster": r, "origin": app} {
		assert.Zero(t, n.Waiting(g.clock.Now()), name)
	}
	second := r.Second(g.clock.Now())
	assert.Equal(t, int64(3), second.Pass)
	assert.Equal(t, int64(3), second.Occupied)
	second = app.Second(g.clock.Now())
	assert.Equal(t, int64(3), second.Occupied)
	assert.Equal(t, int64(3), r.Meters().Windows()[0].Sum(g.clock.Now()))
}

// A call whose turn in a queue coincides with the start of the bucket that it borrows from is a
// borrower, whichever of the two rules takes first.
func TestBorrowAsLongAsTheQueue(t *testing.T) {
	queue := flow.Rule{ID: "q", Resource: "orders", Threshold: 1, Behavior: flow.Throttle, MaxWait: time.Second}
	window := flow.Rule{ID: "w", Resource: "orders", Threshold: 1, Window: flow.Ring}
	for _, rules := range [][]flow.Rule{{queue, window}, {window, queue}} {
		g := newGuard(t, rules...)
		g.clock.SetSleep(clocks.SleepAdvance)
		g.run([]step{{0, "orders", 1, "pass"}, {600 * ms, "orders first", 1, "400ms"}})
		second := g.resource("orders").Second(g.clock.Now())
		assert.Equal(t, int64(1), second.Occupied, rules[0].ID+" takes first")
	}
}

// While a borrower waits, it counts in the upcoming bucket; if it gives up, the units are free again
// and the call is never counted.
func TestBorrowerGivesUp(t *testing.T) {
	g := newGuard(t, flow.Rule{Resource: "orders", Threshold: 4, Window: flow.Ring}, flow.Rule{ID: "s", Resource: "orders", Threshold: 100, Interval: 10 * time.Second, Window: flow.Ring})
	g.run([]step{{100 * ms, "orders", 4, "pass x4"}})
	g.at(600 * ms)
	g.clock.SetSleep(clocks.SleepPark)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() {
		_, err := g.Enter(ctx, "orders", []engine.Option{engine.Prioritized(), engine.Units(3)})
		result <- err
	}()
	g.clock.AwaitParked(1)
	r := g.resource("orders")
	assert.Equal(t, int64(1), g.Waiting())
	for _, w := range r.Meters().Windows() {
		assert.Equal(t, int64(3), w.Waiting(g.clock.Now()), "in every window the call counts when it will run: %v", w.Shape)
	}
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
	assert.Zero(t, r.Waiting(g.clock.Now()))
	for _, w := range r.Meters().Windows() {
		assert.Equal(t, int64(4), w.Sum(g.clock.Now()), "%v", w.Shape)
		assert.Zero(t, w.Waiting(g.clock.Now()), "%v", w.Shape)
	}
	g.clock.SetSleep(clocks.SleepRecord)
	g.run([]step{{600 * ms, "orders first", 5, "400ms x4, block"}})
	totals := r.Totals()
	assert.Equal(t, int64(8), totals.Pass)
}

// A clock's Sleep may return early: a test clock that only records the waits, or a coarse clock by
// one tick. A borrower is then admitted before its bucket begins, and still counts in that bucket,
// even for a rule that applies to other callers on its path and has seen none of them yet.
// known bug 193
func TestBorrowersBeforeTheCallersOfAPath(t *testing.T) {
	path := flow.Rule{ID: "path", Resource: "orders", Threshold: 2, Relation: flow.Chain, Ref: "web", Origin: "app", Window: flow.Ring}
	all := flow.Rule{ID: "all", Resource: "orders", Threshold: 4, Window: flow.Ring}
	for _, first := range []string{"orders in web from app", "orders in job"} {
		t.Run(first, func(t *testing.T) {
			g := newGuard(t, path, all)
			g.run([]step{
				{0, first, 1, "pass"},
				{100 * ms, "orders in job", 3, "pass x3"},
				{600 * ms, "orders in web first", 2, "400ms x2"}, // counted from 1 s to 2 s
			})
			web, _ := g.resource("orders").Calls().Find("web")
			assert.EqualValues(t, 2, web.Waiting(g.clock.Now()))
			g.run([]step{
				{1500 * ms, "orders in web from app", 2, "block x2"},
				{2000 * ms, "orders in web from app", 3, "pass x2, block"},
			})
		})
	}
}

// A call whose deadline is before the upcoming bucket is refused at once and books nothing.
func TestBorrowerWithoutTime(t *testing.T) {
	g := newGuard(t, flow.Rule{Resource: "orders", Threshold: 4})
	g.run([]step{{100 * ms, "orders", 4, "pass x4"}})
	g.at(600 * ms)
	ctx, cancel := context.WithDeadline(t.Context(), start.Add(999*ms)) // long past, in the context's time
	defer cancel()
	_, err := g.Enter(ctx, "orders", []engine.Option{engine.Prioritized()})
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.Empty(t, g.clock.Slept())
	assert.Zero(t, g.resource("orders").Waiting(g.clock.Now()))
}

// While a borrower is waiting, a call may fit now but not in the upcoming bucket. The rule that
// refuses it for this reason does so when asked, so that the error doesn't name a rule declared
// later.
// known bug 115
func TestBorrowerAheadIsSeenWhenAsked(t *testing.T) {
	half := func(id, origin string) flow.Rule {
		return flow.Rule{ID: id, Resource: "orders", Threshold: 1, Interval: 500 * ms, Buckets: 4, Origin: origin, Window: flow.Ring}
	}
	g := newGuard(t, half("others", flow.OriginOther), half("all", ""))
	refusedBy := func(call string) string {
		_, err := g.enter(call)
		var b *core.BlockError
		require.ErrorAs(t, err, &b)
		return b.Rule
	}
	g.run([]step{
		{1375 * ms, "orders from b", 1, "pass"},
		{1615 * ms, "orders from a first", 1, "260ms"}, // "others" is charged when the call runs
	})
	g.at(1792 * ms)
	assert.Equal(t, "others", refusedBy("orders from a first"))
	assert.Equal(t, "others", refusedBy("orders from a"))
	assert.Equal(t, "all", refusedBy("orders from c"))
}

// A call that both borrows and queues waits for the longer of the two. If that is the borrowed
// bucket, all its windows charge it there; if it is the queue, windows that lend nothing charge it
// at the time of the decision.
func TestBorrowerThatQueues(t *testing.T) {
	for _, tt := range []struct {
		turn   float64 // seconds in the queue
		beside int64   // units borrowed from the window that lends nothing
	}{{0.2, 1}, {0.4, 1}, {3, 0}} {
		g := newGuard(t, flow.Rule{ID: "lends", Resource: "orders", Threshold: 4, Window: flow.Ring}, flow.Rule{ID: "long", Resource: "orders", Threshold: 100, Interval: 10 * time.Second, Window: flow.Ring})
		g.run([]step{{100 * ms, "orders", 4, "pass x4"}})
		g.load(flow.Rule{ID: "lends", Resource: "orders", Threshold: 4, Window: flow.Ring}, flow.Rule{ID: "long", Resource: "orders", Threshold: 100, Interval: 10 * time.Second, Window: flow.Ring},
			flow.Rule{ID: "queue", Resource: "orders", Origin: "app", Threshold: 1 / tt.turn, Behavior: flow.Throttle, MaxWait: time.Hour})
		g.at(600 * ms)
		g.clock.SetSleep(clocks.SleepPark)
		ctx, cancel := context.WithCancel(engine.WithOrigin(t.Context(), "app"))
		var done sync.WaitGroup
		for i := range 2 { // the first call takes the turn that is due now
			done.Go(func() {
				if e, err := g.Enter(ctx, "orders", []engine.Option{engine.Prioritized()}); err == nil {
					e.Exit()
				}
			})
			g.clock.AwaitParked(i + 1)
		}
		for _, w := range g.resource("orders").Meters().Windows() {
			want := int64(2)
			if w.Shape.Interval > time.Second {
				want = 1 + tt.beside
			}
			assert.Equal(t, want, w.Waiting(g.clock.Now()), "a turn of %v s: %v", tt.turn, w.Shape)
		}
		cancel()
		done.Wait()
	}
}

// A rule on a path that counts in no window creates none when a borrower takes that path.
func TestBorrowerOnThePathOfAQueue(t *testing.T) {
	g := newGuard(t,
		flow.Rule{ID: "all", Resource: "orders", Threshold: 4, Window: flow.Ring},
		flow.Rule{ID: "path", Resource: "orders", Threshold: 1, Relation: flow.Chain, Ref: "web", Metric: flow.Concurrency})
	g.run([]step{
		{100 * ms, "orders in job", 4, "pass x4"},
		{600 * ms, "orders in web first", 1, "400ms"},
	})
	assert.Zero(t, g.Failures())
}
