package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"time"
)

const tries = 3

func main() {
	only := flag.String("run", "", "run this scenario alone, for a tool that counts")
	n := flag.Int("calls", 10_000, "how many calls of it")
	flag.Parse()
	if *only != "" {
		find(*only).setup()(*n)
		return
	}
	ok := checkRatios()
	if !checkInstructions() {
		ok = false
	}
	if !ok {
		fmt.Println("perfcheck: the hot path costs more than it may, see FAIL above")
		os.Exit(1)
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

// measure is what a call of each scenario costs: of its quickest batch, in
// nanoseconds.
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

// calls is how many are timed at once.
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

// checkInstructions reports whether the calls stay within their instructions, as far
// as they can be counted here.
func checkInstructions() bool {
	valgrind, err := exec.LookPath("valgrind")
	if err != nil || runtime.GOARCH != "amd64" {
		fmt.Println("instructions are not counted: that takes valgrind, on amd64")
		return true
	}
	ok := true
	for _, s := range scenarios {
		if s.instructions == 0 {
			continue
		}
		per, err := instructions(valgrind, s.name)
		if err != nil {
			fmt.Printf("%-20s instructions are not counted: %v\n", s.name, err)
			continue
		}
		over := per > s.instructions
		fmt.Printf("%-20s %7d instructions, at most %d%s\n", s.name, per, s.instructions, mark(over))
		ok = ok && !over
	}
	return ok
}
