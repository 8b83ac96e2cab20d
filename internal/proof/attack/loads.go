package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// loads loads many rules of an odd shape on a guard whose resources are in use. With twice as many
// rules a load may take twice as many steps and not four times; steps are allocated bytes, which
// noise can't change.
func loads(r *round) error {
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

// heapOf returns n rules of the given shape.
func heapOf(h heapShape, n int) (set rules.Set) {
	for i := range n {
		h.add(&set, i)
	}
	return set
}

// crowded returns a guard with n rules of the shape, after calls to each of their names. Waiting
// calls advance the clock.
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

// loadSteps returns how many bytes one more load allocates.
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
