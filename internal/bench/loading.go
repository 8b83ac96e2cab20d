package main

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/bench/measure"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// loading measures loading n rules into a fresh guard, replacing all of them with changed ones, and
// parsing them from YAML text.
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

// oddShapes are rules that share something, which invites comparing each with every other.
var oddShapes = map[string]func(i int) flow.Rule{
	"an origin each": func(i int) flow.Rule { return flow.Rule{Resource: "orders", Origin: fmt.Sprint("o", i)} },
	"an interval each": func(i int) flow.Rule {
		return flow.Rule{Resource: "orders", Interval: time.Second + time.Duration(i)*50}
	},
	"every other an expression": func(i int) flow.Rule {
		r := flow.Rule{Resource: fmt.Sprint("x.*", i)}
		if i%2 == 0 {
			r.Match = spec.MatchRegex
		}
		return r
	},
}

// loadingOdd measures, for each odd shape, how long it takes to replace n rules with changed ones.
// It returns the median of the slowest shape, in milliseconds, and the shape's name.
func loadingOdd(n, rounds int) (most float64, shape string) {
	for name, rule := range oddShapes {
		var times []float64
		g := guard(api.Config{}, rules.Set{})
		for round := range rounds + 1 {
			var set rules.Set
			for i := range n {
				r := rule(i)
				r.ID, r.Threshold = fmt.Sprint("rule ", i), float64(100+round)
				set.Flow = append(set.Flow, r)
			}
			runtime.GC()
			start := time.Now()
			must(0, g.LoadRules(set))
			if took := time.Since(start); round > 0 {
				times = append(times, float64(took)/float64(time.Millisecond))
			}
			e, _ := g.Entry(background, "orders")
			e.Exit()
		}
		g.Close()
		if median := measure.SpreadOf(times).Median; median > most {
			most, shape = median, name
		}
	}
	return most, shape
}

// reloads is the slowest call, in milliseconds, of a caller that cycles through n resources: while
// all their rules are replaced, while another engine's are, which costs the machine the same
// without locking the caller, and while nothing else happens for as long.
type reloads struct {
	during, elsewhere, beside measure.Spread // over the rounds
	worst, worstBeside        float64
	locked                    float64 // the caller's mean wait for locks in one reload
}

func reloading(n, rounds int) (found reloads) {
	list := names(n)
	set := func(round int) (set rules.Set) {
		for _, name := range list {
			set.Flow = append(set.Flow, flow.Rule{Resource: name, Threshold: enough - float64(round)})
		}
		return set
	}
	config := api.Config{Caps: node.Caps{Resources: 2 * n}}
	g, other := guard(config, set(0)), guard(config, set(0))
	defer g.Close()
	defer other.Close()

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
		runtime.GC()
		done, most := make(chan struct{}), make(chan time.Duration)
		go func() { most <- slowest(done) }()
		f()
		close(done)
		return float64(<-most) / float64(time.Millisecond)
	}
	var durings, elsewheres, besides []float64
	for round := range rounds {
		next := set(round + 1)
		var took time.Duration
		before := lockWait()
		durings = append(durings, run(func() {
			start := time.Now()
			must(0, g.LoadRules(next))
			took = time.Since(start)
		}))
		found.locked += (lockWait() - before) / float64(rounds)
		elsewheres = append(elsewheres, run(func() { must(0, other.LoadRules(next)) }))
		besides = append(besides, run(func() { time.Sleep(took) }))
	}
	found.during, found.elsewhere, found.beside = measure.SpreadOf(durings), measure.SpreadOf(elsewheres), measure.SpreadOf(besides)
	found.worst, found.worstBeside = slices.Max(durings), slices.Max(besides)
	return found
}

// lockWait returns how long all goroutines have waited for mutexes so far, in milliseconds.
func lockWait() float64 {
	sample := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(sample)
	return sample[0].Value.Float64() * 1000
}
