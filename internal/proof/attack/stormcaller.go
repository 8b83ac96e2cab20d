package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/penstock-go/penstock/core"
)

// stormCaller represents one of the callers.
type stormCaller struct {
	*storm
	number int
	rand   *rand.Rand
}

// one makes one call, which may succeed or fail.
func (c *stormCaller) one() {
	made := drawCall(&round{Rand: c.rand}, 8)
	ctx := from(c.ctx, made.context, made.origin)
	if c.rand.IntN(3) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.rand.Int64N(int64(5*ms))))
		defer cancel()
	}
	fate := c.rand.IntN(20)
	if fate == 0 { // the goroutine ends, wherever it is
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.run(ctx, made, fate)
		}()
		<-done
		return
	}
	defer func() {
		p := recover()
		if err, ok := p.(error); p != nil && (!ok || !errors.Is(err, errBroken)) {
			c.mu.Lock()
			c.broken = errors.Join(c.broken, fmt.Errorf("a caller got the panic %v", p))
			c.mu.Unlock()
		}
	}()
	c.run(ctx, made, fate)
}

func (c *stormCaller) run(ctx context.Context, made *call, fate int) {
	clock := c.guard.Engine()
	before := clock.Now()
	c.calls.Add(made.units)
	c.offered.Add(1)
	e, err := c.guard.Entry(ctx, made.resource, made.options()...)
	after := clock.Now()
	if err != nil {
		c.refused.Add(made.units)
		if !errors.Is(err, core.ErrBlocked) {
			panic(err)
		}
		return
	}
	c.passed.Add(made.units)
	entry := &stormEntry{call: made, before: before, after: after}
	defer func() {
		entry.ended = clock.Now()
		c.entered[c.number] = append(c.entered[c.number], *entry)
		e.Exit()
		c.left.Add(made.units)
		if fate%2 == 0 {
			e.Exit()
		}
	}()
	if c.rand.IntN(2) == 0 {
		time.Sleep(time.Duration(c.rand.Int64N(int64(ms))))
	}
	switch fate {
	case 0:
		runtime.Goexit()
	case 1:
		panic(errBroken)
	case 2:
		e.Fail(errBroken)
	case 3:
		e.Fail(errPanics)
	}
}
