package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/penstock-go/penstock/internal/bench/report"
	"github.com/penstock-go/penstock/internal/bench/windows"
)

// best is the kind that admits the most under a limit that holds in every real second: it admits
// each call as soon as the limit allows.
const best = "sliding log"

// ours is the kind that Penstock uses for strict rules.
const ours = "strict ring, 10 (ours)"

// result holds the outcomes of a kind.
type result struct {
	name     string
	outcomes []outcome // in the order of the traffics
	used     []float64
	forward  int
	outage   time.Duration
}

// results holds the results of all kinds, and last those of ours behind an engine.
var results = sync.OnceValue(func() (all []result) {
	played := traffics()
	var reference []outcome
	for _, t := range played {
		reference = append(reference, play(named(best), t.calls))
	}
	for _, kind := range windows.Kinds {
		r := result{name: kind.Name}
		for i, t := range played {
			o := play(kind, t.calls)
			r.outcomes = append(r.outcomes, o)
			r.used = append(r.used, o.used(reference[i]))
		}
		limiter := func() func(int64) bool { return kind.New(limit, interval).Allow }
		r.forward, r.outage = forward(limiter), outage(limiter)
		all = append(all, r)
	}
	engine := func() func(int64) bool { return steadied(named(ours).New(limit, interval).Allow) }
	return append(all, result{name: "ours, in an engine", forward: forward(engine), outage: outage(engine)})
})

// trafficTable is the same on every machine.
func trafficTable() string {
	head := []string{"limit 100 a second"}
	for _, t := range traffics() {
		head = append(head, t.name)
	}
	table := report.NewTable(append(head, "+1 min", "-1 min")...)
	for _, r := range results() {
		cells := []string{r.name}
		for i, o := range r.outcomes {
			cells = append(cells, fmt.Sprintf("%d %3.0f%%", o.worst(), 100*r.used[i]))
		}
		for len(cells) < len(head) {
			cells = append(cells, "as alone")
		}
		table.Row("", append(cells, fmt.Sprint(r.forward), shown(r.outage))...)
	}
	return table.String()
}

func shown(outage time.Duration) string {
	if outage < 2*time.Second {
		return "none"
	}
	return fmt.Sprintf("%.0f s", outage.Seconds())
}

func named(name string) windows.Kind {
	for _, kind := range windows.Kinds {
		if kind.Name == name {
			return kind
		}
	}
	panic("no kind is named " + name)
}
