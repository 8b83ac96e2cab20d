package main

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// loads loads many rules of an odd shape on a guard whose resources are in use. With twice
// as many rules a load may take twice as many steps and not four times; steps are what it
// allocates, which noise can't change. It matches no names with expressions. And while rules
// are loaded, no call waits.
func loads(r *round) error {
	switch r.IntN(16) { // those that come first take long, and need few rounds
	case 0:
		return r.again(callsDuringLoads)
	case 1:
		return callsInALoad(r)
	case 2:
		return r.again(matchesAreLeft)
	}
	h := pick(r, heaps...)
	how := pick(r, "again", "with other limits", "with other intervals", "after none", "to none")
	n := 200 + r.IntN(200)
	few, err := loadSteps(r, h, how, n)
	if err != nil {
		return err
	}
	many, err := loadSteps(r, h, how, 2*n)
	if err != nil {
		return err
	}
	r.checked.Add(1)
	if most := 2.8*float64(few) + 256<<10; float64(many) > most {
		return fmt.Errorf("%s, loaded %s: %d rules allocate %d KiB, and %d rules %d KiB", h.name, how, n, few>>10, 2*n, many>>10)
	}
	return nil
}

// heapOf returns n rules of a shape.
func heapOf(h heapShape, n int) (set rules.Set) {
	for i := range n {
		h.add(&set, i)
	}
	return set
}

// crowded returns a guard that has the rules and whose n names have been called under them.
// Whoever must wait there moves the clock on.
func crowded(r *round, h heapShape, n int) (*api.Guard, rules.Set, error) {
	clock := clocks.NewManual(start)
	clock.SetSleep(clocks.SleepAdvance)
	g, _ := r.bareGuard(api.Config{Clock: clock, Caps: node.Caps{Resources: 3 * n, Calls: 3 * n, Origins: 3 * n, Contexts: 3 * n}})
	set := heapOf(h, n)
	err := g.LoadRules(set)
	for i := range n {
		name, context, origin := h.call(i)
		e, _ := g.Entry(from(r.ctx, context, origin), name, api.Inbound())
		e.Exit()
	}
	return g, set, err
}

func otherLimits(set *rules.Set) {
	for i := range set.Flow {
		set.Flow[i].Threshold++
	}
	for i := range set.Isolation {
		set.Isolation[i].Threshold++
	}
}

func otherIntervals(set *rules.Set) {
	for i := range set.Flow {
		if set.Flow[i].Metric == flow.QPS && set.Flow[i].Behavior == flow.Reject {
			set.Flow[i].Interval += time.Second
		}
	}
	for i := range set.System {
		set.System[i].Interval += time.Second
	}
}

// loadSteps is how many bytes one more load allocates.
func loadSteps(r *round, h heapShape, how string, n int) (uint64, error) {
	g, set, err := crowded(r, h, n)
	if err != nil {
		return 0, fmt.Errorf("%s: %d rules are refused: %w", h.name, n, err)
	}
	switch how {
	case "with other limits":
		otherLimits(&set)
	case "with other intervals":
		otherIntervals(&set)
	case "after none":
		err = g.LoadRules(rules.Set{})
	case "to none":
		set = rules.Set{}
	}
	if err != nil {
		return 0, err
	}
	r.offered.Add(int64(n))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = g.LoadRules(set)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

// mostForLoad is how long a call may wait for a load. What is measured is the longest wait
// of the best of several loads, and beside it that of calls to a guard which loads nothing:
// for those the machine alone can be to blame.
const mostForLoad = 5 * ms

// callsDuringLoads loads a heap of rules again and again, and calls names that are known,
// and others that are new, meanwhile.
func callsDuringLoads(r *round) error {
	h := pick(r, heaps...)
	const n, times = 1000, 8
	g, set, err := crowded(r, h, n)
	if err != nil {
		return err
	}
	quiet, _, err := crowded(r, heaps[0], n)
	if err != nil {
		return err
	}
	var now atomic.Int64 // the number of the load that is under way
	done := make(chan error, 1)
	go func() {
		var err error
		for range times {
			now.Add(1)
			for i := range set.Flow {
				set.Flow[i].Threshold++
			}
			if err = g.LoadRules(set); err != nil {
				break
			}
		}
		now.Store(0)
		done <- err
	}()
	longest, beside := make([]time.Duration, times+1), make([]time.Duration, times+1)
	call := func(g *api.Guard, name string) time.Duration {
		began := time.Now()
		e, _ := g.Entry(r.ctx, name)
		took := time.Since(began)
		e.Exit()
		r.offered.Add(1)
		return took
	}
	for i := 0; len(done) == 0; i++ {
		load := now.Load()
		name := fmt.Sprint("new ", i%(3*n/2))
		if i%2 == 0 {
			name = aName(i % n)
		}
		longest[load] = max(longest[load], call(g, name))
		beside[load] = max(beside[load], call(quiet, name))
		runtime.Gosched()
	}
	if err := <-done; err != nil {
		return err
	}
	r.checked.Add(times)
	best, quietest := slices.Min(longest[1:]), slices.Min(beside[1:])
	if best > mostForLoad && best > 2*quietest {
		return fmt.Errorf("%s: in each of %d loads of %d rules, a call waited for %v or longer, and elsewhere for %v", h.name, times, n, best, quietest)
	}
	return nil
}
