// Command page simulates clusters, prints tables of the results, and writes the first and the last
// of them into docs/cluster.md, with a picture.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock-go/penstock/internal/proof/clustersim"
	"github.com/penstock-go/penstock/internal/proof/source"
	"github.com/penstock-go/penstock/internal/proof/tables"
	"github.com/penstock-go/penstock/stat"
)

const (
	page    = "docs/cluster.md"
	picture = "docs/cluster.svg"
)

func main() {
	write := flag.Bool("write", false, "write "+page+" and "+picture)
	short := flag.Bool("short", false, "few members, for a try")
	flag.Parse()
	if err := run(*write, *short); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(write, short bool) error {
	price, skew, gain, trouble := prices(short), skews(), gains(), troubles(short)
	fmt.Printf("%s\n%s\n%s\n%s", price, skew, gain, trouble)
	if !write {
		return nil
	}
	root, err := source.Root()
	if err != nil {
		return err
	}
	file := filepath.Join(root, filepath.FromSlash(page))
	if err := tables.Keep(file, "price", "\n```text\n"+price+"```\n\n"); err != nil {
		return err
	}
	if err := tables.Keep(file, "trouble", "\n```text\n"+trouble+"```\n\n"); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, filepath.FromSlash(picture)), []byte(drawn(clustersim.Tell())), 0o644)
}

// prices tabulates the cost of leases, for clusters of many sizes.
func prices(short bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s %9s %6s %6s %8s | %4s %5s %6s %5s %4s %5s %5s %8s\n", "members", "limit", "bucket", "trip", "offered",
		"over", "used", "waits", "sent", "most", "peak", "fair", "store/s")
	tenth := stat.Shape{Interval: time.Second, Buckets: 10, Strict: true}
	wide := stat.Shape{Interval: 10 * time.Second, Buckets: 10, Strict: true}
	row := func(s clustersim.Setup) {
		o := clustersim.Play(s, 1)
		fmt.Fprintf(&b, "%-8d %7d/s %6v %6v %7.1fx | %4d %4.1f%% %5.1f%% %5.1f %4d %5.1f %5.2f %8.0f\n", s.Members,
			s.Limit*int64(time.Second)/int64(s.Shape.Interval), s.Shape.Width(), s.RoundTrip, s.Offered,
			o.Over, 100*o.Used, 100*o.Waited, o.Requests, o.Most, o.Peak, o.Fair, o.PerSecond)
	}
	ms := time.Millisecond
	for _, trip := range []time.Duration{ms, 5 * ms} {
		for _, offered := range []float64{0.5, 0.9, 1.2, 2} {
			row(clustersim.Setup{Members: 20, Limit: 10_000, Shape: tenth, RoundTrip: trip, Offered: offered, Units: 1, For: 4 * time.Second})
		}
	}
	row(clustersim.Setup{Members: 20, Limit: 1_000, Shape: tenth, RoundTrip: ms, Offered: 1.2, Units: 1, For: 4 * time.Second})
	row(clustersim.Setup{Members: 10, Limit: 10_000, Shape: tenth, RoundTrip: ms, Offered: 1.2, Units: 1, For: 4 * time.Second})
	if short {
		return b.String()
	}
	row(clustersim.Setup{Members: 100, Limit: 100_000, Shape: tenth, RoundTrip: ms, Offered: 1.2, Units: 2, For: 2 * time.Second})
	row(clustersim.Setup{Members: 1000, Limit: 3_000_000, Shape: wide, RoundTrip: ms, Offered: 1.2, Units: 5, For: 4 * time.Second})
	row(clustersim.Setup{Members: 10_000, Limit: 30_000_000, Shape: wide, RoundTrip: ms, Offered: 1.2, Units: 10, For: 2 * time.Second})
	return b.String()
}

// skews tabulates the used share of the limit if one of ten members has nine tenths of all traffic.
func skews() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%6s %8s | %6s %6s %6s %4s\n", "trip", "offered", "used", "waits", "sent", "most")
	for _, trip := range []time.Duration{time.Millisecond, 5 * time.Millisecond} {
		for _, offered := range []float64{0.5, 0.9, 1.2, 1.5, 2} {
			o := clustersim.Play(clustersim.Setup{
				Members: 10, Limit: 10_000, Shape: stat.Shape{Interval: time.Second, Buckets: 10, Strict: true},
				RoundTrip: trip, Offered: offered, Units: 1, For: 10 * time.Second, First: 0.9,
			}, 1)
			fmt.Fprintf(&b, "%6v %7.1fx | %5.1f%% %5.1f%% %6.1f %4d\n", trip, offered, 100*o.Used, 100*o.Waited, o.Requests, o.Most)
		}
	}
	return b.String()
}

// gains tabulates the savings from leases of the next bucket.
func gains() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%6s %8s | %-20s | %s\n", "", "", "with them", "without")
	fmt.Fprintf(&b, "%6s %8s | %6s %6s %6s | %6s %6s %6s\n", "trip", "offered", "used", "waits", "sent", "used", "waits", "sent")
	for _, trip := range []time.Duration{time.Millisecond, 5 * time.Millisecond} {
		for _, offered := range []float64{0.5, 0.9, 1.2, 2} {
			fmt.Fprintf(&b, "%6v %7.1fx", trip, offered)
			for _, unready := range []bool{false, true} {
				o := clustersim.Play(clustersim.Setup{
					Members: 20, Limit: 10_000, Shape: stat.Shape{Interval: time.Second, Buckets: 10, Strict: true},
					RoundTrip: trip, Offered: offered, Units: 1, For: 4 * time.Second, Unready: unready,
				}, 1)
				fmt.Fprintf(&b, " | %5.1f%% %5.1f%% %6.1f", 100*o.Used, 100*o.Waited, o.Requests)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// troubles tabulates the worst excess over the limit.
func troubles(short bool) string {
	seeds := 20
	if short {
		seeds = 2
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-48s  bound  worst of %d\n", "of the limit, in any second", seeds)
	for _, t := range clustersim.Troubles {
		fmt.Fprintf(&b, "%-48s  %5.3f  %5.3f\n", t.Name, t.Bound, t.Worst(seeds))
	}
	return b.String()
}
