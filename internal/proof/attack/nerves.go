package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/slots"
)

// nerves makes user code panic now and then.
type nerves struct {
	*round
	share int // once in so many times

	mu      sync.Mutex
	calmed  bool
	broken  int
	where   []string
	strange error
}

// errNervous is the value of all its panics.
var errNervous = errors.New("nervous")

// at marks a point at which user code may panic.
func (n *nerves) at(where string) {
	n.mu.Lock()
	breaks := !n.calmed && n.one(n.share)
	if breaks {
		n.broken++
		n.where = append(n.where, where)
	}
	n.mu.Unlock()
	if breaks {
		panic(errNervous)
	}
}

// chance returns true about once in the given number of times. Callers that wake together share the
// result.
func (n *nerves) chance(times int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.one(times)
}

// calm stops panics if down is set, or lets them happen again.
func (n *nerves) calm(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calmed = down
}

// own checks a recovered value. A panic with any value but errNervous is a bug.
func (n *nerves) own(p any) error {
	if p == nil {
		return nil
	}
	if err, ok := p.(error); !ok || !errors.Is(err, errNervous) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.strange = fmt.Errorf("a caller got the panic %v", p)
	}
	return errNervous
}

// nervousSlot plays every role, holds its own resources, and refuses now and then.
type nervousSlot struct {
	*nerves
	name string
}

func (s *nervousSlot) verdict(c slots.Call) (v slots.Verdict) {
	if s.chance(30) {
		v.Block = engine.NewCounted(core.BlockError{Resource: c.Resource(), Rule: s.name}, nil, nil, nil)
	}
	return v
}

func (s *nervousSlot) Name() string              { return s.name }
func (s *nervousSlot) Prepare(slots.Call)        { s.at("prepare") }
func (s *nervousSlot) Passed(slots.Call)         { s.at("passed") }
func (s *nervousSlot) Completed(slots.Call)      { s.at("completed") }
func (s *nervousSlot) GiveBack(int64, time.Time) { s.at("give back") }
func (s *nervousSlot) Ask(c slots.Call) slots.Verdict {
	s.at("ask")
	return s.verdict(c)
}

func (s *nervousSlot) Take(c slots.Call) slots.Verdict {
	c.Hold(s, 1)
	s.at("take")
	return s.verdict(c)
}

func (s *nervousSlot) Recheck(c slots.Call) slots.Verdict {
	s.at("recheck")
	return s.verdict(c)
}

func (s *nervousSlot) Blocked(slots.Call, *core.BlockError) { s.at("blocked") }

// nervousClock is the stage, but may panic when it is read or slept on.
type nervousClock struct {
	*stage
	nerves *nerves
}

func (c *nervousClock) Now() int64 {
	c.nerves.at("clock")
	return c.stage.Now()
}

func (c *nervousClock) Sleep(ctx context.Context, d time.Duration) error {
	c.nerves.at("sleep")
	err := c.stage.Sleep(ctx, d)
	c.nerves.at("waking up")
	return err
}

type nervousContext struct {
	context.Context
	nerves *nerves
}

func (c *nervousContext) Deadline() (time.Time, bool) {
	c.nerves.at("deadline")
	return c.Context.Deadline()
}

func (c *nervousContext) Value(key any) any {
	c.nerves.at("value")
	return c.Context.Value(key)
}

// nervousLog is a handler that refuses nothing.
type nervousLog struct{ *nerves }

func (l *nervousLog) Enabled(context.Context, slog.Level) bool { l.at("enabled"); return true }
func (l *nervousLog) Handle(context.Context, slog.Record) error {
	l.at("handle")
	return nil
}
func (l *nervousLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *nervousLog) WithGroup(string) slog.Handler      { return l }
