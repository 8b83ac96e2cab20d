package clocks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/slots"
)

const (
	pause   = 50 * ms // between two bursts
	burst   = 3       // calls each: three times the limit
	settled = 1200 * ms
	length  = 4500 * ms
)

// cell is one cell of the matrix.
type cell struct {
	behavior
	phase phase
	step  time.Duration
	back  time.Duration // after that time the clock is set back to where it would be; 0 is never
	begin time.Duration // past a whole second
}

func (c cell) String() string {
	s := fmt.Sprintf("%s, set by %v %s, begun at %v", c.name, c.step, c.phase, c.begin)
	if c.back != 0 {
		s += fmt.Sprintf(", set right after %v", c.back)
	}
	return s
}

// event is an admission.
type event struct {
	resource     string
	decided, ran time.Duration // in real time
	decidedAt    int64         // in the engine's
	ranAt        int64
}

// trial is a cell being played.
type trial struct {
	cell
	clock *source
	guard *api.Guard

	armed   bool
	setAt   time.Duration // in real time; negative before
	rightAt time.Duration // when it was set right
	now     event         // of the current call

	calls         int
	events        []event
	outcomes      []time.Duration // of every call: its wait, or -1
	open          []entry
	held          int
	lastPass      time.Duration
	outage        time.Duration // the longest time that callers were refused
	shadowBlocked int64
	problems      []string
}

type entry struct {
	api.Admitted
	until    time.Duration
	resource string
}

func (tr *trial) problem(format string, args ...any) {
	tr.problems = append(tr.problems, tr.String()+": "+fmt.Sprintf(format, args...))
}

func play(t testing.TB, c cell) *trial {
	tr := &trial{cell: c, clock: newSource(), setAt: -1, rightAt: -1}
	tr.clock.begin += int64(c.begin)
	tr.clock.parks = c.parks
	tr.clock.asleep = func() { tr.at(duringWait) }
	guard, err := api.New(api.Config{
		Clock: tr.clock, Logger: slog.New(slog.DiscardHandler), Host: overloaded{},
		Chain: (*slots.Chain)(chain(tr.at, tr.passed, tr.completed)),
	})
	require.NoError(t, err)
	tr.guard = guard
	require.NoError(t, guard.Close()) // the trial samples the machine, not a timer
	tr.load(t, 0)
	for tr.clock.real < length {
		tr.instant(t)
		tr.clock.real += pause
	}
	for len(tr.open) > 0 {
		tr.exitFirst()
	}
	for _, f := range guard.Engine().Rules().RuleStats() {
		tr.shadowBlocked += f.ShadowBlocked
	}
	if tr.setAt < 0 {
		tr.problem("the phase was never reached")
	}
	if n := guard.Engine().Failures(); n > 0 {
		tr.problem("%d slots panicked", n)
	}
	for _, p := range books.Unsettled(guard.Engine()) {
		tr.problem("%s", p)
	}
	if total := guard.Engine().Tree().Inbound().Totals(); total.RT < 0 {
		tr.problem("response times add up to %v", total.RT)
	}
	return tr
}

func (tr *trial) load(t testing.TB, change time.Duration) {
	if tr.set != nil {
		require.NoError(t, tr.guard.LoadRules(tr.set(change != 0)))
		return
	}
	set := rules.Set{Flow: append([]flow.Rule{tr.rule}, tr.also...)}
	if set.Flow[0].Behavior == flow.Throttle || set.Flow[0].Behavior == flow.WarmUpThrottle {
		set.Flow[0].MaxWait = 500*ms + change
	} else if set.Flow[0].Behavior == flow.TokenBucket && change != 0 {
		set.Flow[0].Burst--
	} else if set.Flow[0].Metric == flow.QPS && change != 0 {
		set.Flow[0].Buckets, set.Flow[0].Threshold = 20, limit-1 // continues in another window
	}
	require.NoError(t, tr.guard.LoadRules(set))
}

// at sets the clock at its phase.
func (tr *trial) at(p phase) {
	if tr.armed && p == tr.phase {
		tr.armed = false
		tr.setAt = tr.clock.real
		tr.clock.set += tr.step
	}
}

// overloaded is a machine that uses nine tenths of its processors and three quarters of its memory.
type overloaded struct{}

func (overloaded) Load(int64) (float64, error) { return 9, nil }
func (overloaded) CPU(int64) (float64, error)  { return 0.9, nil }
func (overloaded) Memory(int64) (host.Memory, error) {
	return host.Memory{Used: 3 << 30, Limit: 4 << 30}, nil
}

// instant plays the events of one time: exits, and a burst of calls.
func (tr *trial) instant(t testing.TB) {
	if tr.setAt < 0 && tr.clock.real >= settled {
		tr.armed = true
	}
	if tr.back != 0 && tr.setAt >= 0 && tr.rightAt < 0 && tr.clock.real >= tr.setAt+tr.back {
		tr.clock.set -= tr.step
		tr.rightAt = tr.clock.real
	}
	for len(tr.open) > 0 && tr.open[0].until <= tr.clock.real {
		tr.exitFirst()
	}
	if tr.samples {
		tr.guard.Engine().Sampler().Sample()
	}
	for i := range burst {
		if i == 1 {
			tr.meanwhile(t)
		}
		tr.enter(t, "orders")
		if tr.rule.Relation == flow.Associated {
			tr.enter(t, "stock")
		}
	}
	tr.guard.Engine().Now() // others read the time too
}

// meanwhile does other work while calls run and the clock is set.
func (tr *trial) meanwhile(t testing.TB) {
	if !tr.armed {
		return
	}
	onRead := func() { tr.clock.read = func() { tr.at(tr.phase) } }
	switch tr.phase {
	case betweenCalls, beforeExit:
		if tr.phase == beforeExit && len(tr.open) == 0 {
			return
		}
		tr.at(tr.phase)
	case duringReload:
		onRead()
		tr.load(t, ms)
		tr.load(t, 0)
	case duringEvict:
		for i := range 20 {
			e, err := tr.guard.Entry(t.Context(), fmt.Sprint("once", i))
			require.NoError(t, err)
			e.Exit()
		}
		onRead()
		tr.guard.Engine().Tree().Evict(tr.guard.Engine().Now())
	case duringTree:
		onRead()
		tr.guard.Tree()
	}
}

func (tr *trial) enter(t testing.TB, resource string) {
	tr.calls++
	tr.now = event{resource: resource, decided: tr.clock.real}
	slept := len(tr.clock.slept)
	opts := append([]engine.Option{engine.Inbound()}, tr.every...)
	e, err := tr.guard.Entry(api.WithOrigin(api.WithContext(t.Context(), tr.context), tr.origin), resource, opts...)
	wait := tr.clock.waited(slept)
	if err != nil {
		tr.refused(err)
		return
	}
	if len(tr.clock.slept) == slept {
		wait = 0
	}
	tr.now.ran = tr.now.decided + wait
	tr.now.ranAt = tr.now.decidedAt + int64(wait)
	tr.events = append(tr.events, tr.now)
	if resource == "orders" {
		tr.outcomes = append(tr.outcomes, wait)
		tr.outage = max(tr.outage, tr.clock.real-tr.lastPass)
		tr.lastPass = tr.clock.real
		tr.held++
		if tr.rule.Metric == flow.Concurrency && tr.held > permits {
			tr.problem("%d at once", tr.held)
		}
	}
	tr.open = append(tr.open, entry{e, tr.clock.real + 2*pause, resource})
}

func (tr *trial) refused(err error) {
	if tr.now.resource != "orders" {
		return
	}
	tr.outcomes = append(tr.outcomes, -1)
	block, ok := errors.AsType[*core.BlockError](err)
	switch {
	case !ok || errors.Is(err, context.Canceled):
		tr.problem("%v", err)
	case !tr.refuses && !tr.may:
		tr.problem("refused at %v: %v", tr.clock.real, err)
	}
	tr.clock.read = func() { tr.at(duringRetry) }
	if after, _ := block.RetryAfter(); after > 2*interval+interval/10 { // borrowed units count as long again
		tr.problem("to come again after %v", after)
	}
	tr.clock.read = nil
	tr.at(duringRetry) // a rule that can't tell reads no clock
}

func (tr *trial) exitFirst() {
	e := tr.open[0]
	tr.open = tr.open[1:]
	if e.resource == "orders" {
		tr.held--
	}
	e.Exit()
}

// passed and completed see the call from the outermost slot.
func (tr *trial) passed(inv *engine.Invocation) {
	tr.now.decidedAt = inv.Began()
	if inv.Now() < inv.Began() {
		tr.problem("asked at %d, runs at %d", inv.Began(), inv.Now())
	}
}

func (tr *trial) completed(inv *engine.Invocation) {
	if inv.Now() < inv.Began() {
		tr.problem("response time %v", time.Duration(inv.Now()-inv.Began()))
	}
}
