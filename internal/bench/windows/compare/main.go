package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/penstock-go/penstock/internal/bench/measure"
	"github.com/penstock-go/penstock/internal/bench/report"
	"github.com/penstock-go/penstock/internal/proof/source"
	"github.com/penstock-go/penstock/internal/proof/tables"
)

const (
	page    = "docs/rules/flow.md"
	picture = "docs/rules/windows.svg"
)

// smoke checks that everything works; its figures mean little.
var smoke = measure.Plan{Rounds: 1, Batch: 200 * time.Microsecond}

func main() {
	write := flag.Bool("write", false, "keep the table of traffic in "+page+" and the picture in "+picture)
	short := flag.Bool("short", false, "measure costs shortly")
	flag.Parse()
	if err := run(*write, *short); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(write, short bool) error {
	progress := report.NewProgress()
	progress.Begin("the cost of a decision")
	plan := measure.Plan{Rounds: 21, Batch: 12 * time.Millisecond, Progress: progress.At}
	if short {
		plan = smoke
	}
	cost := costTable(plan)
	progress.Begin("traffic")
	came := trafficTable()
	progress.End()
	fmt.Printf("%s\n%s", came, cost)
	if !write {
		return nil
	}
	root, err := source.Root()
	if err != nil {
		return err
	}
	file := filepath.Join(root, filepath.FromSlash(page))
	if err := tables.Keep(file, "traffic", "\n```text\n"+came+"```\n\n"); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, filepath.FromSlash(picture)), []byte(drawn()), 0o644)
}
