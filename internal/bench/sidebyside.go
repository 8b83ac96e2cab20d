package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/internal/bench/measure"
	"github.com/penstock-go/penstock/internal/bench/report"
)

// cached measures both libraries that can use a cached clock once more, with that clock, at each of
// the jobs.
func (b *bench) cached() string {
	var text []string
	for _, j := range jobs {
		j.contenders = slices.DeleteFunc(slices.Clone(j.contenders), func(c contender) bool {
			return c.name != sentinelGo && !strings.HasPrefix(c.name, "penstock")
		})
		text = append(text, b.job(j, true))
	}
	return strings.Join(text, "\n")
}

// job measures contenders side by side.
func (b *bench) job(j job, cached bool) string {
	asked, should := keys{all: b.procs, cached: cached}, 1.0
	title, contenders := j.title, j.contenders
	if cached {
		title += ", by a cached clock"
	}
	if j.refused {
		asked.closed, should = b.procs, 0
	}
	var cases []measure.Case
	const each = 3
	tallies := make([]tally, len(contenders))
	for i, c := range contenders {
		cases = append(cases, c.cases(asked, b.procs, &tallies[i])...)
	}
	results := measure.Run(b.plan(title), cases)
	table := report.NewTable(title, "alone", "one key", "own key", "allocs", "to ours")
	ours := results[0].Ratio.Median
	for i, c := range contenders {
		own := results[each*i : each*i+each]
		if c.name == sentinelGo {
			b.inBrief(strings.ToLower(j.title), report.Number(ours)+" ×", report.Number(own[0].Ratio.Median)+" ×")
		}
		cells := []string{c.name}
		for _, r := range own {
			cells = append(cells, report.Number(r.Ratio.Median))
		}
		table.Row(notes(b.once(c), tallies[i].differs(should, each*asked.closed)), append(cells, fmt.Sprintf("%.0f", own[0].Allocs), report.Number(own[0].Ratio.Median/ours))...)
	}
	return table.String()
}

// mix measures contenders in the realistic mix. Before each, the same calls run unguarded, and
// their time is subtracted.
func (b *bench) mix() string {
	const title = "200 RESOURCES BY ZIPF, 5 % refused, 20 µs of work"
	plan := b.plan(title)
	plan.Rounds, plan.Most = b.mixRounds, 0
	work, order, contenders := worker(mixWork), mixed(), mixers()
	processors := []int{1, b.procs}
	tallies := make([]tally, len(contenders))
	var unguarded tally
	var cases []measure.Case
	for _, procs := range processors {
		for i, c := range contenders {
			cases = append(cases,
				mixCase(bare, procs, b.mixCalls, work, order, &unguarded),
				mixCase(c, procs, b.mixCalls, work, order, &tallies[i]))
		}
	}
	results := measure.Run(plan, cases)
	table := report.NewTable(title, "added ns", "%", "added ns", "%")
	for i, c := range contenders {
		cells := []string{c.name}
		for on := range processors {
			at := 2 * (on*len(contenders) + i)
			alone, r := results[at], results[at+1]
			added := measure.Beyond(r, alone)
			cells = append(cells, fmt.Sprintf("%.0f", added.Median), fmt.Sprintf("%.1f", 100*added.Median/alone.NS.Median))
		}
		table.Row(notes(b.once(c), tallies[i].differs(unguarded.share(), len(processors)*mixClosed)), cells...)
	}
	note := fmt.Sprintf("The first two columns: one caller on one processor. The others: %d on %d, and the time is that "+
		"between two calls of all callers. Without a guard: %s and %s µs.",
		b.procs, b.procs, report.Number(results[0].NS.Median/1000), report.Number(results[2*len(contenders)].NS.Median/1000))
	return table.String() + "\n" + strings.Join(report.Wrap(note, report.Width), "\n") + "\n"
}

// once returns the note about work that a contender leaves out, the first time in a run.
func (b *bench) once(c contender) string {
	if slices.Contains(b.less, [2]string{c.name, c.less}) {
		return ""
	}
	b.less = append(b.less, [2]string{c.name, c.less})
	return c.less
}

func notes(parts ...string) string {
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, "; ")
}
