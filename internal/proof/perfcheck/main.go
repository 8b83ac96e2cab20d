package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"
)

const tries = 3

func main() {
	alone := flag.String("count", "", "run this scenario alone, for a counting tool")
	ratios := flag.Bool("ratios", false, "compare times, too")
	flag.Parse()
	if *alone != "" {
		find(*alone).runCounted()
		return
	}
	ok := !*ratios || checkRatios()
	valgrind, missing := counter()
	if missing == nil {
		ok = checkInstructions(valgrind) && ok
	}
	switch {
	case !ok:
		fmt.Println("perfcheck: the hot path exceeds its limits; see FAIL above")
		os.Exit(1)
	case missing != nil:
		fmt.Printf("perfcheck: INSTRUCTIONS ARE NOT COUNTED: %v\n", missing)
	default:
		fmt.Println("perfcheck: all calls are within their instructions")
	}
}

func find(name string) *scenario {
	i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
	if i < 0 {
		panic("perfcheck: no scenario " + name)
	}
	return &scenarios[i]
}

// checkRatios reports whether one of a few measurements is within all bounds.
func checkRatios() bool {
	run := make([]func(int), len(scenarios))
	for i, s := range scenarios {
		run[i] = s.setup()
	}
	for try := range tries {
		cost := measure(run)
		over := slices.ContainsFunc(scenarios, func(s scenario) bool { return s.over(cost) })
		if try < tries-1 && over {
			continue
		}
		print(cost)
		return !over
	}
	return false
}

const (
	batches    = 2000
	usualBatch = 50 // calls: some ten microseconds
)

// measure returns the cost of a call of each scenario in its quickest batch, in nanoseconds.
func measure(run []func(int)) map[string]float64 {
	best := make([]time.Duration, len(run))
	for round := range batches {
		for i, f := range run {
			calls := scenarios[i].calls()
			began := time.Now()
			f(calls)
			if took := time.Since(began); round == 0 || took < best[i] {
				best[i] = took
			}
		}
	}
	cost := make(map[string]float64)
	for i, s := range scenarios {
		cost[s.name] = float64(best[i]) / float64(s.calls())
	}
	return cost
}

// calls returns how many are timed at once.
func (s *scenario) calls() int { return cmp.Or(s.batch, usualBatch) }

func (s *scenario) ratio(cost map[string]float64) float64 { return cost[s.name] / cost[s.of] }

func (s *scenario) over(cost map[string]float64) bool { return s.of != "" && s.ratio(cost) > s.most }

func print(cost map[string]float64) {
	for _, s := range scenarios {
		fmt.Printf("%-20s %7.1f ns", s.name, cost[s.name])
		if s.of != "" {
			fmt.Printf("  %5.2f x %s, at most %.2f%s", s.ratio(cost), s.of, s.most, mark(s.over(cost)))
		}
		fmt.Println()
	}
}

func mark(over bool) string {
	if over {
		return "  FAIL"
	}
	return ""
}
