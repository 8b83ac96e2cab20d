package main

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/bench/measure"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// heap returns the bytes in use after garbage collection.
func heap() uint64 {
	for range 3 {
		runtime.GC() // the second collection empties pools
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// memoryOf returns the bytes of a resource with one context: while two callers on two processors
// have called it for more than a minute, and after a minute without a call.
func memoryOf(resources int) (busy, idle float64) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	clock := clocks.NewManual(time.Now())
	list := names(resources)
	before := heap()
	g := guard(api.Config{Clock: clock, Caps: node.Caps{Resources: 200_000, Calls: 200_000}}, rules.Set{})
	defer g.Close()
	ctx := api.WithContext(context.Background(), "web")
	call := func(list []string) {
		for _, name := range list {
			e, _ := g.Entry(ctx, name)
			e.Exit()
		}
	}
	for range 65 {
		var callers sync.WaitGroup
		for range 2 {
			callers.Go(func() { call(list) })
		}
		callers.Wait()
		clock.Advance(time.Second)
	}
	each := func() float64 { return float64(heap()-before) / float64(resources) }
	busy = each()

	// State of idle resources may be freed when the tree is read, or when others are called.
	for range 90 {
		clock.Advance(time.Second)
		call(list[:1])
	}
	_ = g.Tree()
	idle = each()
	runtime.KeepAlive(list)
	return busy, idle
}

// population measures the cost of many resources: to create each, and to visit them at random
// compared with a single hot one.
func population(resources, rounds int) (create, visit, hot measure.Spread) {
	list := names(resources)
	var creates, visits, hots []float64
	random := rand.New(rand.NewPCG(3, 4))
	order := random.Perm(resources)
	for range rounds {
		runtime.GC()
		g := guard(api.Config{Caps: node.Caps{Resources: 2 * resources, Calls: 2 * resources}}, rules.Set{})
		visitAll := func(name func(i int) string) float64 {
			start := time.Now()
			for i := range resources {
				e, _ := g.Entry(background, name(i))
				e.Exit()
			}
			return float64(time.Since(start)) / float64(resources)
		}
		creates = append(creates, visitAll(func(i int) string { return list[i] }))
		runtime.GC()
		visits = append(visits, visitAll(func(i int) string { return list[order[i]] }))
		hots = append(hots, visitAll(func(int) string { return list[0] }))
		g.Close()
	}
	return measure.SpreadOf(creates), measure.SpreadOf(visits), measure.SpreadOf(hots)
}
