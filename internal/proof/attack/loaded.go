package main

import (
	"context"
	"slices"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/internal/proof/plant"
)

// loaded is a simulated machine that a guard reads, with the history of its calls.
type loaded struct {
	plant.Plant
	guard *api.Guard
	clock *clocks.Manual
	work  func() (cpu, idle time.Duration)

	ended    []completion
	readings []reading

	offered, admitted     int
	seen, highest, lowest int // see oneCeiling

	fails func() bool // whether a reading fails; nil for never
}

// completion is an ended call, and its duration.
type completion struct {
	at int64
	rt time.Duration
}

// reading is a value that the plant reported at a time.
type reading struct {
	at     int64
	value  float64
	failed bool
}

// machineHost is the [host.Source] of a loaded machine.
type machineHost struct{ *loaded }

func (h machineHost) Load(now int64) (float64, error) { return h.value(now, h.Plant.Load()) }
func (h machineHost) CPU(now int64) (float64, error)  { return h.value(now, h.Plant.CPU()) }

// Memory returns a machine with half of its memory in use, since these attacks test other limits.
func (machineHost) Memory(int64) (host.Memory, error) { return host.Memory{Used: 1, Limit: 2}, nil }

func (p *loaded) value(now int64, value float64) (float64, error) {
	failed := p.fails != nil && p.fails()
	p.readings = append(p.readings, reading{now, value, failed})
	if failed {
		return 0, errBroken
	}
	return value, nil
}

// step plays a millisecond in which calls arrive at the given rate per second. come returns an
// error if a call was wrongly admitted or refused.
func (p *loaded) step(rate float64, come func(admitted bool) error) error {
	for range p.Due(rate) {
		e, err := p.guard.Entry(context.Background(), "orders", api.Inbound())
		p.offered++
		if wrong := come(err == nil); wrong != nil {
			e.Exit()
			return wrong
		}
		if err == nil {
			p.admitted++
			p.begin(e)
		}
	}
	p.Serve()
	p.clock.Advance(plant.Step)
	return nil
}

// begin runs an admitted call, and records when it ends.
func (p *loaded) begin(e api.Admitted) {
	came := p.clock.Now()
	cpu, idle := p.work()
	p.Begin(cpu, idle, func() {
		e.Exit()
		p.ended = append(p.ended, completion{p.clock.Now(), time.Duration(p.clock.Now() - came)})
	})
}

// reading returns the latest value that the engine has read.
func (p *loaded) reading() (value float64, known bool) {
	if len(p.readings) == 0 {
		return 0, false
	}
	last := p.readings[len(p.readings)-1]
	return last.value, !last.failed
}

// within returns the calls that ended in the given buckets of a window.
func (p *loaded) within(s shape, from, to int64) (n int, sum, least time.Duration) {
	for _, c := range slices.Backward(p.ended) {
		if s.number(c.at) < from {
			break
		}
		if s.number(c.at) <= to {
			n++
			sum += c.rt
			if n == 1 || c.rt < least {
				least = c.rt
			}
		}
	}
	return n, sum, least
}
