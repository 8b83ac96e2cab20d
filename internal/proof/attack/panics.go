package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/slots"
)

// panics makes every piece of user code panic now and then: slots, the clock, contexts, loggers,
// listeners, and the function that classifies failures. After each panic the guard continues and
// rules can still be loaded, and in the end nothing is held and no call is lost.
func panics(r *round) error {
	n := &nerves{round: r, share: pick(r, 20, 100), calmed: true}
	p := &panicRound{round: r, nerves: n, stage: newStage(), set: drawSet(r, 2)}
	chain := slots.Default()
	for i := range 1 + r.IntN(2) {
		place := slots.After(pick(r, "statistic", "authority", "flow", "isolation", "breaker"))
		chain = chain.With(&nervousSlot{n, fmt.Sprintf("nervous %d", i)}, place)
	}
	p.guard, _ = r.bareGuard(api.Config{
		Clock: &nervousClock{p.stage, n}, Chain: chain, Logger: slog.New(&nervousLog{n}),
		Failure:   func(error) bool { n.at("failure"); return true },
		LeakAfter: pick(r, 0, time.Hour),
	})
	p.guard.OnBreaker(func(breaker.Change) { n.at("listener") })
	n.calm(false)
	for range 60 + r.IntN(100) {
		p.something()
		p.look()
	}
	n.calm(true)
	for _, c := range p.waiting {
		p.stage.leave(c.caller)
	}
	p.look()
	for len(p.running) > 0 {
		p.end()
	}
	r.checked.Add(int64(n.broken) + 1)
	r.step("panicked: %s", n.where)
	if n.strange != nil {
		return n.strange
	}
	if err := p.guard.LoadRules(drawSet(r, 1)); err != nil {
		return fmt.Errorf("after %d panics no rules can be loaded: %w", n.broken, err)
	}
	return settled(p.guard)
}

type panicRound struct {
	*round
	nerves           *nerves
	stage            *stage
	guard            *api.Guard
	set              rules.Set
	waiting, running []*call
}

// something makes or ends a call, lets time pass, or loads rules.
func (p *panicRound) something() {
	p.offered.Add(1)
	switch k := p.IntN(10); {
	case k < 6:
		c := drawCall(p.round, 4)
		opts := append(c.options(), api.Endpoint(pick(p.round, "", "a", "b")))
		c.caller = p.stage.enter(p.ctx, func(ctx context.Context) (e api.Admitted, err error) {
			defer func() { err = errors.Join(err, p.nerves.own(recover())) }()
			ctx = from(&nervousContext{ctx, p.nerves}, c.context, c.origin)
			return p.guard.Entry(ctx, c.resource, opts...)
		})
		p.waiting = append(p.waiting, c)
	case k < 7 && len(p.running) > 0:
		if p.one(3) {
			p.guarded(func() { p.running[0].entry.Fail(errBroken) })
		}
		p.end()
	case k < 8 && len(p.waiting) > 0:
		p.stage.leave(p.waiting[p.IntN(len(p.waiting))].caller)
	case k < 9:
		d := p.between(0, pick(p.round, ms, 100*ms, 3*time.Second))
		_ = p.stage.advance(p.stage.Now()+int64(d), func() error { return nil })
	default:
		p.set = reshape(p.round, p.set)
		p.guarded(func() { _ = p.guard.LoadRules(p.set) })
		p.stage.settle()
	}
}

// look finds the admitted calls.
func (p *panicRound) look() {
	p.waiting = slices.DeleteFunc(p.waiting, func(c *call) bool {
		if !c.waits() && c.err == nil {
			p.running = append(p.running, c)
		}
		return !c.waits()
	})
}

// end ends a running call.
func (p *panicRound) end() {
	c := p.running[0]
	p.running = p.running[1:]
	p.guarded(c.entry.Exit)
	p.stage.settle()
}

// guarded runs code that may panic.
func (p *panicRound) guarded(f func()) {
	defer func() { _ = p.nerves.own(recover()) }()
	f()
}
