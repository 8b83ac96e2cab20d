package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/bench/measure"
	"github.com/penstock-go/penstock/bench/report"
)

// job measures contenders side by side.
func (b *bench) job(title string, contenders []contender, refused bool) string {
	asked, should := keys{all: b.procs}, 1.0
	if refused {
		asked.closed, should = b.procs, 0
	}
	var cases []measure.Case
	const each = 4
	tallies := make([]tally, len(contenders))
	for i, c := range contenders {
		cases = append(cases, c.cases(asked, b.procs, &tallies[i])...)
	}
	results := measure.Run(b.plan(title), cases)
	table := report.NewTable(title, "alone", fmt.Sprintf("on %d", b.procs), "one key", "own key", "allocs", "to ours")
	ours := results[0].Ratio.Median
	for i, c := range contenders {
		own := results[each*i : each*i+each]
		cells := []string{c.name}
		for _, r := range own {
			cells = append(cells, report.Number(r.Ratio.Median))
		}
		table.Row(notes(c.less, tallies[i].differs(should, each*asked.closed)), append(cells, fmt.Sprintf("%.0f", own[0].Allocs), report.Number(own[0].Ratio.Median/ours))...)
	}
	return table.String()
}

// mix measures contenders in the realistic mix, and takes off what the work alone
// takes in the same round.
func (b *bench) mix() string {
	const title = "200 RESOURCES BY ZIPF, 5 % refused, 20 µs of work"
	plan := b.plan(title)
	plan.Rounds = b.mixRounds
	work, order := worker(mixWork), mixed()
	contenders := append([]contender{bare}, mixers()...)
	processors := []int{1, b.procs}
	var cases []measure.Case
	tallies := make([]tally, len(contenders))
	for _, procs := range processors {
		for i, c := range contenders {
			cases = append(cases, mixCase(c, procs, b.mixCalls, work, order, &tallies[i]))
		}
	}
	results := measure.Run(plan, cases)
	table := report.NewTable(title, "µs", "added ns", "%", "µs", "added ns", "%")
	for i, c := range contenders {
		cells := []string{c.name}
		for on := range processors {
			alone, r := results[on*len(contenders)], results[on*len(contenders)+i]
			cells = append(cells, report.Number(r.NS.Median/1000))
			if i == 0 {
				cells = append(cells, "", "")
				continue
			}
			added := measure.Beyond(r, alone)
			cells = append(cells, fmt.Sprintf("%.0f", added.Median), fmt.Sprintf("%.1f", 100*added.Median/alone.NS.Median))
		}
		table.Row(notes(c.less, tallies[i].differs(tallies[0].share(), len(processors)*mixClosed)), cells...)
	}
	return fmt.Sprintf("%s\nThe first three columns: one caller on one processor. The others: %d on %d, and\nthe time is that between two calls of all callers.\n", table, b.procs, b.procs)
}

func notes(parts ...string) string {
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, "; ")
}
