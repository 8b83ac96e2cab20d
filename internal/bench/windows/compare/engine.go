package main

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// setClock is a clock that can be set.
type setClock struct{ now int64 }

func (c *setClock) Now() int64                                 { return c.now }
func (c *setClock) Sleep(context.Context, time.Duration) error { return nil }

// steadied gives a limiter the time that an engine derives from a clock that is set.
func steadied(allow func(now int64) bool) func(now int64) bool {
	clock := &setClock{began}
	engine, err := engine.NewEngine(engine.Config{Clock: clock, Chain: trial.Chain()})
	if err != nil {
		panic(err) // the configuration is valid
	}
	return func(now int64) bool {
		clock.now = now
		return allow(engine.Now())
	}
}
