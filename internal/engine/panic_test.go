package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/stat"
)

var phases = []string{"Prepare", "Ask", "Take", "Recheck", "Passed", "Blocked", "Completed"}

// bomb is a slot that calls fire in every phase.
func bomb(fire func(phase string)) *fake {
	judge := func(phase string) func(*engine.Invocation) engine.Verdict {
		return func(*engine.Invocation) engine.Verdict { fire(phase); return engine.Verdict{} }
	}
	note := func(phase string) func(*engine.Invocation) {
		return func(*engine.Invocation) { fire(phase) }
	}
	return &fake{
		name: "bomb", prepare: note("Prepare"), ask: judge("Ask"), take: judge("Take"), recheck: judge("Recheck"),
		passed: note("Passed"), completed: note("Completed"),
		blocked: func(*engine.Invocation, *core.BlockError) { fire("Blocked") },
	}
}

var positions = map[string]engine.Position{
	"first":             engine.Before("nodeSelector"),
	"before the nodes":  engine.Before("clusterBuilder"),
	"before statistic":  engine.Before("statistic"),
	"before the checks": engine.Before("flow"),
	"last":              engine.After("flow"),
}

// If any slot panics in any phase, the caller never sees it, the slots after it run, every count
// balances, the panic is counted, and the next call is unaffected. known bug 54
func TestPanicInASlot(t *testing.T) {
	const allowed = 4
	reject := flow.Rule{Resource: "orders", Threshold: allowed, Interval: time.Hour}
	semaphore := flow.Rule{Resource: "orders", Threshold: allowed, Metric: flow.Concurrency}
	for place, position := range positions {
		for _, phase := range phases {
			for _, tt := range []struct {
				name    string
				rules   []flow.Rule
				blocked bool
				waits   bool
			}{
				{name: "admitted", rules: []flow.Rule{reject, semaphore}},
				{name: "queued", rules: []flow.Rule{{Resource: "orders", Threshold: 10, Behavior: flow.Throttle}, semaphore}, waits: true},
				{name: "refused", rules: []flow.Rule{semaphore, {Resource: "orders", ID: "no", Threshold: 0}}, blocked: true},
			} {
				t.Run(place+"/"+phase+"/"+tt.name, func(t *testing.T) {
					armed, fired := false, false
					b := bomb(func(p string) {
						if armed && p == phase {
							fired = true
							panic("boom")
						}
					})
					var seen []string // by the slot behind all others
					witness := bomb(func(p string) { seen = append(seen, p) })
					witness.name = "witness"
					chain := trial.Chain().With(b, position)
					chain = chain.With(witness, engine.After(chain.Names()[len(chain.Names())-1]))
					e, clock := newEngine(t, engine.Config{Chain: chain}, tt.rules...)
					clock.SetSleep(clocks.SleepAdvance)

					call := func() error {
						from := engine.WithOrigin(engine.WithContext(t.Context(), "web"), "app")
						entry, err := e.Enter(from, "orders", []engine.Option{engine.Inbound()})
						entry.Exit()
						return err
					}
					if !tt.blocked {
						require.NoError(t, call()) // so that the next one has to queue
					}
					armed, seen = true, nil
					err := call()
					if tt.blocked {
						require.ErrorIs(t, err, core.ErrBlocked)
					} else {
						require.NoError(t, err)
					}
					var ran []string
					switch {
					case tt.blocked: // rejected when asked, so slots behind it were not
						ran = []string{"Prepare", "Blocked"}
					case tt.waits:
						ran = []string{"Prepare", "Ask", "Take", "Recheck", "Passed", "Completed"}
					default:
						ran = []string{"Prepare", "Ask", "Take", "Passed", "Completed"}
					}
					assert.Equal(t, ran, seen, "the slots behind the slot that panicked")
					want := int64(0)
					if fired {
						want = 1
					}
					assert.Equal(t, want, e.Failures())

					armed = false
					for range 2 {
						err := call()
						assert.Equal(t, tt.blocked, err != nil, "later calls: %v", err)
					}
					totals := resource(t, e, "orders").Totals()
					assert.Equal(t, totals.Entered, totals.Exited)
					if place == "first" && phase == "Prepare" {
						return
					}
					if tt.blocked {
						assert.Equal(t, int64(3), totals.Block)
					} else {
						assert.Equal(t, int64(4), totals.Pass)
						_, err = e.Enter(t.Context(), "orders", []engine.Option{engine.Units(allowed + 1)})
						assert.Error(t, err, "the rules hold")
					}
				})
			}
		}
	}
}

// A slot that panics fails open, but the slots around it don't: their limits and waits still hold.
func TestPanicOpensItsSlotOnly(t *testing.T) {
	for _, phase := range []string{"Prepare", "Ask", "Take"} {
		for _, place := range []string{"first", "before the checks", "last"} {
			t.Run(phase+" "+place, func(t *testing.T) {
				b := bomb(func(p string) {
					if p == phase {
						panic("boom")
					}
				})
				e, clock := newEngine(t, engine.Config{Chain: trial.Chain().With(b, positions[place])},
					flow.Rule{Resource: "orders", Threshold: 3, Interval: time.Hour},
					flow.Rule{Resource: "orders", Threshold: 10, Behavior: flow.Throttle})
				clock.SetSleep(clocks.SleepAdvance)
				passed := 0
				for range 10 {
					if entry, err := e.Enter(t.Context(), "orders", nil); err == nil {
						passed++
						entry.Exit()
					}
				}
				assert.Equal(t, 3, passed)
				assert.Equal(t, 200*time.Millisecond, since(clock), "the calls were spaced")
			})
		}
	}
}

// The log names the slot that panicked, a family's or a custom one; a panic outside a slot has no
// name.
func TestTheLogNamesTheSlotThatPanicked(t *testing.T) {
	var text bytes.Buffer
	for _, phase := range phases {
		t.Run(phase, func(t *testing.T) {
			b := bomb(func(p string) {
				if p == phase {
					panic("boom")
				}
			})
			text.Reset()
			e, clock := newEngine(t, engine.Config{Chain: trial.Chain().With(b, engine.After("statistic")), Logger: slog.New(slog.NewTextHandler(&text, nil))},
				flow.Rule{Resource: "spaced", Threshold: 10, Behavior: flow.Throttle}, flow.Rule{Resource: "never", Threshold: 0})
			clock.SetSleep(clocks.SleepAdvance)
			for _, name := range []string{"spaced", "spaced", "never"} { // the second waits
				if entry, err := e.Enter(t.Context(), name, nil); err == nil {
					entry.Exit()
				}
			}
			assert.Contains(t, text.String(), `msg="penstock: a slot panicked; the call goes on without it" slot=bomb panic=boom failures=1 `)
		})
	}
	text.Reset()
	e, _ := newEngine(t, engine.Config{Logger: slog.New(slog.NewTextHandler(&text, nil))})
	e.Shield(func() { panic("boom") })
	assert.Contains(t, text.String(), `msg="penstock: a panic was recovered; the calls go on" panic=boom failures=1 `)
}

// A breaker behind a slot that panics when asked again still rejects.
func TestPanicInRecheckLeavesTheOthers(t *testing.T) {
	b := &fake{name: "bomb", recheck: func(*engine.Invocation) engine.Verdict { panic("boom") }}
	open := &fake{name: "breaker", recheck: func(*engine.Invocation) engine.Verdict { return engine.Verdict{Block: refusal("open")} }}
	e, clock := newEngine(t, engine.Config{Chain: engine.NewChain(waiter(), b, open)})
	clock.SetSleep(clocks.SleepAdvance)
	_, err := e.Enter(t.Context(), "orders", []engine.Option{engine.Args(time.Second)})
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.Equal(t, int64(1), e.Failures())
}

type stringer struct{}

func (stringer) String() string { panic("and again") }

func TestPanicsOfEveryKind(t *testing.T) {
	for name, boom := range map[string]func(){
		"string":   func() { panic("boom") },
		"error":    func() { panic(errors.New("boom")) },
		"nil":      func() { panic(nil) },
		"runtime":  func() { var p *engine.Resource; _ = p.Name() },
		"stringer": func() { panic(stringer{}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := &fake{name: "bomb", passed: func(*engine.Invocation) { boom() }}
			e, _ := newEngine(t, engine.Config{Chain: trial.Chain().With(b, engine.After("flow"))})
			enter(t, e, t.Context()).Exit()
			assert.Equal(t, int64(1), e.Failures())
		})
	}
}

func TestPanicsAreLoggedOnceASecond(t *testing.T) {
	var log lines
	b := &fake{name: "bomb", passed: func(*engine.Invocation) { panic("boom\nand more") }}
	e, clock := newEngine(t, engine.Config{Chain: trial.Chain().With(b, engine.After("flow")), Logger: log.logger()})
	for range 5 {
		enter(t, e, t.Context()).Exit()
		clock.Advance(400 * time.Millisecond)
	}
	require.Len(t, log.all(), 2) // at 0 and 1.2 s
	assert.Contains(t, log.all()[0], `panic="boom\\nand more" failures=1`)
	assert.Contains(t, log.all()[1], "failures=4")
	assert.Equal(t, int64(5), e.Failures())
}

// badHandler is a log handler that panics.
type badHandler struct{ slog.Handler }

func (badHandler) Handle(context.Context, slog.Record) error { panic("disk full") }

// The block log and the log of panics are both written with the custom handler.
func TestPanicInTheLogger(t *testing.T) {
	e, _ := newEngine(t, engine.Config{Logger: slog.New(badHandler{slog.DiscardHandler}.or())}, flow.Rule{Resource: "orders", Threshold: 0})
	_, err := e.Enter(t.Context(), "orders", nil)
	require.ErrorIs(t, err, core.ErrBlocked)
	totals := resource(t, e, "orders").Totals()
	assert.Equal(t, int64(1), totals.Block)
	assert.Positive(t, e.Failures())
}

// or makes the handler one that wants every record.
func (h badHandler) or() slog.Handler { return always{h} }

type always struct{ slog.Handler }

func (always) Enabled(context.Context, slog.Level) bool { return true }

// badHolder can't take back its grants.
type badHolder struct{}

func (badHolder) GiveBack(*engine.Reservation, int64) { panic("boom") }

// Units that one holder does not take back don't affect the others.
func TestPanicInAHolder(t *testing.T) {
	for _, tt := range []struct {
		name  string
		until bool // exit
		block bool
	}{
		{name: "on exit", until: true},
		{name: "on refusal", block: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			window, err := stat.NewWindow(stat.Shape{Interval: time.Second, Buckets: 2})
			require.NoError(t, err)
			semaphore := new(meter.Semaphore)
			armed := true
			checker := &fake{name: "checker", take: func(inv *engine.Invocation) engine.Verdict {
				bucket, ok := window.TryAdd(0, inv.Now(), 1, 100)
				require.True(t, ok)
				inv.ReserveBucket(window, bucket, inv.Units(), 100)
				semaphore.Acquire(0, 1)
				inv.ReserveSemaphore(semaphore)
				if armed {
					inv.Reserve(engine.Reservation{Holder: badHolder{}, UntilExit: tt.until})
				}
				if tt.block {
					return engine.Verdict{Block: refusal("checker")}
				}
				return engine.Verdict{}
			}}
			e, clock := newEngine(t, engine.Config{Chain: trial.Chain().With(checker, engine.After("flow"))})
			for _, armed = range []bool{true, false} {
				entry, err := e.Enter(t.Context(), "orders", nil)
				assert.Equal(t, tt.block, err != nil)
				entry.Exit()
				entry.Exit()
			}
			assert.Equal(t, int64(1), e.Failures())
			assert.Zero(t, semaphore.InUse())
			if tt.block {
				assert.Zero(t, window.Sum(clock.Now()))
			} else {
				assert.Equal(t, int64(2), window.Sum(clock.Now()))
			}
		})
	}
}

// Counts balance after panics at random points of random calls, several of them open at a time.
func TestRandomPanics(t *testing.T) {
	rnd := random(t)
	chance := 20 // one in
	fire := func(phase string) {
		if chance > 0 && rnd.IntN(chance) == 0 {
			panic(phase)
		}
	}
	chain := trial.Chain()
	for i, name := range chain.Names() {
		b := bomb(fire)
		b.name = fmt.Sprint("bomb ", i)
		chain = chain.With(b, engine.Before(name))
	}
	const window, permits = 40, 5
	e, clock := newEngine(t, engine.Config{Chain: chain},
		flow.Rule{Resource: "orders", Threshold: window, Interval: time.Second, Buckets: 1},
		flow.Rule{Resource: "orders", Threshold: permits, Metric: flow.Concurrency},
		flow.Rule{Resource: "orders", Threshold: 1000, Behavior: flow.Throttle},
		flow.Rule{Resource: "orders", Threshold: 3, Origin: "app", Interval: 100 * time.Millisecond})
	clock.SetSleep(clocks.SleepRecord)
	var open []engine.Entry
	for range 5000 {
		ctx := engine.WithOrigin(t.Context(), []string{"", "app"}[rnd.IntN(2)])
		if entry, err := e.Enter(ctx, "orders", []engine.Option{engine.Inbound(), engine.Prioritized()}); err == nil {
			open = append(open, entry)
		}
		for len(open) > 0 && rnd.IntN(2) == 0 {
			i := rnd.IntN(len(open))
			open[i].Exit()
			open = append(open[:i], open[i+1:]...)
		}
		clock.Advance(time.Duration(rnd.IntN(3)) * time.Millisecond)
	}
	for _, entry := range open {
		entry.Exit()
	}
	assert.Greater(t, e.Failures(), int64(1000))

	// They hold nothing: every unit of the limits is available again.
	chance = 0
	clock.Advance(time.Minute)
	open = nil
	for range permits + 1 {
		if entry, err := e.Enter(t.Context(), "orders", nil); err == nil {
			open = append(open, entry)
		}
		clock.Advance(time.Millisecond)
	}
	assert.Len(t, open, permits)
	for _, entry := range open {
		entry.Exit()
	}
}
