package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/bench/measure"
)

// idleness measures the process in seconds without calls: with an engine that has rules of all
// families and was just under load, and without one.
type idleness struct {
	ok              bool
	cpu, without    time.Duration // the median of the seconds
	wakes, wakesOut float64
	goroutines      int // of the engine
}

// settle lets earlier work finish. The runtime returns unused memory to the system bit by bit, for
// seconds: after the rows with many resources that took a millisecond of each second, for which the
// engine is not responsible.
func settle() {
	debug.FreeOSMemory()
	time.Sleep(200 * time.Millisecond) // a coarse clock's ticker ends after ten without a reading
}

func idling(seconds int) (found idleness) {
	before := runtime.NumGoroutine()
	settle()
	var without, with [][2]float64
	second := func(into *[][2]float64) {
		cpu, switches, ok := used()
		time.Sleep(time.Second)
		cpuAfter, switchesAfter, _ := used()
		found.ok = ok
		*into = append(*into, [2]float64{float64(cpuAfter - cpu), float64(switchesAfter - switches)})
	}
	for range seconds {
		second(&without)
	}
	clock := clocks.NewCoarse() // the clock with a ticker, under load
	set := each()
	set.Flow = append(set.Flow, elsewhere(1000).Flow[1:]...)
	g := guard(api.Config{Clock: clock}, set)
	ctx := fromApp(context.Background())
	for _, rule := range set.Flow {
		for range 100 {
			e, _ := g.Entry(ctx, rule.Resource, api.Inbound(), api.Param("user", "u-1"))
			e.Exit()
		}
	}
	settle()
	found.goroutines = runtime.NumGoroutine() - before
	for range seconds {
		second(&with)
	}
	g.Close()
	clock.Close()
	middle := func(list [][2]float64, i int) float64 {
		var values []float64
		for _, v := range list {
			values = append(values, v[i])
		}
		return measure.SpreadOf(values).Median
	}
	found.cpu, found.without = time.Duration(middle(with, 0)), time.Duration(middle(without, 0))
	found.wakes, found.wakesOut = middle(with, 1), middle(without, 1)
	return found
}
