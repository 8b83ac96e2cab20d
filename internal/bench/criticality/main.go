// Command criticality plays a service that is asked for three times what it can do, by calls of all
// levels of criticality, under an adaptive rule with and without a shed order. It runs on a virtual
// clock with a fixed seed, so every run prints the same table.
//
//	go run ./criticality          print
//	go run ./criticality -write   keep the table in docs/criticality.md
//
// Run these in the folder internal/bench with GOWORK=off.
package main

import (
	"fmt"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/internal/bench/report"
)

const page = "docs/criticality.md"

func main() { report.Page(page, "criticality", table) }

// table has rows for each size of the service.
func table() string {
	t := report.NewTable("", "without", "shed: levels")
	for _, workers := range []int{16, 64, 256} {
		plain, levelled := play(workers, api.ShedNone), play(workers, api.ShedLevels)
		row := func(name string, of func(outcome) string) {
			t.Row("", fmt.Sprintf("%d workers: %s", workers, name), of(plain), of(levelled))
		}
		for i, level := range levels {
			row(fmt.Sprintf("%v, which asks for %.0f %%", level, 100*demand[i]), func(o outcome) string { return percent(o.admitted[i]) })
		}
		row("work done", func(o outcome) string { return percent(o.work) })
		row("learned limit", func(o outcome) string { return fmt.Sprintf("%.0f", o.limit) })
	}
	return t.String()
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
