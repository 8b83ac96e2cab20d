package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// liveCommand returns a command that requests a path of a program and prints the response.
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
	cmd.Flags().BoolVar(&watch, "watch", false, "repeat every second, until interrupted")
	cmd.Flags().SortFlags = false
	return cmd
}

func (c *command) tree() *cobra.Command {
	return c.liveCommand("tree", "Print the tree of calls of a running program",
		`Tree prints the calls of a running program as a tree: below each context its
resources, nested like the calls, with the calls passed and refused in the last
second and the last minute, mean response times, and calls in flight.`,
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
		`Resources prints the resources of a running program, by traffic in the last
minute: the calls passed and refused in the last second and the last minute, the
mean response time, calls in flight, and a bar for all calls of each three
seconds of the minute. With percentiles on, the median and the 95th and 99th
percentile of the last minute replace the mean and the bars.`,
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

// percentile formats a percentile of response times, which may be nil.
func percentile(ms *float64) string {
	if ms == nil {
		return "-"
	}
	return millis(*ms, 1)
}

func (c *command) rules() *cobra.Command {
	return c.liveCommand("rules", "Print the rules of a running program",
		`Rules prints the rules in force in a running program: the calls each one has
refused since it was loaded, or would have in shadow mode, and how much of its
limit is in use.`,
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
			state += ", latest load failed: " + safe(s.LastError, mostShown)
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
	case r.StoreAway && r.Full != nil:
		line += "store away" + wholePercent(*r.Full)
	case r.StoreAway:
		line += "store away"
	case r.Full != nil:
		line += fullness(*r.Full)
	case len(r.Measures) > 0 && r.Measures[0].AtHand: // only the cluster's store knows the total
		line += tally(int64(r.Measures[0].Measured)) + " of " + tally(int64(r.Measures[0].Limit)) + " at hand"
	}
	return strings.TrimRight(line, " ")
}

// fullness draws a share as a bar.
func fullness(full float64) string {
	const width = 10
	used := int(math.Round(max(0, min(1, full)) * width))
	return strings.Repeat("█", used) + strings.Repeat("·", width-used) + wholePercent(full)
}

func wholePercent(full float64) string { return fmt.Sprintf(" %3.0f %%", 100*max(0, min(full, 99.99))) }

// explainAt reports the decisions that the rules of a running program would make about a call.
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
	query.Set("inbound", strconv.FormatBool(!caller.internal))
	for _, a := range caller.args {
		value, err := json.Marshal(a.values[0]) // quoted text, even if it looks like a number
		if err != nil {
			return err
		}
		query.Set("arg."+a.name, string(value))
	}
	for _, cost := range caller.costs {
		query.Set("cost."+cost.name, fmt.Sprint(cost.values[0]))
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
