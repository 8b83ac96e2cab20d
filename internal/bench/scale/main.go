// Command scale measures the throughput of calls for growing numbers of processors, and prints one
// table. It needs nothing else: built once, it runs on any machine of its kind.
//
//	go run ./scale          measure and print, about a minute
//	go run ./scale -write   keep the table in docs/benchmarks.md: make bench-scale
//
//	CGO_ENABLED=0 go build -o scale ./scale   for a machine without Go
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/penstock-go/penstock/internal/bench/measure"
	"github.com/penstock-go/penstock/internal/bench/report"
	"github.com/penstock-go/penstock/internal/proof/source"
	"github.com/penstock-go/penstock/internal/proof/tables"
)

const page = "docs/benchmarks.md"

func main() {
	write := flag.Bool("write", false, "keep the table in "+page)
	short := flag.Bool("short", false, "run every row once, briefly")
	flag.Parse()
	if err := run(*write, *short); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(write, short bool) error {
	progress := report.NewProgress()
	progress.Begin("one processor and more")
	plan := measure.Plan{Rounds: 21, Batch: 20 * time.Millisecond, Progress: progress.At}
	if short {
		plan = smoke
	}
	text := tables.ThisMachine().String() + table(plan, processors(runtime.NumCPU()))
	progress.End()
	fmt.Print(text)
	if !write {
		return nil
	}
	root, err := source.Root()
	if err != nil {
		return err
	}
	return tables.Keep(filepath.Join(root, filepath.FromSlash(page)), "scale", "\n```text\n"+text+"```\n\n")
}

// smoke checks that everything works; its figures mean little.
var smoke = measure.Plan{Rounds: 1, Batch: 200 * time.Microsecond}

// processors returns 1, 2, 4, 8 and 16, up to the machine's number.
func processors(all int) (list []int) {
	for n := 1; n <= min(all, 16); n *= 2 {
		list = append(list, n)
	}
	return list
}

// table measures each row on each number of processors, with one shared Guard and with a Guard for
// each.
func table(plan measure.Plan, processors []int) string {
	var cases []measure.Case
	for _, r := range rows {
		for _, each := range []bool{false, true} {
			for _, n := range processors {
				cases = append(cases, measure.Case{Procs: n, Callers: n, Start: func() measure.Work { return r.start(n, each) }})
			}
		}
	}
	results := measure.Run(plan, cases)
	head := []string{"processors"}
	for _, n := range processors {
		head = append(head, fmt.Sprint(n))
	}
	out := report.NewTable(append(head, "apart")...)
	for i := range rows {
		shared, apart := results[2*i*len(processors):], results[(2*i+1)*len(processors):]
		cells := []string{rows[i].name}
		for k := range processors {
			at := shared[k].NS.Median
			cell := report.Number(1000 / at)
			if k > 0 {
				cell += " " + fmt.Sprintf("%4.1f×", shared[0].NS.Median/at)
			}
			cells = append(cells, cell)
		}
		last := len(processors) - 1
		out.Row("", append(cells, fmt.Sprintf("%.0f %%", 100*apart[last].NS.Median/shared[last].NS.Median))...)
	}
	return "Million calls a second of one hot resource, and the gain over one processor.\n" +
		"apart: how much that is, on all processors, of a Guard for each of them.\n\n" + out.String()
}
