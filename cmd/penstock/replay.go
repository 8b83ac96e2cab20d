package main

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/internal/accesslog"
	"github.com/penstock-go/penstock/replay"
)

// replayFlags are the flags of replay.
type replayFlags struct {
	rules          []string
	how            together
	kind, fields   string
	stamp          string
	params         []string
	origin         string
	style, routes  string
	since, until   moment
	window         time.Duration
	failOver       share
	asJSON, values bool
	format         string
}

var replayFormats = []string{"text", "json", "csv", "github"}

func (c *command) replay() *cobra.Command {
	f := new(replayFlags)
	cmd := &cobra.Command{
		Use:   "replay LOG|-...",
		Short: "Show the traffic of access logs, and what rules would do to it",
		Long: `Replay reads access logs and shows, on one screen, how many calls each route
gets a second, who calls most, and a limit for each route that hardly refuses
any. With --rules it plays the calls through rules with the real engine, on a
clock of its own, and shows the calls that each rule would have passed, delayed
and refused. Nothing leaves the machine.

Logs may be compressed with gzip or zstd, and may overlap, in any order. Their
kind is detected, except for nginx and Apache logs with durations, JSON lines
and CSV: set --log, and --fields for the latter two.

Exit code: 0, or 1 for errors and if rules refuse more than --fail-over.`,
		Example: `  penstock replay access.log*
  penstock replay --log nginx --rules rules.yaml access.log
  penstock replay --rules rules.yaml --fail-over 1% --format github access.log
  penstock replay --log json --fields "time=ts,path=uri,ip=client" app.log`,
		Args: args(1, -1, "access logs, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.asJSON {
				f.format = "json"
			}
			l, err := f.logs()
			if err != nil {
				return usage(cmd, err)
			}
			if f.failOver.text != "" && len(f.rules) == 0 {
				return usage(cmd, errors.New("--fail-over needs --rules"))
			}
			return c.replayed(l, f, args)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.rules, "rules", nil, "rule `file` or directory; repeat it for several")
	flags.StringVar(&f.kind, "log", "", "`kind` of log: "+strings.Join(accesslog.Names()[:5], ", ")+",\n"+strings.Join(accesslog.Names()[5:], ", ")+" (default: detected)")
	flags.StringVar(&f.fields, "fields", "", "fields of JSON lines or columns of CSV, such as\n\"time=ts,path=uri,status=code,took=d:ms,ip=ip\"")
	flags.StringVar(&f.stamp, "stamp", "", "the time of a line: arrival of the request, or end\nof the response (default: by the kind)")
	flags.StringArrayVar(&f.params, "param", nil, "a param of calls, as `name=field`: user=user,\nkey=query:key, net=ip/64 (default ip=ip)")
	flags.StringVar(&f.origin, "origin", "", "`field` with the origin of calls")
	flags.StringVar(&f.style, "style", "nethttp", "adapter that names the routes: "+strings.Join(styleNames()[:3], ", ")+",\n"+strings.Join(styleNames()[3:], ", "))
	flags.StringVar(&f.routes, "routes", "", "`file` with a route on each line (default: learned)")
	flags.Var(&f.since, "since", "first time, such as 2026-03-01T10:00, in UTC")
	flags.Var(&f.until, "until", "end of the times")
	flags.DurationVar(&f.window, "window", 2*time.Minute, "how late lines may be")
	flags.Var(&f.failOver, "fail-over", "exit with 1 if rules refuse more, such as 1%")
	flags.BoolVar(&f.values, "show-values", false, "show clients in files too, not only on terminals")
	flags.BoolVar(&f.asJSON, "json", false, "the same as --format json")
	flags.StringVar(&f.format, "format", "text", "output format: "+orList(replayFormats)+"\n")
	f.how.add(cmd)
	flags.SortFlags = false
	_ = cmd.RegisterFlagCompletionFunc("log", fixed(accesslog.Names()...))
	_ = cmd.RegisterFlagCompletionFunc("format", fixed(replayFormats...))
	_ = cmd.RegisterFlagCompletionFunc("style", fixed(styleNames()...))
	_ = cmd.RegisterFlagCompletionFunc("stamp", fixed(accesslog.Arrival.String(), accesslog.End.String()))
	_ = cmd.RegisterFlagCompletionFunc("rules", ruleFiles)
	return cmd
}

// logs returns the logs without their files.
func (f *replayFlags) logs() (*logs, error) {
	l := &logs{kind: f.kind, options: accesslog.Options{Fields: f.fields}, window: f.window, since: math.MinInt64, until: math.MaxInt64}
	if f.since.text != "" {
		l.since = f.since.at
	}
	if f.until.text != "" {
		l.until = f.until.at
	}
	style, known := styles[f.style]
	switch {
	case !slices.Contains(replayFormats, f.format):
		return nil, fmt.Errorf("unknown format %q: use %s; --log sets the kind of log", f.format, orList(replayFormats))
	case !known:
		return nil, fmt.Errorf("unknown style %q: use %s", f.style, orList(styleNames()))
	case f.window < 0 || f.window > time.Hour:
		return nil, fmt.Errorf("--window is %v: use 0s to 1h", f.window)
	case l.since >= l.until:
		return nil, fmt.Errorf("--since is not before --until")
	}
	switch f.stamp {
	case "":
	case accesslog.Arrival.String(), accesslog.End.String():
		stamp := accesslog.Arrival
		if f.stamp == accesslog.End.String() {
			stamp = accesslog.End
		}
		l.options.Stamp = &stamp
	default:
		return nil, fmt.Errorf("unknown stamp %q: use arrival or end", f.stamp)
	}
	if f.kind != "" {
		if _, err := accesslog.Find(f.kind); err != nil {
			return nil, err
		}
		if f.kind != "json" && f.kind != "csv" && f.fields != "" {
			return nil, errors.New("--fields is for --log json and --log csv")
		}
	} else if f.fields != "" {
		return nil, errors.New("--fields needs --log json or --log csv")
	}
	if f.kind == "json" || f.kind == "csv" {
		if _, err := accesslog.ParseFields(f.fields); err != nil {
			return nil, err
		}
	}
	params := f.params
	if len(params) == 0 {
		params = []string{"ip=ip"}
	}
	for _, text := range params {
		name, field, ok := strings.Cut(text, "=")
		if !ok || name == "" || field == "" {
			return nil, fmt.Errorf("--param is %q: use a name and a field, such as ip=ip or key=query:key", text)
		}
		param, err := l.field(name, field)
		if err != nil {
			return nil, err
		}
		l.params = append(l.params, param)
	}
	if f.origin != "" {
		origin, err := l.field("", f.origin)
		if err != nil {
			return nil, err
		}
		l.origin = &origin
	}
	l.namer = accesslog.NewNamer(style)
	if f.routes != "" {
		return l, routeList(l.namer, f.routes)
	}
	return l, nil
}

// replayed reads the logs and writes the result.
func (c *command) replayed(l *logs, f *replayFlags, names []string) error {
	var set api.RuleSet
	if len(f.rules) > 0 {
		if slices.Contains(f.rules, stdin) && slices.Contains(names, stdin) {
			return errors.New("only one of rules and logs can be standard input")
		}
		var err error
		if set, err = c.load(f.rules, f.how); err != nil {
			return err
		}
		if f.routes == "" {
			for _, name := range resources(set) {
				_ = l.namer.List(name) // another resource, such as a query, is no route
			}
		}
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("%s: named twice", harmless(name))
		}
		closed, err := l.add(c, name)
		defer closed()
		if err != nil {
			return err
		}
	}
	l.show = f.values || f.format == "text" && c.terminal(c.out)
	l.progress, l.passes = c.progress("reading"), 4
	defer l.progress.done()
	if len(f.rules) == 0 {
		l.passes = 3
	}
	if err := l.learn(); err != nil {
		return err
	}
	if len(f.rules) == 0 {
		return c.surveyed(l, f.format)
	}
	o, err := l.play(set)
	if err != nil {
		return err
	}
	l.progress.done()
	if err := c.writeReplay(l, o, set, f); err != nil {
		return err
	}
	report := o.Report
	if f.failOver.text != "" && refusedShare(report) > f.failOver.of {
		return exit(exitErrors)
	}
	return nil
}

// replayOutcome is the outcome of rules.
type replayOutcome struct {
	replay.Report
	ranges []refusedRange // of each rule; none if no call was logged in whole seconds
}

// refusedRange is the least and the highest number of refusals of a rule, depending on where the
// calls are placed in their second.
type refusedRange struct {
	Least int64 `json:"least"`
	Most  int64 `json:"most"`
}

// matters reports whether the placement changes the share of refusals by more than 1 %.
func (r refusedRange) matters(offered int64) bool { return 100*(r.Most-r.Least) > offered }

// play plays the logs through rules: with calls of whole seconds spread evenly and, to see how much
// that matters, all at once and at random.
func (l *logs) play(set api.RuleSet) (o replayOutcome, err error) {
	once := func() (replay.Report, error) {
		var failed error
		report, err := replay.Play(set, iter.Seq[replay.Call](l.calls(&failed)))
		return report, errors.Join(failed, err)
	}
	if !l.coarse {
		l.passes = 2
	}
	if o.Report, err = once(); err != nil || !l.coarse {
		return o, err
	}
	for _, r := range o.Rules {
		o.ranges = append(o.ranges, refusedRange{r.Refused, r.Refused})
	}
	for _, l.placement = range []accesslog.Placement{accesslog.AtOnce, accesslog.Randomly} {
		other, err := once()
		if err != nil {
			return o, err
		}
		for i, r := range other.Rules {
			o.ranges[i] = refusedRange{min(o.ranges[i].Least, r.Refused), max(o.ranges[i].Most, r.Refused)}
		}
	}
	return o, nil
}

func refusedShare(r replay.Report) float64 {
	if r.Offered == 0 {
		return 0
	}
	return float64(r.Refused) / float64(r.Offered)
}

// surveyed describes the traffic without rules.
func (c *command) surveyed(l *logs, format string) error {
	s := newSurvey()
	var failed error
	for call := range l.calls(&failed) {
		s.add(call)
	}
	if failed != nil {
		return failed
	}
	s.finish()
	seen := l.seen
	err := s.judge(l.calls(&failed))
	if err := errors.Join(failed, err); err != nil {
		return err
	}
	l.seen = seen
	l.progress.done()
	return c.writeSurvey(l, s, format)
}
