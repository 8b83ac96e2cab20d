package model

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/slots"
	"github.com/penstock-go/penstock/system"
)

// machine makes every step twice: with the engine and with the model.
type machine struct {
	*testing.T
	*drawer
	guard     *api.Guard
	clock     *clock
	stumblers []*stumbler
	model     *Model
	shows     shows
	settable  bool // the clock may be set back
	early     bool // some sleeps end early
	late      bool // or late
	steps     []string

	open    map[*Call]*handle
	over    []api.Admitted
	cancels []context.CancelFunc

	mu    sync.Mutex
	heard []breaker.Change
}

// handle is the engine's side of a call.
type handle struct {
	entry  api.Admitted
	ctx    context.Context
	cancel context.CancelFunc
	gives  bool // may give up
	above  bool // other calls have contexts derived from its own
	nap    *nap
	due    int64 // on the clock, when it wakes
	slept  int64 // the engine's time then, unless the clock is set
	result chan result
}

type result struct {
	entry api.Admitted
	err   error
}

// shows is a machine with the load and CPU usage of the history.
type shows struct{ load, cpu float64 }

func (s *shows) Load(int64) (float64, error)       { return s.load, nil }
func (s *shows) CPU(int64) (float64, error)        { return s.cpu, nil }
func (s *shows) Memory(int64) (host.Memory, error) { return host.Memory{}, nil }

// epoch lies so far ahead that no deadline ends by itself while a test runs.
var epoch = time.Unix(4_000_000_000, 0)

func newMachine(t *testing.T, rnd *rand.Rand, settable bool) *machine {
	m := &machine{
		T: t, drawer: newDrawer(rnd), settable: settable,
		clock:     &clock{asleep: make(chan *nap)},
		stumblers: []*stumbler{{name: "first"}, {name: "middle"}, {name: "last"}},
		open:      make(map[*Call]*handle),
	}
	m.clock.now.Store(epoch.UnixNano() + int64(m.span(0, time.Second)))
	if !settable {
		m.early, m.late = m.often(20), m.often(20)
	}
	doubts := m.often(30)
	slot := func(i int) slots.Slot {
		if doubts {
			return doubter{m.stumblers[i]}
		}
		return m.stumblers[i]
	}
	cfg := api.Config{
		Clock: m.clock, Host: &m.shows, Logger: slog.New(slog.DiscardHandler),
		OccupyTimeout: pick(m.drawer, 500*ms, 100*ms, time.Second),
	}
	if m.often(60) { // otherwise calls skip the ask where possible
		cfg.Chain = slots.Default().With(slot(0), slots.Before("nodeSelector")).
			With(slot(1), slots.Before("flow")).With(slot(2), slots.After("flow"))
	} else {
		m.stumblers, doubts = nil, false
	}
	var err error
	if m.guard, err = api.New(cfg); err != nil {
		t.Fatal(err)
	}
	m.guard.OnBreaker(func(c breaker.Change) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.heard = append(m.heard, c)
	})
	m.model = New(Config{Now: m.clock.Now(), Occupy: cfg.OccupyTimeout, Direct: m.stumblers == nil})
	return m
}

// fail ends the history and prints its latest steps.
func (m *machine) fail(format string, args ...any) {
	m.Helper()
	m.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(m.steps[max(0, len(m.steps)-90):], "\n"))
}

// note records a step.
func (m *machine) note(format string, args ...any) {
	m.steps = append(m.steps, fmt.Sprintf("  %v ", time.Duration(m.model.now-epoch.UnixNano()))+fmt.Sprintf(format, args...))
}

// enter makes a call and compares verdict and wait.
func (m *machine) enter() {
	c := m.drawer.call()
	ctx := api.WithOrigin(api.WithContext(context.Background(), c.Context), c.Origin)
	if parent := m.pick(Running); parent != nil && m.often(20) {
		c.Context, c.Origin = parent.Context, parent.Origin
		ctx, m.open[parent].above = m.open[parent].entry.Context(), true
	}
	c.Context = contextName(c.Context)
	h := &handle{result: make(chan result, 1)}
	c.Left = Endless
	ctx = context.WithValue(ctx, whose{}, h)
	h.ctx, h.cancel = ctx, func() {}
	switch m.IntN(12) {
	case 0, 1, 2, 3, 4, 5:
		h.ctx, h.cancel = context.WithCancel(ctx)
		h.gives = true
	case 6:
		h.ctx, h.cancel = context.WithCancel(ctx)
		h.cancel()
	case 7:
		h.ctx, h.cancel = context.WithDeadline(ctx, m.clock.at().Add(m.span(0, time.Second)))
	}
	if deadline, ok := h.ctx.Deadline(); ok {
		c.Left = deadline.Sub(m.clock.at())
	}
	if h.ctx.Err() != nil {
		c.Left = 0
	}
	m.cancels = append(m.cancels, h.cancel)
	m.model.Enter(c)
	m.note("%v: %s (left %v, turns %d)", c, c.verdict(), c.Left, len(c.turns))
	m.start(c, h)
}

// start makes the call that the model has decided on.
func (m *machine) start(c *Call, h *handle) {
	opts := []engine.Option{api.Units(int(c.Units)), api.Args(c.Args...)}
	for _, v := range c.Params["user"] {
		opts = append(opts, api.Param("user", v))
	}
	if c.Prioritized {
		opts = append(opts, api.Prioritized())
	}
	if c.Inbound {
		opts = append(opts, api.Inbound())
	}
	go func() {
		entry, err := m.guard.Entry(h.ctx, c.Resource, opts...)
		h.result <- result{entry, err}
	}()
	got, sleeps := m.event(h)
	if sleeps {
		m.open[c] = h
		wait := c.Wait
		if c.Wait == 0 && c.queued != nil {
			wait = time.Duration(c.queued.until - m.model.now)
			c.queued.attended = true
		}
		if c.State != Waiting || h.nap.wait > wait || h.nap.wait < wait && !c.mayWake() {
			m.fail("%v waits %v; the model: %v", c, h.nap.wait, c.verdict())
		}
	} else {
		m.compare(c, got)
		if got.err == nil {
			h.entry = got.entry
			m.open[c] = h
		}
	}
	m.settle()
}

// mayWake reports whether a call may wake early: a call that has jumped ahead in a queue, and also
// waits for something else, wakes at its turn in the queue to notify the calls behind it.
func (c *Call) mayWake() bool {
	return c.Prioritized && len(c.turns) > 0 && (len(c.turns) > 1 || c.borrowed)
}

// compare checks the outcome of a call against the model's.
func (m *machine) compare(c *Call, got result) {
	m.Helper()
	refusal, isRefusal := errors.AsType[*core.BlockError](got.err)
	switch {
	case got.err == nil && c.State == Running:
	case isRefusal && c.State == Blocked && refusal.Kind == c.By.Kind && refusal.Rule == c.By.ID:
		m.agreeOnRetry(c, refusal)
	default:
		m.fail("%v: %v; the model: %v", c, got.err, c.verdict())
	}
}

func (c *Call) String() string {
	s := fmt.Sprintf("%s in %s from %q x%d", c.Resource, c.Context, c.Origin, c.Units)
	if c.Prioritized {
		s += " first"
	}
	if c.Inbound {
		s += " inbound"
	}
	if c.Params != nil {
		s += fmt.Sprint(" ", c.Params["user"], c.Args)
	}
	return s
}

func (c *Call) verdict() string {
	switch c.State {
	case Blocked:
		return fmt.Sprintf("refused by %s %s", c.By.Kind, c.By.ID)
	case Waiting:
		return fmt.Sprintf("waits %v for %s", c.Wait, c.By.ID)
	}
	return "passes"
}

// pick chooses one of the calls in a state, or returns nil if there is none.
func (m *machine) pick(s State) *Call {
	var calls []*Call
	for _, c := range m.model.calls {
		if c.State == s && m.open[c] != nil {
			calls = append(calls, c)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return pick(m.drawer, calls...)
}

// exit ends a call, perhaps with an error, after its context was canceled, or on another goroutine.
func (m *machine) exit() {
	if c := m.pick(Running); c != nil {
		if h := m.open[c]; h.gives && !h.above && m.often(40) {
			h.cancel()
		}
		m.end(c, pick[error](m.drawer, nil, nil, errStumbled, errStumbled, errRefused, context.Canceled), m.often(50))
	}
}

// errRefused is the refusal of a nested call.
var errRefused = fmt.Errorf("nested: %w", core.ErrBlocked)

func (m *machine) end(c *Call, err error, elsewhere bool) {
	h := m.open[c]
	left := h.ctx.Err() != nil // no deadline passes; see epoch
	c.Neutral = err != nil && (left || errors.Is(err, errRefused))
	m.note("ends with %v, left %v: %v", err, left, c)
	m.model.Exit(c, errors.Is(err, errStumbled) && !left)
	h.entry.Fail(err)
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
	m.settle()
}

// again uses an ended entry in every way, and makes calls that are counted nowhere.
func (m *machine) again() {
	if len(m.over) > 0 {
		e := pick(m.drawer, m.over...)
		err := errStumbled
		e.Fail(err)
		e.Exit()
		e.ExitOn(&err)
		if engine.ContextOf(e.Context()) != nil {
			m.fail("an entry that has ended returns a context")
		}
	}
	for name, units := range map[string]int{"": 1, "a": 1<<20 + 1} {
		if e, err := m.guard.Entry(m.Context(), name, api.Units(units)); !errors.Is(err, core.ErrInvalid) || e != (api.Admitted{}) {
			m.fail("an invalid call: %v, %v", e, err)
		}
	}
}

// cancel ends the context of a call that waits.
func (m *machine) cancel() {
	c := m.drawerPick(func(c *Call) bool { return c.State == Waiting && m.open[c].gives })
	if c == nil {
		return
	}
	m.note("gives up: %v", c)
	h := m.open[c]
	m.model.Leave(c)
	h.cancel()
	close(h.nap.wake)
	got, _ := m.event(h)
	if !errors.Is(got.err, context.Canceled) {
		m.fail("%v gave up with %v", c, got.err)
	}
	m.compare(c, got)
	delete(m.open, c)
	m.settle()
	m.overdue()
}

func (m *machine) drawerPick(f func(*Call) bool) *Call {
	var calls []*Call
	for _, c := range m.model.calls {
		if f(c) {
			calls = append(calls, c)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return pick(m.drawer, calls...)
}

// reload changes some rules, or none.
func (m *machine) reload() { m.load(m.changed(m.guard.Rules())) }

func (m *machine) load(set api.RuleSet) {
	if err := m.guard.LoadRules(set); err != nil {
		m.fail("%v", err)
	}
	m.guard.Engine().Sampler().Sample()
	text, _ := m.guard.Rules().YAML()
	m.note("rules:\n%s", text)
	m.model.Load(m.guard.Rules())
	m.settle()
}

// busy changes the machine's values.
func (m *machine) busy() {
	if m.reckons() && m.often(30) {
		m.rhythm()
		return
	}
	m.show(pick(m.drawer, 0.0, 3, 100), pick(m.drawer, 0.0, 0.9))
}

// reckons reports whether a system rule with strategy bbr is enforced.
func (m *machine) reckons() bool {
	return slices.ContainsFunc(m.model.set.System, func(r system.Rule) bool { return r.Strategy == system.BBR && r.Mode == spec.Enforce })
}

func (m *machine) show(load, cpu float64) {
	m.shows = shows{load, cpu}
	m.guard.Engine().Sampler().Sample()
	m.model.Machine(m.shows.load, m.shows.cpu)
}

// rhythm ends all calls, runs others in lockstep, and then sends more at once to a busy machine:
// BBR then multiplies the completions in a second by the least response time, which is exactly the
// number of calls in flight.
func (m *machine) rhythm() {
	m.show(0, 0)
	m.advanceBy(5 * time.Second)
	for c := m.pick(Running); c != nil; c = m.pick(Running) {
		m.end(c, nil, false)
	}
	apart, together := pick(m.drawer, 200*ms, 250*ms, 500*ms), 2+m.IntN(2)
	comes := func() *Call {
		c := &Call{Resource: "steady", Context: contextName(""), Units: 1, Inbound: true, Left: Endless}
		h := &handle{result: make(chan result, 1)}
		h.ctx, h.cancel = context.WithValue(context.Background(), whose{}, h), func() {}
		m.model.Enter(c)
		m.note("%v: %s", c, c.verdict())
		m.start(c, h)
		return c
	}
	var inside []*Call
	for range together + int(2*time.Second/apart) {
		inside = append(inside, comes())
		m.advanceBy(apart)
		if c := inside[0]; len(inside) >= together {
			if inside = inside[1:]; c.State == Running {
				m.end(c, nil, false)
			}
		}
	}
	m.show(3, 0)
	for range 3 {
		comes()
	}
}

// stumble chooses where slots panic until it is called again.
func (m *machine) stumble() {
	if m.stumblers == nil {
		return
	}
	for _, s := range m.stumblers {
		s.armed = nil
	}
	s := pick(m.drawer, m.stumblers...)
	s.armed = make(map[string]bool)
	for range m.IntN(5) {
		s.armed[pick(m.drawer, phases...)] = true
	}
}

// finish ends everything; then nothing may be left.
func (m *machine) finish() {
	m.late = false
	for range 50 {
		m.advanceBy(48 * time.Hour)
		for _, c := range slices.Clone(m.model.calls) {
			if c.State == Running {
				m.end(c, nil, false)
			}
		}
	}
	m.agree()
	for _, problem := range books.Unsettled(m.guard.Engine()) {
		m.fail("%s", problem)
	}
}

// abandon releases the goroutines of a history that failed.
func (m *machine) abandon() {
	for _, cancel := range m.cancels {
		cancel()
	}
	for range 100 {
		waits := false
		for _, h := range m.open {
			if h.nap != nil {
				select {
				case <-h.nap.wake:
				default:
					close(h.nap.wake)
				}
			}
			waits = waits || h.entry == api.Admitted{} && len(h.result) == 0
		}
		if !waits {
			return
		}
		select {
		case n := <-m.clock.asleep:
			n.of.nap = n
		case <-time.After(ms):
		}
	}
}

func contextName(name string) string {
	if name == "" {
		return node.DefaultContext
	}
	return name
}
