package main

import (
	"runtime"
	"slices"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/bench/measure"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

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
