package entries

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/slots"
)

// uncountable is the one point after which the books can't balance: there, the slot that counts
// exits breaks off before it has counted one. It is our own and does nothing that could panic.
const uncountable = "statistic before Completed"

// Nothing is lost if anything breaks off, at any point and on any course of a call. known bug 54,
// 56, 57, 58, 63
func TestBreakingOffAtEveryPoint(t *testing.T) {
	all := []string{"panic", "Goexit", "fault"}
	each := figure.Size(0, 1, len(all), len(all)) // of these at each point; 0 means at every fourth
	broken, wrong, turn := 0, 0, 0
	reached := map[string]bool{}
	for _, f := range fares() {
		whole := newTrial(t, f, "", "")
		if problems := whole.run(); len(problems) > 0 {
			t.Fatalf("%s, if nothing breaks off:\n\t%s", f.name, strings.Join(problems, "\n\t"))
		}
		for _, point := range points() {
			// Up to the break, a call behaves as the unbroken one did.
			if whole.seen[point] == 0 || point == uncountable {
				continue
			}
			reached[point] = true
			turn++
			if each == 0 && turn%4 != 0 {
				continue
			}
			for i := range max(each, 1) {
				way := all[(turn+i)%len(all)]
				if way == "Goexit" && !strings.HasPrefix(point, "context") && !strings.HasSuffix(point, " Sleep") {
					continue // a goroutine may end while its call waits; nothing makes up for one that ends in a slot
				}
				c := newTrial(t, f, point, way)
				problems := c.run()
				if c.fired == 0 {
					problems = append(problems, "nothing broke off")
				}
				broken++
				if len(problems) > 0 {
					wrong++
					t.Errorf("%s, %s at %q:\n\t%s", f.name, way, point, strings.Join(problems, "\n\t"))
				}
				if wrong > 20 {
					t.Fatal("and so on")
				}
			}
		}
	}
	for _, point := range points() {
		if point != uncountable && !reached[point] {
			t.Errorf("no call reached %q", point)
		}
	}
	figure.Report(t, figure.Figure{Name: "counters out of balance after a panic", Value: float64(wrong), N: int64(broken)})
}

// trial is one case.
type trial struct {
	*breaker
	fare
	engine *engine.Engine
	clock  *clock
	last   *late

	admittedAt []int64 // when the admitted calls on orders came in
	refused    int
	problems   []string
}

func newTrial(t *testing.T, f fare, point, way string) *trial {
	b := &breaker{point: point, way: way, seen: map[string]int{}}
	c := &trial{breaker: b, fare: f, last: &late{breaker: b}}
	require.NoError(t, c.open(engine.Config{Chain: b.chain(c.last), Logger: slog.New(handler{slog.DiscardHandler, b})}))
	return c
}

// open makes the engine, on a clock that moves by itself.
func (c *trial) open(cfg engine.Config) (err error) {
	c.clock = &clock{breaker: c.breaker, manual: clocks.NewManual(start)}
	c.clock.manual.SetSleep(clocks.SleepAdvance)
	cfg.Clock = c.clock
	if c.engine, err = engine.NewEngine(cfg); err != nil {
		return err
	}
	return c.engine.Update(func(b *engine.SnapshotBuilder) error { return flow.Compile(b, c.rules) })
}

func (c *trial) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// call makes an ordinary call and reports whether it was admitted.
func (c *trial) call(opts ...engine.Option) (engine.Entry, bool) {
	now := c.clock.manual.Now()
	entry, err := c.engine.Enter(engine.WithOrigin(engine.WithContext(context.Background(), "web"), "app"), "orders", opts)
	if err != nil {
		c.refused++
		return entry, false
	}
	c.admittedAt = append(c.admittedAt, max(now, c.clock.manual.Now()))
	return entry, true
}

func (c *trial) run() []string {
	for range c.before {
		entry, _ := c.call()
		entry.Exit()
	}
	c.clock.manual.Advance(c.pause)
	c.broken()
	c.afterwards()
	return c.problems
}

// broken makes the call in which something breaks off.
func (c *trial) broken() {
	ctx, cancel := context.WithCancel(engine.WithOrigin(engine.WithContext(context.Background(), "web"), "app"))
	defer cancel()
	if c.cancel {
		c.clock.cancel = cancel
	}
	if c.late {
		c.last.refuse = engine.NewCounted(core.BlockError{Kind: core.KindFlow, Resource: "orders", Rule: "late"}, nil, nil, nil)
	}
	if c.again {
		c.last.refuseAgain = engine.NewCounted(core.BlockError{Kind: core.KindFlow, Resource: "orders", Rule: "again"}, nil, nil, nil)
	}
	returned, admitted := false, false
	var err error
	reason := apart(func() {
		c.armed = true
		defer func() { c.armed = false }()
		var entry engine.Entry
		entry, err = c.engine.Enter(callerContext{ctx, c.breaker}, "orders", c.opts)
		returned, admitted = true, err == nil
		defer entry.Exit() // once more
		defer entry.Exit()
		if err != nil {
			return
		}
		if c.nested {
			inner, err := c.engine.Enter(entry.Context(), "sql", nil)
			defer inner.Exit()
			inner.Fail(err)
		}
		if c.fails {
			entry.Fail(errBroken)
		}
	})
	c.clock.cancel, c.last.refuse, c.last.refuseAgain = nil, nil, nil

	outside := strings.HasPrefix(c.point, "clock") || strings.HasPrefix(c.point, "context")
	broke := c.fired > 0 && c.way != "Goexit"
	switch {
	case reason != nil && !(broke && outside):
		c.problem("the caller saw a panic: %v", reason)
	case !returned && c.fired == 0:
		c.problem("the call did not return")
	case broke && !outside && c.engine.Failures() == 0:
		c.problem("a failure was not counted")
	case broke && !outside && !strings.HasPrefix(c.point, "logger") && c.engine.Failures() != int64(c.fired):
		c.problem("%d failures are counted, want %d", c.engine.Failures(), c.fired)
	case c.fired == 0 && c.engine.Failures() != 0:
		c.problem("failures are counted although nothing broke off")
	}
	if returned && c.fired == 0 && admitted == c.blocked {
		c.problem("nothing broke off, so admitted should be %v, but the error is %v", !c.blocked, err)
	}

	if admitted {
		c.admittedAt = append(c.admittedAt, c.clock.manual.Now())
	}
	c.verdicts(returned, admitted)
}

// verdicts checks that each call was counted as admitted or refused, once.
func (c *trial) verdicts(returned, admitted bool) {
	r, ok := c.engine.FindResource("orders")
	if !ok {
		if returned {
			c.problem("the resource is missing")
		}
		return
	}
	totals := r.Totals()
	counted := totals.Pass + totals.Block
	want := int64(c.refused + len(c.admittedAt))
	outside := strings.HasPrefix(c.point, "clock") || strings.HasPrefix(c.point, "context")
	switch {
	case c.fired > 0 && (c.point == "clusterBuilder before Prepare" || c.point == "statistic before Passed" || c.point == "statistic before Blocked"):
		want = counted // the call has no node, or the slot that counts it broke off
	case returned && !admitted:
		want++
	case !returned && outside && c.seen["context Err"] > 0: // checked first for a call that is to wait
		want++
	}
	if counted != want {
		c.problem("%d calls are counted as passed and %d as refused, want a total of %d", totals.Pass, totals.Block, want)
	}
	if totals.Pass > int64(len(c.admittedAt)) {
		c.problem("%d calls are counted as passed, %d were", totals.Pass, len(c.admittedAt))
	}
}

// afterwards checks that nothing is left behind, and that the limits are unchanged.
func (c *trial) afterwards() {
	now := c.clock.manual.Now()
	if c.last.held != 0 {
		c.problem("%d reservations were not returned", c.last.held)
	}
	if n := c.engine.Waiting(); n != 0 {
		c.problem("%d calls are shown as waiting", n)
	}
	r := c.engine.PinResource("orders")
	metered := []*node.StatisticNode{&r.StatisticNode}
	if o, ok := r.Origins().Find("app"); ok && c.point != "clusterBuilder before Prepare" {
		metered = append(metered, &o.StatisticNode)
	}
	for _, n := range metered {
		for _, w := range n.Meters().Windows() {
			if w.Owner != nil {
				continue // which count calls that a shadow rule admits
			}
			want := int64(0)
			for _, at := range c.admittedAt {
				span := int64(w.Shape.Buckets)
				if w.Shape.Strict {
					span++
				}
				width := int64(w.Shape.Width())
				if now/width-at/width < span {
					want++
				}
			}
			if got := w.Sum(now) + w.Waiting(now); got != want {
				c.problem("a window of %v holds %d units, should be %d", w.Shape, got, want)
			}
		}
		if g := n.Meters().Semaphore(nil); g != nil && (g.InUse() != 0 || g.Held() != 0) {
			c.problem("a semaphore holds %d units", g.InUse())
		}
	}

	// A day later, simultaneous calls get everything that the rules allow.
	c.clock.manual.Advance(24 * time.Hour)
	if got, want := c.admits(), admitted(c.fare); len(got) != want {
		c.problem("afterwards %d simultaneous calls are admitted, want %d", len(got), want)
	}
	c.problems = append(c.problems, books.Unsettled(c.engine)...)
}

// admits enters many calls without exits, and returns the admitted ones.
func (c *trial) admits() (open []engine.Entry) {
	for range 2 * most {
		if entry, ok := c.call(); ok {
			open = append(open, entry)
		}
	}
	for _, entry := range open {
		entry.Exit()
		entry.Exit()
	}
	return open
}

// fresh maps fares to the number of calls that an engine admits if nothing ever broke off.
var fresh = map[string]int{}

func admitted(f fare) int {
	n, ok := fresh[f.name]
	if !ok {
		b := &breaker{seen: map[string]int{}}
		c := &trial{breaker: b, fare: f, last: &late{breaker: b}}
		if err := c.open(engine.Config{Chain: (*engine.Chain)(slots.Default()), Logger: silent}); err != nil {
			panic(err)
		}
		c.clock.manual.Advance(24 * time.Hour)
		n = len(c.admits())
		fresh[f.name] = n
	}
	return n
}
