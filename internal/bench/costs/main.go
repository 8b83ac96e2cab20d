// Command costs plays one trace of calls whose cost is known afterwards under several policies. It runs
// on a virtual clock with a fixed seed, so every run prints the same table.
//
//	go run ./costs          print
//	go run ./costs -write   keep the table in docs/costs.md
//
// Run these in the folder internal/bench with GOWORK=off.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/penstock-go/penstock/internal/bench/report"
	"github.com/penstock-go/penstock/internal/proof/source"
	"github.com/penstock-go/penstock/internal/proof/tables"
)

const page = "docs/costs.md"

func main() {
	write := flag.Bool("write", false, "keep the table in "+page)
	flag.Parse()
	calls := trace()
	text := table(calls, play(ours(), calls))
	fmt.Print(text)
	if !*write {
		return
	}
	root, err := source.Root()
	if err == nil {
		err = tables.Keep(filepath.Join(root, filepath.FromSlash(page)), "costs", framed(text))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "costs:", err)
		os.Exit(1)
	}
}

func framed(text string) string { return "\n```text\n" + text + "```\n\n" }

// table shows the outcomes of the models, and of ours.
func table(calls []call, own outcome) string {
	t := report.NewTable("", "admitted", "refused", "worst", "over", "used", "leaked")
	row := func(name string, o outcome) {
		percent := func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }
		t.Row("", name, fmt.Sprint(o.admitted), fmt.Sprint(len(calls)-o.admitted), percent(o.worst), percent(o.over),
			percent(o.used), fmt.Sprint(o.leaked))
	}
	row("1 a call", play(counted(calls), calls))
	row("charged afterwards", play(afterwards(), calls))
	row("reserved, failures leak", play(reserved(true), calls))
	row("reserved with a TTL", play(expiring(), calls))
	row("ours: Cost and Settle", own)
	return t.String()
}
