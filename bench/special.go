package main

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/bench/measure"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// What a batch of calls can't show: memory, many resources, loading, waits.

// heap is what is in use once the garbage is gone.
func heap() uint64 {
	for range 3 {
		runtime.GC() // pools are emptied by the second
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// memoryOf is the bytes of a resource with one context: called by two callers on two
// processors for more than a minute, and after a minute without a call.
func memoryOf(resources int) (busy, idle float64) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	clock := core.NewManualClock(time.Now())
	list := names(resources)
	before := heap()
	g := guard(api.Config{Clock: clock, Caps: node.Caps{Resources: 200_000, Calls: 200_000}}, rules.Set{})
	defer g.Close()
	ctx := api.WithContext(context.Background(), "web", "")
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

	// What is left of those that nobody calls may go when somebody looks, or when
	// others are called.
	for range 90 {
		clock.Advance(time.Second)
		call(list[:1])
	}
	_ = g.Tree()
	idle = each()
	runtime.KeepAlive(list)
	return busy, idle
}

// population is what many resources cost: to make each, and to visit them at random
// compared with one that is hot.
func population(resources, rounds int) (create, visit, hot measure.Spread) {
	list := names(resources)
	var creates, visits, hots []float64
	random := rand.New(rand.NewPCG(3, 4))
	order := random.Perm(resources)
	for range rounds {
		runtime.GC()
		g := guard(api.Config{Caps: node.Caps{Resources: 2 * resources, Calls: 2 * resources}}, rules.Set{})
		time1 := func(name func(i int) string) float64 {
			start := time.Now()
			for i := range resources {
				e, _ := g.Entry(background, name(i))
				e.Exit()
			}
			return float64(time.Since(start)) / float64(resources)
		}
		creates = append(creates, time1(func(i int) string { return list[i] }))
		runtime.GC()
		visits = append(visits, time1(func(i int) string { return list[order[i]] }))
		hots = append(hots, time1(func(int) string { return list[0] }))
		g.Close()
	}
	return measure.SpreadOf(creates), measure.SpreadOf(visits), measure.SpreadOf(hots)
}

// loading is what it takes to load n rules into a fresh guard, to replace them all by
// changed ones, and to read them from a YAML file's text.
func loading(n, rounds int) (first, changed, parse measure.Spread) {
	rulesWith := func(threshold float64) (set rules.Set) {
		for _, name := range names(n) {
			set.Flow = append(set.Flow, flow.Rule{Resource: name, Threshold: threshold})
		}
		return set
	}
	text := must(rulesWith(100).YAML())
	timed := func(f func()) float64 {
		runtime.GC()
		start := time.Now()
		f()
		return float64(time.Since(start)) / float64(time.Millisecond)
	}
	var firsts, changes, parses []float64
	for range rounds {
		g := guard(api.Config{}, rules.Set{})
		firsts = append(firsts, timed(func() { must(0, g.LoadRules(rulesWith(100))) }))
		changes = append(changes, timed(func() { must(0, g.LoadRules(rulesWith(200))) }))
		parses = append(parses, timed(func() { must(rules.Parse("rules.yaml", text)) }))
		g.Close()
	}
	return measure.SpreadOf(firsts), measure.SpreadOf(changes), measure.SpreadOf(parses)
}

// reloading is the slowest call, in milliseconds, of a caller that goes round n
// resources while all their rules are replaced, and while nothing else happens for as
// long: in the median of the rounds, and in the worst.
func reloading(n, rounds int) (during, worst, beside, besideWorst float64) {
	list := names(n)
	set := func(round int) (set rules.Set) {
		for _, name := range list {
			set.Flow = append(set.Flow, flow.Rule{Resource: name, Threshold: enough - float64(round)})
		}
		return set
	}
	g := guard(api.Config{Caps: node.Caps{Resources: 2 * n}}, set(0))
	defer g.Close()

	slowest := func(until <-chan struct{}) (most time.Duration) {
		for i := 0; ; i++ {
			select {
			case <-until:
				return most
			default:
			}
			start := time.Now()
			e, _ := g.Entry(background, list[i%len(list)])
			e.Exit()
			most = max(most, time.Since(start))
		}
	}
	run := func(f func()) float64 {
		done, most := make(chan struct{}), make(chan time.Duration)
		go func() { most <- slowest(done) }()
		f()
		close(done)
		return float64(<-most) / float64(time.Millisecond)
	}
	var durings, besides []float64
	for round := range rounds {
		next := set(round + 1)
		runtime.GC()
		took := time.Now()
		durings = append(durings, run(func() { must(0, g.LoadRules(next)) }))
		pause := time.Since(took)
		runtime.GC()
		besides = append(besides, run(func() { time.Sleep(pause) }))
	}
	during, beside = measure.SpreadOf(durings).Median, measure.SpreadOf(besides).Median
	return during, slices.Max(durings), beside, slices.Max(besides)
}

// timerClock notes how long each sleep took on the timer alone.
type timerClock struct {
	*core.SystemClock
	asleep time.Duration
}

func (c *timerClock) Sleep(ctx context.Context, d time.Duration) error {
	start := time.Now()
	err := c.SystemClock.Sleep(ctx, d)
	c.asleep += time.Since(start)
	return err
}

// waits are calls that wait: what they allocate, and the 99th percentile of what a
// call takes beyond its sleep on the timer, in microseconds.
func waits(rule flow.Rule, n int, opts ...core.Option) (allocs, p99 float64) {
	clock := &timerClock{SystemClock: core.NewSystemClock()}
	rule.Resource = resource
	g := guard(api.Config{Clock: clock}, rules.Set{Flow: []flow.Rule{rule}})
	defer g.Close()
	beyond := make([]float64, 0, n)
	call := func() bool {
		clock.asleep = 0
		start := time.Now()
		e, err := g.Entry(background, resource, opts...)
		took := time.Since(start)
		if err != nil {
			time.Sleep(time.Millisecond)
			return false
		}
		e.Exit()
		if clock.asleep == 0 {
			return false
		}
		beyond = append(beyond, float64(took-clock.asleep)/float64(time.Microsecond))
		return true
	}
	for range 10 {
		call()
	}
	beyond = beyond[:0]
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	// A call that came late finds room at once, and is not one of those that wait.
	for range 3 * n {
		if len(beyond) == n {
			break
		}
		call()
	}
	runtime.ReadMemStats(&after)
	waited := len(beyond)
	allocs = float64(after.Mallocs-before.Mallocs) / float64(max(1, waited))
	slices.Sort(beyond)
	return allocs, beyond[waited*99/100]
}

// timerAllocs are the allocations of a sleep on a timer of Go's own, which a wait that
// can be cancelled has too.
func timerAllocs() float64 {
	const n = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		timer := time.NewTimer(time.Microsecond)
		<-timer.C
		timer.Stop()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / n
}
