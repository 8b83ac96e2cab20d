package plant_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/proof/books"
	"github.com/penstock-go/penstock/proof/plant"
)

func TestMain(m *testing.M) { books.Main(m) }

const ms = time.Millisecond

// Four calls of 4 ms of work each share two processors: they end after 8 ms, and all of the
// machine is in use. A call that waits takes nothing of it.
func TestCallsShareTheProcessors(t *testing.T) {
	p := &plant.Plant{CPUs: 2}
	ended := 0
	for range 4 {
		p.Begin(4*ms, 0, func() { ended++ })
	}
	p.Begin(ms, time.Second, func() { t.Error("it waits yet") })
	for i := range 8 {
		assert.Zero(t, ended, "after %d ms", i)
		p.Serve()
	}
	assert.Equal(t, 4, ended)
	assert.Equal(t, 1, p.InFlight())
	assert.InDelta(t, 0.5, p.CPU(), 1e-9, "all of it, and half of none")
	assert.InDelta(t, 0.5, p.CPU(), 1e-9, "no time has passed")
	for range 8 {
		p.Serve()
	}
	assert.InDelta(t, 0.25, p.CPU(), 1e-9)
}

func TestLoadFollowsWithinAMinute(t *testing.T) {
	p := &plant.Plant{CPUs: 1}
	for range 10 {
		p.Begin(time.Hour, 0, func() {})
	}
	for range time.Minute / plant.Step {
		p.Serve()
	}
	assert.InDelta(t, 10*(1-1/2.718281828), p.Load(), 1e-6)
}

func TestStopEndsEachOnce(t *testing.T) {
	p := &plant.Plant{CPUs: 1}
	ended := 0
	for range 3 {
		p.Begin(ms, ms, func() { ended++ })
	}
	p.Stop()
	p.Stop()
	assert.Equal(t, 3, ended)
	assert.Zero(t, p.InFlight())
}

func TestDueKeepsTheRate(t *testing.T) {
	p, calls := &plant.Plant{}, 0
	for range time.Second / plant.Step {
		calls += p.Due(1234)
	}
	assert.InDelta(t, 1234, calls, 1)
}
