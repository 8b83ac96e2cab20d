// Command costs plays one trace of calls whose cost is known afterwards under several policies. It runs
// on a virtual clock with a fixed seed, so every run prints the same table.
//
//	go run ./costs          print
//	go run ./costs -write   keep the table in docs/costs.md
//
// Run these in the folder internal/bench with GOWORK=off.
package main

import (
	"fmt"

	"github.com/penstock-go/penstock/internal/bench/report"
)

const page = "docs/costs.md"

func main() {
	report.Page(page, "costs", func() string {
		calls := trace()
		return table(calls, play(ours(), calls))
	})
}

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
