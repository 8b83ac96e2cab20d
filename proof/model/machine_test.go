package model

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/proof/books"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/slots"
)

// machine does everything twice: to the engine and to its twin.
type machine struct {
	guard     *api.Guard
	clock     *clock
	stumblers []*stumbler
	twin      *twin
	set       []flow.Rule
	settable  bool // the clock may be set back

	open    map[*call]*handle
	over    []core.Entry
	cancels []context.CancelFunc
}

// handle is the engine's side of a call.
type handle struct {
	entry  core.Entry
	ctx    context.Context
	cancel context.CancelFunc
	gives  bool // may give up
	nap    *nap
	due    int64 // on the clock, when it wakes
	result chan result
}

type result struct {
	entry core.Entry
	err   error
}

// epoch lies so far ahead that no deadline ends by itself while a test runs.
var epoch = time.Unix(4_000_000_000, 0)

func newMachine(t *rapid.T) *machine {
	m := &machine{
		clock:     &clock{asleep: make(chan *nap)},
		stumblers: []*stumbler{{name: "first"}, {name: "middle"}, {name: "last"}},
		open:      make(map[*call]*handle),
	}
	m.clock.now.Store(epoch.UnixNano() + int64(span(0, time.Second).Draw(t, "start")))
	doubts := rapid.Bool().Draw(t, "doubts")
	slot := func(i int) core.Slot {
		if doubts {
			return doubter{m.stumblers[i]}
		}
		return m.stumblers[i]
	}
	cfg := api.Config{
		Clock:         m.clock,
		Logger:        slog.New(slog.DiscardHandler),
		OccupyTimeout: rapid.SampledFrom([]time.Duration{500 * ms, 100 * ms, time.Second}).Draw(t, "occupy timeout"),
		Chain: slots.Default().With(slot(0), core.Before("nodeSelector")).
			With(slot(1), core.Before("flow")).With(slot(2), core.After("flow")),
	}
	var err error
	if m.guard, err = api.New(cfg); err != nil {
		t.Fatal(err)
	}
	m.twin = &twin{
		now: m.clock.Now(), occupy: cfg.OccupyTimeout, entered: make(map[string]bool), overtakes: make(map[string]bool),
		places:   map[place]bool{inboundRoot: true, cluster(node.OverflowName): true}, // which are always there
		revision: 1,                                                                   // a guard begins by loading no rules
		doubts:   doubts,
	}
	return m
}

// enter makes a call and compares verdict and wait.
func (m *machine) enter(t *rapid.T) {
	c := &call{
		resource:    rapid.SampledFrom(resources).Draw(t, "resource"),
		context:     rapid.SampledFrom([]string{"", "", "web"}).Draw(t, "context"),
		origin:      rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(t, "origin"),
		units:       rapid.SampledFrom([]int64{1, 1, 1, 2, 3}).Draw(t, "units"),
		inbound:     rapid.IntRange(0, 4).Draw(t, "inbound") == 0,
		prioritized: rapid.Bool().Draw(t, "prioritized"),
	}
	ctx := api.WithOrigin(api.WithContext(context.Background(), c.context), c.origin)
	if parent := m.pick(t, running); parent != nil && rapid.IntRange(0, 4).Draw(t, "nested") == 0 {
		c.context, c.origin = parent.context, parent.origin
		ctx = m.open[parent].entry.Context()
	}
	c.context = contextName(c.context)
	h := &handle{result: make(chan result, 1)}
	left := time.Duration(math.MaxInt64) // until the context ends
	ctx = context.WithValue(ctx, whose{}, h)
	h.ctx, h.cancel = ctx, func() {}
	switch rapid.IntRange(0, 9).Draw(t, "context ends") {
	case 0, 1, 2, 3:
		h.ctx, h.cancel = context.WithCancel(ctx)
		h.gives = true
	case 4:
		h.ctx, h.cancel = context.WithCancel(ctx)
		h.cancel()
	case 5:
		h.ctx, h.cancel = context.WithDeadline(ctx, m.clock.at().Add(span(0, time.Second).Draw(t, "deadline")))
	}
	c.endless = h.ctx.Done() == nil
	m.cancels = append(m.cancels, h.cancel)
	if deadline, ok := h.ctx.Deadline(); ok {
		left = deadline.Sub(m.clock.at())
	}
	if h.ctx.Err() != nil {
		left = 0
	}
	m.twin.enter(c, left)
	m.start(t, c, h)
}

// start makes the call that the twin has judged.
func (m *machine) start(t *rapid.T, c *call, h *handle) {
	opts := []core.Option{api.Units(int(c.units))}
	if c.prioritized {
		opts = append(opts, api.Prioritized())
	}
	if c.inbound {
		opts = append(opts, api.Inbound())
	}
	go func() {
		entry, err := m.guard.Entry(h.ctx, c.resource, opts...)
		h.result <- result{entry, err}
	}()
	got, sleeps := m.event(h)
	if sleeps {
		m.open[c] = h
		if c.state != waiting || h.nap.wait > c.wait || h.nap.wait < c.wait && !c.mayWake() {
			t.Fatalf("%v waits %v; the twin: %v", c, h.nap.wait, c.verdict())
		}
	} else {
		m.compare(t, c, got)
		if got.err == nil {
			h.entry = got.entry
			m.open[c] = h
		}
	}
	m.settle(t)
}

// mayWake reports whether a call may wake before its time: one that has overtaken others, and
// waits for something else besides, wakes for its turn there if it is to tell those behind it.
func (c *call) mayWake() bool {
	return c.prioritized && len(c.turns) > 0 && (len(c.turns) > 1 || c.borrowed)
}

// compare holds the outcome of a call against the twin's.
func (m *machine) compare(t *rapid.T, c *call, got result) {
	t.Helper()
	refusal, isRefusal := errors.AsType[*core.BlockError](got.err)
	switch {
	case got.err == nil && c.state == running:
	case isRefusal && c.state == blocked && refusal.Rule == c.by.rule.ID:
		m.agreeOnRetry(t, c, refusal)
	default:
		t.Fatalf("%v: %v; the twin: %v; rules: %+v", c, got.err, c.verdict(), m.set)
	}
}

func (c *call) String() string {
	s := fmt.Sprintf("%s in %s from %q x%d", c.resource, c.context, c.origin, c.units)
	if c.prioritized {
		s += " first"
	}
	return s
}

func (c *call) verdict() string {
	switch c.state {
	case blocked:
		return "refused by " + c.by.rule.ID
	case waiting:
		return fmt.Sprintf("waits %v for %s", c.wait, c.by.rule.ID)
	}
	return "passes"
}

// pick chooses one of the calls in a state, nil if there is none.
func (m *machine) pick(t *rapid.T, s state) *call {
	var calls []*call
	for _, c := range m.twin.calls {
		if c.state == s && m.open[c] != nil {
			calls = append(calls, c)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return rapid.SampledFrom(calls).Draw(t, "which")
}

// exit ends a call, perhaps as failed, perhaps on another goroutine.
func (m *machine) exit(t *rapid.T) {
	c := m.pick(t, running)
	if c == nil {
		t.Skip("nobody is inside")
	}
	failed := rapid.Bool().Draw(t, "failed")
	m.end(c, failed, rapid.Bool().Draw(t, "elsewhere"))
}

func (m *machine) end(c *call, failed, elsewhere bool) {
	m.twin.exit(c, failed)
	h := m.open[c]
	if failed {
		h.entry.Fail(errStumbled)
	}
	if elsewhere {
		done := make(chan struct{})
		go func() {
			h.entry.Exit()
			close(done)
		}()
		<-done
	} else {
		h.entry.Exit()
	}
	delete(m.open, c)
	m.over = append(m.over, h.entry)
}

// again uses an entry that is over, in every way.
func (m *machine) again(t *rapid.T) {
	if len(m.over) == 0 {
		t.Skip("nothing is over")
	}
	e := rapid.SampledFrom(m.over).Draw(t, "entry")
	err := errStumbled
	e.Fail(err)
	e.Exit()
	e.ExitOn(&err)
	if core.ContextOf(e.Context()) != nil {
		t.Fatal("an entry that is over gives a context")
	}
}

// invalid makes calls that are counted nowhere.
func (m *machine) invalid(t *rapid.T) {
	for _, invalid := range []func() (core.Entry, error){
		func() (core.Entry, error) { return m.guard.Entry(t.Context(), "") },
		func() (core.Entry, error) { return m.guard.Entry(t.Context(), "a", api.Units(1<<20+1)) },
	} {
		if e, err := invalid(); !errors.Is(err, core.ErrInvalid) || e != (core.Entry{}) {
			t.Fatalf("an invalid call: %v, %v", e, err)
		}
	}
}

// cancel ends the context of a call that waits.
func (m *machine) cancel(t *rapid.T) {
	c := m.pick(t, waiting)
	if c == nil || !m.open[c].gives {
		t.Skip("nobody waits who can give up")
	}
	h := m.open[c]
	m.twin.refuse(c, c.by)
	h.cancel()
	if h.ctx.Err() == nil {
		t.Fatal("the context goes on")
	}
	got, _ := m.event(h)
	if !errors.Is(got.err, context.Canceled) {
		t.Fatalf("%v gave up with %v", c, got.err)
	}
	m.compare(t, c, got)
	delete(m.open, c)
	m.settle(t)
	m.late(t)
}

// reload changes one rule, or none.
func (m *machine) reload(t *rapid.T) {
	m.load(t, changed(t, m.set))
}

func (m *machine) load(t *rapid.T, set []flow.Rule) {
	if err := m.guard.LoadRules(rules.Set{Flow: set}); err != nil {
		t.Fatal(err) // a history that is passed over looks into nothing
	}
	m.set = slices.Clone(m.guard.Rules().Flow)
	m.twin.load(m.set)
}

// stumble chooses where slots panic until it is called again.
func (m *machine) stumble(t *rapid.T) {
	for _, s := range m.stumblers {
		s.armed = nil
	}
	s := rapid.SampledFrom(m.stumblers).Draw(t, "slot")
	s.armed = make(map[string]bool)
	for _, phase := range rapid.SliceOfN(rapid.SampledFrom(phases), 0, 4).Draw(t, "phases") {
		s.armed[phase] = true
	}
}

// finish ends everything; then nothing may be left.
func (m *machine) finish(t *rapid.T) {
	m.advanceBy(t, 48*time.Hour)
	for _, c := range m.twin.calls {
		if c.state == running {
			m.end(c, false, false)
		}
	}
	m.agree(t)
	for _, problem := range books.Unsettled(m.guard.Engine()) {
		t.Error(problem)
	}
}

// abandon lets go of the goroutines of a history that failed.
func (m *machine) abandon() {
	for _, cancel := range m.cancels {
		cancel()
	}
	for _, h := range m.open {
		if h.nap == nil {
			continue
		}
		select {
		case <-h.nap.wake:
		default:
			close(h.nap.wake)
		}
	}
}
