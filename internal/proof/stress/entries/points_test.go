package entries

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/slots"
)

// breaker breaks off at one point of one call.
type breaker struct {
	point string
	way   string
	armed bool
	fired int
	seen  map[string]int // how often each point was passed while armed
}

var ways = map[string]func(){
	"panic":  func() { panic(errBroken) },
	"fault":  func() { var r *engine.Resource; _ = r.Name() },
	"Goexit": runtime.Goexit,
}

var errBroken = errors.New("broken")

func (b *breaker) at(point string) {
	if !b.armed {
		return
	}
	b.seen[point]++
	if point == b.point {
		b.fired++
		ways[b.way]()
	}
}

// slot plays every role, alone or around another slot. In the second case each role has two points,
// and the inner slot runs between them.
type slot struct {
	*breaker
	name  string
	inner engine.Slot // nil if it stands alone
}

func (s *slot) Name() string { return s.name }

// around calls run between the two points of a role, or after its only point if the slot stands
// alone.
func (s *slot) around(role string, run func()) {
	s.at(s.name + " before " + role)
	run()
	s.at(s.name + " after " + role)
}

func (s *slot) Prepare(inv *engine.Invocation) {
	s.around("Prepare", func() {
		if inner, ok := s.inner.(engine.Preparer); ok {
			inner.Prepare(inv)
		}
	})
}

// judge returns the inner slot, or the rules that decide instead.
func (s *slot) judge(inv *engine.Invocation) any {
	if family, ok := s.inner.(engine.FamilySlot); ok {
		return inv.Rules(core.Kind(family))
	}
	return s.inner
}

func (s *slot) Ask(inv *engine.Invocation) (v engine.Verdict) {
	s.around("Ask", func() {
		if inner, ok := s.judge(inv).(engine.Checker); ok {
			v = inner.Ask(inv)
		}
	})
	return v
}

func (s *slot) Take(inv *engine.Invocation) (v engine.Verdict) {
	s.around("Take", func() {
		if inner, ok := s.judge(inv).(engine.Checker); ok {
			v = inner.Take(inv)
		}
	})
	return v
}

func (s *slot) Recheck(inv *engine.Invocation) (v engine.Verdict) {
	s.around("Recheck", func() {
		if inner, ok := s.judge(inv).(engine.Rechecker); ok {
			v = inner.Recheck(inv)
		}
	})
	return v
}

func (s *slot) Passed(inv *engine.Invocation) {
	s.around("Passed", func() {
		if inner, ok := s.inner.(engine.PassRecorder); ok {
			inner.Passed(inv)
		}
	})
}

func (s *slot) Blocked(inv *engine.Invocation, b *core.BlockError) {
	s.around("Blocked", func() {
		if inner, ok := s.inner.(engine.BlockRecorder); ok {
			inner.Blocked(inv, b)
		}
	})
}

func (s *slot) Completed(inv *engine.Invocation) {
	s.around("Completed", func() {
		if inner, ok := s.inner.(engine.CompleteRecorder); ok {
			inner.Completed(inv)
		}
	})
}

// late is a slot behind all others that holds its own resources, and refuses where configured:
// then everything taken before it must be returned.
type late struct {
	*breaker
	refuse, refuseAgain *core.BlockError
	held                int
}

func (l *late) Name() string                          { return "late" }
func (l *late) Ask(*engine.Invocation) engine.Verdict { return engine.Verdict{} }
func (l *late) Take(inv *engine.Invocation) engine.Verdict {
	l.held++
	inv.Reserve(engine.Reservation{Holder: l, Units: 1, UntilExit: true})
	return engine.Verdict{Block: l.refuse}
}
func (l *late) Recheck(*engine.Invocation) engine.Verdict {
	return engine.Verdict{Block: l.refuseAgain}
}

// GiveBack breaks off after its work, to test that other slots release theirs.
func (l *late) GiveBack(*engine.Reservation, int64) {
	l.held--
	l.at("holder")
}

// chain returns the standard chain with a breaker around each slot and between each two slots, and
// with last behind all of them.
func (b *breaker) chain(last *late) *engine.Chain {
	standard := slices.DeleteFunc((*engine.Chain)(slots.Default()).Slots(), func(s engine.Slot) bool {
		return !slices.Contains([]string{"nodeSelector", "clusterBuilder", "log", "statistic", "flow"}, s.Name())
	})
	chain := []engine.Slot{&slot{b, "first", nil}}
	for _, s := range standard {
		chain = append(chain, &slot{b, s.Name(), s}, &slot{b, "behind " + s.Name(), nil})
	}
	return engine.NewChain(append(chain, last)...)
}

// clock moves by itself when a call sleeps, or ends the call's context.
type clock struct {
	*breaker
	manual *clocks.Manual
	cancel func()
}

func (c *clock) Now() int64 {
	c.at("clock reading " + []string{"1", "2", "3", "more"}[min(c.count("reading"), 3)])
	return c.manual.Now()
}

// count returns how often it has been called for name while armed.
func (b *breaker) count(name string) int {
	if !b.armed {
		return 0
	}
	b.seen[name]++
	return b.seen[name] - 1
}

// Alarm never rings: these tests run one call at a time.
func (*clock) Alarm(time.Duration, func()) (stop func()) { return func() {} }

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.at("clock before Sleep")
	if c.cancel != nil {
		c.cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	c.manual.Advance(d)
	c.at("clock after Sleep")
	return nil
}

// callerContext is a custom context of the caller.
type callerContext struct {
	context.Context
	*breaker
}

func (c callerContext) Err() error { c.at("context Err"); return c.Context.Err() }
func (c callerContext) Deadline() (time.Time, bool) {
	c.at("context Deadline")
	return c.Context.Deadline()
}
func (c callerContext) Value(key any) any { c.at("context Value"); return c.Context.Value(key) }

// handler is a logger's handler.
type handler struct {
	slog.Handler
	*breaker
}

func (h handler) Enabled(context.Context, slog.Level) bool { h.at("logger Enabled"); return true }
func (h handler) Handle(context.Context, slog.Record) error {
	h.at("logger Handle")
	return nil
}

var roles = []string{"Prepare", "Ask", "Take", "Recheck", "Passed", "Blocked", "Completed"}

// points returns all points.
func points() (all []string) {
	for _, s := range new(breaker).chain(nil).Names() {
		if s == "late" {
			continue
		}
		for _, role := range roles {
			all = append(all, s+" before "+role)
			if slices.Contains((*engine.Chain)(slots.Default()).Names(), s) {
				all = append(all, s+" after "+role)
			}
		}
	}
	return append(all, "holder", "clock reading 1", "clock reading 2", "clock reading 3", "clock before Sleep", "clock after Sleep",
		"context Err", "context Deadline", "context Value", "logger Enabled", "logger Handle")
}
