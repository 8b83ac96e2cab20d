package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/internal/bench/measure"
	"github.com/penstock-go/penstock/internal/bench/report"
	"github.com/penstock-go/penstock/internal/proof/source"
	"github.com/penstock-go/penstock/internal/proof/tables"
)

const page = "docs/benchmarks.md"

func main() {
	write := flag.Bool("write", false, "keep the table in "+page+", and its first lines in README.md")
	short := flag.Bool("short", false, "run every row once, briefly")
	only := flag.String("only", "", "run the parts whose name contains this: "+strings.Join(partNames(), ", "))
	flag.Parse()
	if err := run(*write, *short, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(write, short bool, only string) error {
	if write && (short || only != "") {
		return errors.New("-write keeps the whole table at full size: drop -short and -only")
	}
	b := &bench{sizes: ordinary, progress: report.NewProgress(), procs: runtime.NumCPU()}
	if short {
		b.sizes = smoke
	}
	var text strings.Builder
	text.WriteString(tables.ThisMachine().String())
	fmt.Fprintf(&text, "two readings of the clock, the unit: %s ns\n", report.Number(measure.TwoReadings(b.plan("the unit")).Median))
	found := false
	for _, p := range parts {
		if !strings.Contains(p.name, only) {
			continue
		}
		found = true
		text.WriteString("\n" + p.run(b))
	}
	b.progress.End()
	if !found {
		return fmt.Errorf("no part is named %q: there are %s", only, strings.Join(partNames(), ", "))
	}
	fmt.Print(text.String())
	fmt.Printf("\nin %.0f s\n", time.Since(b.progress.Began).Seconds())
	if !write {
		return nil
	}
	root, err := source.Root()
	if err != nil {
		return err
	}
	if err := tables.Keep(filepath.Join(root, filepath.FromSlash(page)), "bench", "\n```text\n"+text.String()+"```\n\n"); err != nil {
		return err
	}
	return tables.Keep(filepath.Join(root, "README.md"), "bench", "\n"+b.brief()+"\n")
}

// bench is one run of the command.
type bench struct {
	sizes
	procs    int
	progress *report.Progress
	rows     []brief     // of the README's table
	less     [][2]string // names of contenders, and the notes about them
}

// brief returns the README's table: the cost of one caller's call next to the library that does the
// same work.
func (b *bench) brief() string {
	var text strings.Builder
	text.WriteString("| A call under | Penstock | " + sentinelGo + " | Penstock, coarse clock | " + sentinelGo + ", cached clock |\n|---|---|---|---|---|\n")
	for _, row := range b.rows {
		text.WriteString("| " + row.what + " | " + strings.Join(row.ratios, " | ") + " |\n")
	}
	return text.String()
}

// brief is a row of the README's table.
type brief struct {
	what   string
	ratios []string
}

// inBrief adds cells to the row of a measurement, and creates the row if needed.
func (b *bench) inBrief(what string, ratios ...string) {
	at := slices.IndexFunc(b.rows, func(row brief) bool { return row.what == what })
	if at < 0 {
		at = len(b.rows)
		b.rows = append(b.rows, brief{what: what})
	}
	b.rows[at].ratios = append(b.rows[at].ratios, ratios...)
}

// sizes set the extent of the measurements.
type sizes struct {
	rounds    int
	most      int // rounds if few are calm
	batch     time.Duration
	mixRounds int
	mixCalls  int // calls of a processor in a batch
	again     int // repetitions of measurements too long for a batch
	many      int // resources
	rules     int
	memory    int // resources whose memory is measured
	waits     int
	idle      int // seconds
}

var (
	ordinary = sizes{
		rounds: 21, most: 200, batch: 5 * time.Millisecond, mixRounds: 21, mixCalls: mixOrder / 4,
		again: 10, many: 100_000, rules: 10_000, memory: 5_000, waits: 500, idle: 5,
	}
	smoke = sizes{
		rounds: 1, batch: 200 * time.Microsecond, mixRounds: 1, mixCalls: 200,
		again: 1, many: 2_000, rules: 200, memory: 100, waits: 5, idle: 1,
	}
)

func (b *bench) plan(what string) measure.Plan {
	b.progress.Begin(what)
	return measure.Plan{Rounds: b.rounds, Most: b.most, Batch: b.batch, Progress: b.progress.At}
}

// part is a part of the table.
type part struct {
	name string
	run  func(b *bench) string
}

// job is work that several libraries can do.
type job struct {
	part, title string
	contenders  []contender
	refused     bool
}

var jobs = []job{
	{"rate", "A LIMIT OF CALLS A SECOND, all pass", rates, false},
	{"refused", "A LIMIT OF CALLS, nearly all refused", without(rates, "uber-go/ratelimit"), true},
	{"concurrency", "A LIMIT OF CALLS AT THE SAME TIME, all pass", concurrencies, false},
	{"full", "A LIMIT OF CALLS AT THE SAME TIME, all refused", concurrencies, true},
	{"breaker", "A BREAKER, closed", breakers, false},
	{"open", "A BREAKER, open", breakers, true},
}

var parts = func() []part {
	list := []part{{"targets", (*bench).targets}}
	for _, j := range jobs {
		list = append(list, part{j.part, func(b *bench) string { return b.job(j, false) }})
	}
	return append(list, part{"mix", (*bench).mix}, part{"cached", (*bench).cached}) // must be last: see cacheTime
}()

func partNames() (names []string) {
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

func without(list []contender, name string) (rest []contender) {
	for _, c := range list {
		if c.name != name {
			rest = append(rest, c)
		}
	}
	return rest
}
