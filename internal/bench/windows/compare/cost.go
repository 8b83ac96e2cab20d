package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/penstock-go/penstock/internal/bench/measure"
	"github.com/penstock-go/penstock/internal/bench/report"
	"github.com/penstock-go/penstock/internal/bench/windows"
	"github.com/penstock-go/penstock/internal/proof/tables"
)

// costTable measures the cost of a decision and of a key on this machine.
func costTable(plan measure.Plan) string {
	const each = 4
	var cases []measure.Case
	for _, kind := range windows.Kinds {
		cases = append(cases,
			decisions(kind, 1, 100_000, 20*time.Microsecond),
			decisions(kind, 2, 100_000, 40*time.Microsecond),
			decisions(kind, 1, limit, time.Microsecond),
			decisions(kind, 2, limit, time.Microsecond))
	}
	results := measure.Run(plan, cases)
	table := report.NewTable("nanoseconds a decision; bytes a key", "pass", "on 2", "refuse", "on 2", "1 call", "busy")
	for i, kind := range windows.Kinds {
		cells := []string{kind.Name}
		for _, r := range results[each*i : each*i+each] {
			cells = append(cells, report.Number(r.NS.Median))
		}
		table.Row("", append(cells, fmt.Sprint(bytesOf(kind, 1)), fmt.Sprint(bytesOf(kind, 3*limit)))...)
	}
	return tables.ThisMachine().String() + "two readings of the clock: " + report.Number(measure.TwoReadings(plan).Median) + " ns\n\n" + table.String()
}

// decisions are made by callers whose time advances by a step for each call.
func decisions(kind windows.Kind, callers int, most int64, step time.Duration) measure.Case {
	return measure.Case{Procs: callers, Callers: callers, Start: func() measure.Work {
		l := kind.New(most, interval)
		at := make([]struct {
			now int64
			_   [7]int64 // a cache line each
		}, callers)
		for i := range at {
			at[i].now = began
		}
		return measure.Work{Call: func(caller, n int) {
			now := at[caller].now
			for range n {
				now += int64(step)
				l.Allow(now)
			}
			at[caller].now = now
		}}
	}}
}

// bytesOf returns the memory of a key with that many calls, one every 5 ms.
func bytesOf(kind windows.Kind, calls int) int {
	const keys = 2000
	limiters := make([]windows.Limiter, keys)
	before := heap()
	for i := range limiters {
		limiters[i] = kind.New(limit, interval)
		for c := range calls {
			limiters[i].Allow(began + int64(c)*int64(5*time.Millisecond))
		}
	}
	used := heap() - before
	runtime.KeepAlive(limiters)
	return int(used+keys/2) / keys
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
