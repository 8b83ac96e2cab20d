package replay

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/model"
)

// live is a call that our engine admitted: it waits, or runs.
type live struct {
	*call
	ctx     context.Context
	entry   api.Admitted
	nested  context.Context // for calls nested in this one, made when needed
	pending chan reply      // nil once the call runs
}

// reply is the result of entering.
type reply struct {
	entry api.Admitted
	err   error
}

// verdict is the outcome of a call, in the traces' words.
type verdict struct {
	result    string
	wait      time.Duration
	blockedBy string
	rule      string
}

func (v verdict) String() string {
	s := v.result
	if v.wait > 0 {
		s += fmt.Sprintf(" after %v", v.wait)
	}
	if v.result == "block" {
		s += fmt.Sprintf(" by %s rule %q", v.blockedBy, v.rule)
	}
	return s
}

// enter enters a resource. It returns when the call has returned or begins to wait.
func (p *player) enter(op *Op) *moment {
	l := p.arrive(op)
	hot := p.hot.judge(p.model, l.call, p.javaNow)
	servable := p.model.Servable()
	promise := p.promised(l.m)
	parked, slept := p.clock.Parked(), len(p.clock.Slept())
	ask := func() {
		entry, err := p.guard.Entry(l.ctx, op.Resource, append(options(op), api.Args(l.args...))...)
		l.pending <- reply{entry, err}
	}
	if p.config.Sleep == "park" {
		go ask()
	} else {
		ask()
	}
	for len(l.pending) == 0 && p.clock.Parked() == parked {
		runtime.Gosched()
	}
	got := verdict{result: "pass"}
	if now := p.clock.Slept(); len(now) > slept {
		l.wait = now[slept]
		got = verdict{result: "wait", wait: l.wait}
	}
	if p.config.Sleep == "advance" {
		p.due += int64(l.wait)
	}
	l.released = p.due
	if len(l.pending) == 0 {
		l.released += int64(l.wait)
		p.waiting = append(p.waiting, l)
	} else {
		r := <-l.pending
		l.entry, l.pending = r.entry, nil
		if block, ok := errors.AsType[*core.BlockError](r.err); ok {
			got.result, got.blockedBy, got.rule = "block", javaKind(block.Kind.String()), block.Rule
		} else if r.err != nil {
			got.result = r.err.Error()
		}
	}
	l.borrowed = l.m.Borrowed()
	l.blocked = got.result != "pass" && got.result != "wait"
	if !l.blocked {
		p.open[l.id] = l
	}
	m := &moment{player: p, call: l.call, want: &op.Expect, got: got, rules: p.applying(l.call), hot: hot, promise: promise, servable: servable}
	if l.m.State == model.Waiting && len(l.pending) == 0 && !(p.config.Sleep == "park") {
		p.model.Advance(p.due)
		p.model.Run(l.m)
	}
	m.settle()
	return m
}

// arrive returns a call that is about to ask, with what its caller holds.
func (p *player) arrive(op *Op) *live {
	c := &call{
		id: op.ID, place: place{op.Context, op.Resource}, origin: op.Origin, inbound: op.EntryType == "in",
		prioritized: op.Prioritized, units: 1, asked: p.due, javaAsked: p.javaNow, java: &op.Expect,
	}
	for _, raw := range op.Args {
		arg, err := argumentOf(raw)
		if err != nil {
			panic(err) // no trace has one
		}
		c.args = append(c.args, arg)
	}
	if op.Count != nil {
		c.units, c.oddCount = max(1, *op.Count), *op.Count < 1
	}
	l := &live{call: c, ctx: p.callers, pending: make(chan reply, 1)}
	switch {
	case op.Parent != nil:
		parent := p.open[*op.Parent]
		if parent.nested == nil {
			parent.nested = parent.entry.Context()
		}
		l.ctx = parent.nested
		c.parent, c.origin, c.place.context = parent.call, parent.origin, parent.place.context
	case op.Context != "":
		l.ctx = api.WithOrigin(api.WithContext(l.ctx, op.Context), op.Origin)
	default:
		c.place.context = defaultContext
	}
	l.m = &model.Call{
		Resource: op.Resource, Context: c.place.context, Origin: c.origin, Units: c.units, Inbound: c.inbound,
		Prioritized: c.prioritized, Args: c.args, Left: model.Endless,
	}
	return l
}

func options(op *Op) []engine.Option {
	var options []engine.Option
	if op.Count != nil {
		options = append(options, api.Units(int(*op.Count)))
	}
	if op.Prioritized {
		options = append(options, api.Prioritized())
	}
	if op.EntryType == "in" {
		options = append(options, api.Inbound())
	}
	return options
}

var errBusiness = errors.New("golden: a business error of the trace")

// exit ends a call.
func (p *player) exit(l *live, failed bool) {
	if failed {
		l.entry.Fail(errBusiness)
	}
	l.entry.Exit()
	l.exited, l.ended, l.javaEnded, l.failed = true, p.due, p.javaNow, failed
	delete(p.open, l.id)
	p.model.Exit(l.m, failed)
	p.book.touch(l.ended, l.nodes()...)
	for _, f := range l.atExit {
		f()
	}
}
