package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/stat"
)

// liveCommand is a command that asks a program for something and prints it.
func (c *command) liveCommand(name, short, long, path string, query url.Values, show func(out io.Writer, p *program, ctx context.Context) error) *cobra.Command {
	var asJSON, watch bool
	cmd := &cobra.Command{
		Use:   name + " [URL]",
		Short: short,
		Long: long + `

URL is the address of the program's console, ` + usualURL + ` unless
given. A token for it is read from the environment: ` + tokenName + `.`,
		Example: fmt.Sprintf("  penstock %[1]s\n  penstock %[1]s http://127.0.0.1:8719 --watch", name),
		Args:    args(0, 1, "one address of a program"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := c.program(strings.Join(args, ""))
			if err != nil {
				return err
			}
			return c.watching(watch, func(ctx context.Context, out io.Writer) error {
				if !asJSON {
					return show(out, p, ctx)
				}
				body, err := p.ask(ctx, path, query)
				if err != nil {
					return err
				}
				return indented(out, body)
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	cmd.Flags().BoolVar(&watch, "watch", false, "again each second, until interrupted")
	cmd.Flags().SortFlags = false
	return cmd
}

func (c *command) tree() *cobra.Command {
	return c.liveCommand("tree", "Print the tree of calls of a running program",
		`Tree prints the calls of a running program as a tree: below each way in the
resources, nested as the calls are, with what passed and was refused in the
last second and the last minute, mean response times, and calls in flight.`,
		"api/tree", nil, func(out io.Writer, p *program, ctx context.Context) error {
			tree, err := answer[treeJSON](ctx, p, "api/tree", nil)
			if err != nil {
				return err
			}
			return tree.tree().WriteText(out)
		})
}

func (c *command) resources() *cobra.Command {
	query := url.Values{"limit": {"10000"}}
	return c.liveCommand("resources", "Print the resources of a running program",
		`Resources prints the resources of a running program, those with most traffic in
the last minute first: what passed and was refused in the last second and the
last minute, the mean response time, calls in flight, and a bar for each three
seconds of the minute, of all that asked. Where percentiles are counted, there
are the median and the 95th and 99th percentile of response times of the last
minute, in the place of their mean and of the bars.`,
		"api/resources", query, func(out io.Writer, p *program, ctx context.Context) error {
			all, err := answer[resourcesJSON](ctx, p, "api/resources", query)
			if err != nil {
				return err
			}
			writeResources(out, all)
			if more := all.Total - len(all.Resources); more > 0 {
				fmt.Fprintf(out, "and %d more\n", more)
			}
			return nil
		})
}

func writeResources(out io.Writer, all resourcesJSON) {
	line := func(name, pass, block, times, minute, refused, flight, bars string) {
		fmt.Fprintln(out, strings.TrimRight(padded(name, 22)+fmt.Sprintf(" %6s %6s %7s %7s %7s %5s", pass, block, times, minute, refused, flight)+"  "+bars, " "))
	}
	times, bars := "rt", "last minute"
	if all.Percentiles {
		times, bars = fmt.Sprintf("%7s %6s %6s", "p50", "p95", "p99"), ""
	}
	line("resource", "pass/s", "blk/s", times, "pass/m", "block/m", "in", bars)
	for _, r := range all.Resources {
		if all.Percentiles {
			times = fmt.Sprintf("%7s %6s %6s", percentile(r.Minute.P50Ms), percentile(r.Minute.P95Ms), percentile(r.Minute.P99Ms))
		} else {
			times, bars = millis(r.Minute.AvgRTMs, r.Minute.Complete), sparks(asked(r.History), 12)
		}
		line(safe(r.Name, 22), tally(r.LastSecond.Pass), tally(r.LastSecond.Block), times,
			tally(r.Minute.Pass), tally(r.Minute.Block), tally(r.InFlight), bars)
	}
}

// percentile is one of response times, nil if there is none.
func percentile(ms *float64) string {
	if ms == nil {
		return "-"
	}
	return millis(*ms, 1)
}

func (c *command) rules() *cobra.Command {
	return c.liveCommand("rules", "Print the rules of a running program",
		`Rules prints the rules that are in force in a running program: what each one has
refused since it was loaded, or would have in shadow mode, and how much of its
limit is used now.`,
		"api/rules", nil, func(out io.Writer, p *program, ctx context.Context) error {
			all, err := answer[rulesJSON](ctx, p, "api/rules", nil)
			if err != nil {
				return err
			}
			writeRules(out, all)
			return nil
		})
}

func writeRules(out io.Writer, all rulesJSON) {
	for _, s := range all.Sources {
		state := plural(s.Rules, "rule")
		if !s.OK {
			state += ", and not as it is now: " + safe(s.LastError, mostShown)
		}
		fmt.Fprintf(out, "%s: %s\n", safe(s.Source, 60), state)
	}
	if len(all.Sources) > 0 {
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "%-10s %s %8s %8s  %s\n", "kind", padded("rule", 32), "refused", "shadow", "full")
	for _, r := range all.Rules {
		fmt.Fprintln(out, ruleLine(r))
	}
}

func ruleLine(r ruleJSON) string {
	line := fmt.Sprintf("%-10s %s %8s", safe(r.Kind, 10), padded(safe(r.ID, 32), 32), tally(r.Refused))
	shadow := ""
	if r.ShadowBlocked > 0 || r.Mode == "shadow" {
		shadow = tally(r.ShadowBlocked)
	}
	line += fmt.Sprintf(" %8s  ", shadow)
	switch {
	case r.Mode == "off":
		line += "off"
	case r.Full != nil:
		line += fullness(*r.Full)
	}
	return strings.TrimRight(line, " ")
}

// fullness is a share as a bar.
func fullness(full float64) string {
	const width = 10
	used := int(math.Round(max(0, min(1, full)) * width))
	return strings.Repeat("█", used) + strings.Repeat("·", width-used) + fmt.Sprintf(" %3.0f %%", 100*max(0, min(full, 99.99)))
}

// explainAt tells what the rules of a running program would make of a call.
func (c *command) explainAt(address, resource string, caller caller, asJSON, watch bool) error {
	p, err := c.program(address)
	if err != nil {
		return err
	}
	query := url.Values{"resource": {resource}, "units": {strconv.Itoa(caller.units)}}
	set := func(key, value string) {
		if value != "" {
			query.Set(key, value)
		}
	}
	set("origin", caller.origin)
	set("context", caller.context)
	set("endpoint", strings.Join(caller.endpoints, ""))
	if !caller.internal {
		query.Set("inbound", "true")
	}
	for _, a := range caller.args {
		value, err := json.Marshal(a.values[0]) // text in quotes, whatever it looks like
		if err != nil {
			return err
		}
		query.Set("arg."+a.name, string(value))
	}
	return c.watching(watch, func(ctx context.Context, out io.Writer) error {
		if asJSON {
			body, err := p.ask(ctx, "api/explain", query)
			if err != nil {
				return err
			}
			return indented(out, body)
		}
		x, err := answer[struct{ Text string }](ctx, p, "api/explain", query)
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, lines(x.Text))
		return err
	})
}

// lines is a text of several lines in which nothing steers a terminal.
func lines(text string) string {
	var all []string
	for line := range strings.Lines(text) {
		all = append(all, safe(strings.TrimSuffix(line, "\n"), mostShown)+"\n")
	}
	return strings.Join(all, "")
}

// treeJSON is the tree as inspect writes it.
type treeJSON struct {
	At                        time.Time
	Waiting, Failures, Leaked int64
	Caps                      inspect.Caps
	Root                      nodeJSON
	Resources                 []nodeJSON
	Rules                     []struct {
		Kind                   core.Kind
		ID, Resource           string
		Mode                   spec.Mode
		Asked                  bool
		Refused, ShadowBlocked int64
		ruleDetails
	}
}

// ruleDetails are what a rule's family has the program say of it, ready to be shown.
type ruleDetails struct {
	Told  []string `json:"lines"`
	Marks []mark
}

func (d ruleDetails) Lines(time.Time) []string {
	all := make([]string, len(d.Told))
	for i, line := range d.Told {
		all[i] = safe(line, mostShown)
	}
	return all
}

func (d ruleDetails) Resources() []core.ResourceDetails {
	all := make([]core.ResourceDetails, len(d.Marks))
	for i := range all {
		all[i] = d.Marks[i]
	}
	return all
}

// mark is what stands beside the calls of a resource.
type mark struct {
	Resource, Text string
	Urgency        int
}

func (m mark) About() string       { return m.Resource }
func (m mark) Mark() (string, int) { return safe(m.Text, mostShown), m.Urgency }

type nodeJSON struct {
	Name                       string
	Kind                       inspect.NodeKind
	Overflow                   bool
	InFlight, Waiting          int64
	Second, LastSecond, Minute countsJSON
	Children                   []nodeJSON
	percentilesJSON
}

type countsJSON struct {
	Pass, Block, Complete, Exception, Occupied, Entered, Exited, LongLived int64
	RTMs                                                                   float64
}

func (t treeJSON) tree() inspect.Tree {
	tree := inspect.Tree{At: t.At, Waiting: t.Waiting, Failures: t.Failures, Leaked: t.Leaked, Caps: t.Caps, Root: t.Root.node()}
	for _, r := range t.Resources {
		tree.Resources = append(tree.Resources, r.node())
	}
	for _, r := range t.Rules {
		tree.Rules = append(tree.Rules, core.RuleFigures{
			Kind: r.Kind, ID: r.ID, Resource: r.Resource, Mode: r.Mode, Asked: r.Asked, Refused: r.Refused, ShadowBlocked: r.ShadowBlocked,
			Details: r.ruleDetails,
		})
	}
	return tree
}

func (n nodeJSON) node() inspect.Node {
	node := inspect.Node{Name: n.Name, Kind: n.Kind, Overflow: n.Overflow, Figures: inspect.Figures{
		Interval: time.Second, Second: n.Second.counts(), Minute: n.Minute.counts(), InFlight: n.InFlight, Waiting: n.Waiting,
	}}
	if n.P50Ms != nil && n.P95Ms != nil && n.P99Ms != nil {
		node.Percentiles = stat.Percentiles{Count: 1, P50: duration(*n.P50Ms), P95: duration(*n.P95Ms), P99: duration(*n.P99Ms)}
	}
	for _, c := range n.Children {
		node.Children = append(node.Children, c.node())
	}
	return node
}

func (c countsJSON) counts() stat.Counts {
	return stat.Counts{
		Pass: c.Pass, Block: c.Block, Complete: c.Complete, Exception: c.Exception, Occupied: c.Occupied,
		Entered: c.Entered, Exited: c.Exited, LongLived: c.LongLived, RT: duration(c.RTMs),
	}
}

func duration(ms float64) time.Duration {
	return time.Duration(math.Round(ms * float64(time.Millisecond)))
}

// safe is a text that comes from a program as a terminal may have it: on one line, no wider than
// width, and steering nothing.
func safe(text string, width int) string {
	var b strings.Builder
	for _, r := range text {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return ansi.Truncate(b.String(), width, "…")
}

// padded is a safe text that is as wide as width.
func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// tally is a number in at most five columns.
func tally(n int64) string {
	for _, unit := range []struct {
		least int64
		name  string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if n >= unit.least {
			of := unit.least
			if unit.name == "k" {
				of = 1e3
			}
			if n < 10*of {
				return fmt.Sprintf("%.1f%s", math.Floor(10*float64(n)/float64(of))/10, unit.name)
			}
			return strconv.FormatInt(n/of, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// millis is a mean response time, of so many calls.
func millis(ms float64, of int64) string {
	switch {
	case of == 0:
		return "-"
	case ms >= 10_000:
		return fmt.Sprintf("%.0fs", ms/1000)
	case ms >= 1000:
		return fmt.Sprintf("%.1fs", ms/1000)
	case ms >= 10:
		return fmt.Sprintf("%.0fms", ms)
	case ms >= 0.1:
		return fmt.Sprintf("%.1fms", ms)
	}
	return fmt.Sprintf("%.0fµs", ms*1000)
}

// asked is all that asked in each second.
func asked(h historyJSON) []float64 {
	all := make([]float64, len(h.Pass))
	for i := range all {
		all[i] = float64(h.Pass[i])
		if i < len(h.Block) {
			all[i] += float64(h.Block[i])
		}
	}
	return all
}

func floats(all []int64) []float64 {
	out := make([]float64, len(all))
	for i, v := range all {
		out[i] = float64(v)
	}
	return out
}

var eighths = []rune(" ▁▂▃▄▅▆▇█")

// sparks draws values as so many bars, the last one being the newest; the highest fills its line. Where
// there are more values than bars, a bar is the highest of several.
func sparks(values []float64, width int) string {
	if width <= 0 || len(values) == 0 {
		return ""
	}
	per := (len(values) + width - 1) / width
	var tops []float64
	for part := range slices.Chunk(reversed(values), per) {
		tops = append(tops, slices.Max(part))
	}
	slices.Reverse(tops)
	most := slices.Max(tops)
	var b strings.Builder
	for _, v := range tops {
		level := 0
		if v > 0 {
			level = max(1, int(math.Round(v/most*8)))
		}
		b.WriteRune(eighths[level])
	}
	return b.String()
}

func reversed(values []float64) []float64 {
	out := slices.Clone(values)
	slices.Reverse(out)
	return out
}

// plural is a number of things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
