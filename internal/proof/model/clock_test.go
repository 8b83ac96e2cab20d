package model

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/slots"
)

// clock can be set forward and back. Each sleep on it is passed to the test, which wakes the
// sleepers one after the other.
type clock struct {
	now    atomic.Int64
	asleep chan *nap
}

// nap is one sleep of a call.
type nap struct {
	wait time.Duration
	wake chan struct{}
	ctx  context.Context // of the sleep: it ends when the call should look again
	of   *handle
}

// whose is the context key of a call's handle.
type whose struct{}

// notified reports whether a sleeping call should look again.
func (n *nap) notified() bool { return n.ctx.Err() != nil }

func (c *clock) Now() int64 { return c.now.Load() }

func (c *clock) at() time.Time { return time.Unix(0, c.Now()) }

// Alarm never rings: the test triggers timed work.
func (*clock) Alarm(time.Duration, func()) (stop func()) { return func() {} }

// Sleep ends when the test wakes the call, regardless of the time.
func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	n := &nap{wait: d, wake: make(chan struct{}), ctx: ctx, of: ctx.Value(whose{}).(*handle)}
	c.asleep <- n
	<-n.wake
	return ctx.Err()
}

var errStumbled = errors.New("a slot that panics")

// stumbler is a slot that panics in configured phases and otherwise only takes units, which shows
// whether everything is returned after a panic.
type stumbler struct {
	name  string
	armed map[string]bool
	fell  int
	held  int
}

func (s *stumbler) Name() string { return s.name }

func (s *stumbler) step(phase string) {
	if s.armed[phase] {
		s.fell++
		panic(errStumbled)
	}
}

func (s *stumbler) Prepare(slots.Call) { s.step("prepare") }

func (s *stumbler) Ask(slots.Call) slots.Verdict {
	s.step("ask")
	return slots.Verdict{}
}

func (s *stumbler) Take(c slots.Call) slots.Verdict {
	s.held++
	c.Hold(s, 0)
	s.step("take")
	return slots.Verdict{}
}

func (s *stumbler) GiveBack(int64, time.Time) {
	s.held--
	s.step("giveBack")
}

func (s *stumbler) Passed(slots.Call)                    { s.step("passed") }
func (s *stumbler) Blocked(slots.Call, *core.BlockError) { s.step("blocked") }
func (s *stumbler) Completed(slots.Call)                 { s.step("completed") }

// doubter is a stumbler that is asked again after a wait, so no waiting call is certain to run.
type doubter struct{ *stumbler }

func (s doubter) Recheck(slots.Call) slots.Verdict {
	s.step("recheck")
	return slots.Verdict{}
}

var phases = []string{"prepare", "ask", "take", "giveBack", "recheck", "passed", "blocked", "completed"}
