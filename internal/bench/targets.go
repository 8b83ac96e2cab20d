package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/bench/measure"
	"github.com/penstock-go/penstock/internal/bench/report"
	"github.com/penstock-go/penstock/internal/engine"
)

// targets measures Penstock and compares the results with the targets.
func (b *bench) targets() string {
	m := b.measureOurs()
	table := report.NewTable("PENSTOCK AGAINST ITS TARGETS", "measured", "target", "")
	for _, l := range b.lines(m) {
		table.Row(l.note, l.what, l.measured, l.target, l.verdict)
	}
	costs := report.NewTable("WHAT A CALL COSTS UNDER EACH KIND OF RULE", "ns", "×")
	for _, w := range ways {
		r := m.ways[w.name]
		costs.Row("", w.name, report.Number(r.NS.Median), report.Number(r.Ratio.Median))
	}
	return table.String() + "\n" + costs.String() + legend + calm(m.ways) + "\n"
}

// calm returns the share of the rounds that counts.
func calm(results map[string]measure.Result) string {
	least, sum := 1.0, 0.0
	for _, r := range results {
		least, sum = min(least, r.Calm), sum+r.Calm
	}
	note := fmt.Sprintf("Of the rounds above %.0f %% had their core to themselves, of those of one row at least %.0f %%.",
		100*sum/float64(len(results)), 100*least)
	return strings.Join(report.Wrap(note, report.Width), "\n")
}

const legend = `
The tables below are of ratios: the time of a call, in units.
  alone    one caller on one processor
  one key  n callers on n processors, and one limit
  own key  the same with a limit for each
  to ours  alone, as a multiple of the first line
With n callers it is the time between two calls of all of them.
`

// measured holds the measurements that targets refer to.
type measured struct {
	ways                map[string]measure.Result // alone on one processor
	pairs               map[string]measure.Result // two callers on two
	apart               map[string]measure.Result // the same, each with its own guard
	onePair             map[string]measure.Result // the same calls, alone, in the same run
	throttled, borrowed waited
	throttledEnds       waited // in a context that can end
	borrowedEnds        waited
	busy, idle          float64 // bytes

	create, visit, hot    measure.Spread // ns
	first, changed, parse measure.Spread // ms
	odd                   float64        // ms
	oddest                string
	reloads               reloads
	idling                idleness
}

func (b *bench) measureOurs() *measured {
	m := &measured{
		ways: map[string]measure.Result{}, pairs: map[string]measure.Result{}, apart: map[string]measure.Result{},
		onePair: map[string]measure.Result{},
	}
	var cases []measure.Case
	for _, w := range ways {
		cases = append(cases, measure.Case{Procs: 1, Start: w.work})
	}
	for i, r := range measure.Run(b.plan("a call under each kind of rule"), cases) {
		m.ways[ways[i].name] = r
	}

	if b.procs > 1 {
		cases = nil
		for _, name := range scaled {
			w := ways[wayNamed(name)]
			cases = append(cases,
				measure.Case{Procs: 1, Start: w.work},
				measure.Case{Procs: 2, Callers: 2, Start: w.work},
				measure.Case{Procs: 2, Callers: 2, Start: func() measure.Work { return w.apart(2) }})
		}
		results := measure.Run(b.plan("one and two processors"), cases)
		for i, name := range scaled {
			m.onePair[name], m.pairs[name], m.apart[name] = results[3*i], results[3*i+1], results[3*i+2]
		}
	}

	b.progress.Begin("waits")
	throttle := flow.Rule{Threshold: 500, Behavior: flow.Throttle, MaxWait: time.Second}
	borrow := flow.Rule{Threshold: 1, Interval: 10 * time.Millisecond}
	m.throttled = waits(background, throttle, b.waits)
	m.borrowed = waits(background, borrow, b.waits/2, engine.Prioritized())
	ctx, cancel := context.WithCancel(background)
	m.throttledEnds = waits(ctx, throttle, b.waits)
	m.borrowedEnds = waits(ctx, borrow, b.waits/2, engine.Prioritized())
	cancel()
	b.progress.Begin("memory")
	m.busy, m.idle = memoryOf(b.memory)
	b.progress.Begin("many resources")
	m.create, m.visit, m.hot = population(b.many, b.again)
	b.progress.Begin("loading rules")
	m.first, m.changed, m.parse = loading(b.rules, b.again)
	m.odd, m.oddest = loadingOdd(b.rules, b.again)
	m.reloads = reloading(b.rules, b.again)
	b.progress.Begin("idle")
	m.idling = idling(b.sizes.idle)
	return m
}

// scaled are the ways measured on two processors.
var scaled = []string{"no rule", "one reject rule", "refused"}

func wayNamed(name string) int {
	for i, w := range ways {
		if w.name == name {
			return i
		}
	}
	panic("no way is named " + name)
}

// line is a target and its result.
type line struct{ what, measured, target, verdict, note string }

// lines returns the targets, in their order.
func (b *bench) lines(m *measured) (lines []line) {
	add := func(l line, note string, args ...any) {
		l.note = fmt.Sprintf(note, args...)
		lines = append(lines, l)
	}
	// inTheWay explains the last line if its target is missed.
	inTheWay := func(what string) {
		if l := &lines[len(lines)-1]; l.verdict != "met" {
			l.note += "; in the way: " + what
		}
	}
	ratio := func(name string) float64 { return m.ways[name].Ratio.Median }
	pass := ratio("one reject rule")

	b.inBrief("no rule", report.Number(ratio("no rule"))+" ×", "", "", "")
	add(atMost("no rule, two nodes", ratio("no rule"), 2.7, " ×"), "")
	add(atMost("one exact reject rule", pass, 3.0, " ×"), "")
	add(atMost("context, origin and inbound root: four nodes, one rule", ratio("four nodes"), 4.2, " ×"), "")
	add(atMost("one rule of each of six families, four nodes", ratio("six families"), 6, " ×"), "")
	add(atMost("coarse clock, one rule", ratio("coarse clock"), 1.9, " ×"), "the unit is of the monotonic clock all the same")
	add(atMost("refused, of a pass", 100*ratio("refused")/pass, 60, " %"), "")
	spared := func(name, handle string) float64 { return m.ways[name].NS.Median - m.ways[handle].NS.Median }
	add(atLeast(fmt.Sprintf("by handle, less than by name, %d resources in turn", inTurn), spared("names in turn", "handles in turn"), 10, " ns"),
		"one hot resource: %s ns", report.Number(spared("one reject rule", "handle")))
	add(atMost("ten rules on the resource, of one", ratio("ten rules")/pass, 2, " ×"), "")
	add(atMost("10,000 rules on other resources, of one", ratio("rules elsewhere")/pass, 1.05, " ×"), "")
	if len(m.pairs) > 0 {
		gain := func(name string, two map[string]measure.Result) float64 {
			return m.onePair[name].NS.Median / two[name].NS.Median
		}
		for _, t := range []struct {
			what, name string
			least      float64
			shared     string
		}{
			{"one processor to two, one hot resource, no rule", "no rule", 1.8, "nothing that both write"},
			{"the same, one rule at 10⁹", "one reject rule", 1.5, "the window's word, which each call changes"},
			{"the same, nearly all refused", "refused", 1.8, "nothing that both write"},
		} {
			both, own := gain(t.name, m.pairs), gain(t.name, m.apart)
			add(atLeast(t.what, both, t.least, " ×"), "callers who share nothing, with a guard each: %s ×", report.Number(own))
			if own < t.least {
				inTheWay("the machine, whose two processors were no more at the time")
			} else {
				inTheWay("of what the callers share, " + t.shared)
			}
		}
	} else {
		add(line{what: "one processor to two", measured: "-", target: "≥ 1.8 ×", verdict: "not here"}, "this machine has one")
	}
	most, which := mostAllocs(m.ways)
	add(atMost("allocations, pass and refused, every rule that doesn't wait", most, 0, ""), "%s", which)
	const endsThrottled = "a throttled wait that its context can end: allocations"
	for _, w := range []struct {
		what string
		waited
	}{
		{"a throttled wait: allocations", m.throttled}, {endsThrottled, m.throttledEnds},
		{"a prioritized wait: allocations", m.borrowed},
		{"a prioritized wait that its context can end: allocations", m.borrowedEnds},
	} {
		note := ""
		if w.what == endsThrottled {
			note = fmt.Sprintf("a timer of Go's own, and nothing else: %s", report.Number(timerAllocs()))
		}
		add(atMost(w.what, w.allocs, 2, ""), "%s", note)
		add(atMost("its 99th percentile beyond its timer's", w.p99/1000, 1, " ms"), "")
	}
	add(atMost("memory of a resource with one context, busy on two processors", m.busy/1024, 9, " KB"), "")
	add(atMost("the same, a minute after its last call", m.idle/1024, 1.5, " KB"), "")
	add(atMost(report.Number(float64(b.many))+" resources: to create one", m.create.Median/1000, 3, " µs"), "")
	add(atMost("to visit one at random, of a hot one", m.visit.Median/m.hot.Median, 3, " ×"),
		"%s ns and %s ns", report.Number(m.visit.Median), report.Number(m.hot.Median))
	add(atMost("to load "+report.Number(float64(b.rules))+" rules", m.first.Median, 100, " ms"), "to replace them all: %s ms; to read them from YAML: %s ms more",
		report.Number(m.changed.Median), report.Number(m.parse.Median))
	add(atMost("to replace as many of an odd shape", m.odd, 300, " ms"), "%s, which takes longest", m.oddest)
	r := m.reloads
	add(atMost("slowest call during such a reload, beyond without", max(0, r.during.Median-r.beside.Median), 1, " ms"),
		"median of the reloads: %s ms, while another engine's rules are replaced %s ms, without %s ms; the worst: %s ms, without %s ms; waiting for locks: %s ms in all",
		report.Number(r.during.Median), report.Number(r.elsewhere.Median), report.Number(r.beside.Median),
		report.Number(r.worst), report.Number(r.worstBeside), report.Number(r.locked))
	if m.idling.ok {
		add(atMost("an idle engine: processor time a second beyond the process's", max(0, float64(m.idling.cpu-m.idling.without))/1000, 50, " µs"),
			"%d µs, without an engine %d µs; goroutines of its own: %d", m.idling.cpu.Microseconds(), m.idling.without.Microseconds(), m.idling.goroutines)
		add(atMost("context switches a second beyond the process's", max(0, m.idling.wakes-m.idling.wakesOut), 2, ""),
			"%.0f, without an engine %.0f", m.idling.wakes, m.idling.wakesOut)
	} else {
		add(line{what: "an idle engine: processor time", measured: "-", target: "none", verdict: "not here"}, "this system doesn't tell")
	}
	return lines
}

// mostAllocs returns the highest allocation count of any way, and the way's name.
func mostAllocs(ways map[string]measure.Result) (most float64, which string) {
	var some []string
	for _, w := range waysNamed() {
		n := math.Round(100*ways[w].Allocs) / 100 // other allocations of the process are rarer
		most = max(most, n)
		if n > 0 {
			some = append(some, fmt.Sprintf("%s %.2f", w, n))
		}
	}
	if len(some) == 0 {
		return 0, fmt.Sprintf("%d kinds of calls, listed below", len(ways))
	}
	return most, strings.Join(some, "; ")
}

func waysNamed() (names []string) {
	for _, w := range ways {
		names = append(names, w.name)
	}
	return names
}

func atMost(what string, value, limit float64, unit string) line {
	l := line{what: what, measured: report.Number(value) + unit, target: "≤ " + short(limit) + unit, verdict: "met"}
	switch {
	case value <= limit:
	case limit == 0:
		l.verdict = "missed"
	default:
		l.verdict = fmt.Sprintf("%.0f %% over", math.Ceil(100*(value/limit-1)))
	}
	return l
}

func atLeast(what string, value, limit float64, unit string) line {
	l := line{what: what, measured: report.Number(value) + unit, target: "≥ " + short(limit) + unit, verdict: "met"}
	if value < limit {
		l.verdict = fmt.Sprintf("%.0f %% short", math.Ceil(100*(1-value/limit)))
	}
	return l
}

func short(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
