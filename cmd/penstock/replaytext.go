package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/replay"
)

// grouped formats a number with commas.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// portion formats a share, small ones with two digits.
func portion(n, of int64) string {
	if of == 0 || n == 0 {
		return "0 %"
	}
	p := 100 * float64(n) / float64(of)
	switch {
	case n == of:
		return "100 %"
	case p >= 99.9:
		return "99.9 %"
	case p < 0.01:
		return "< 0.01 %"
	case p < 1:
		return strings.TrimSuffix(strconv.FormatFloat(p, 'f', 2, 64), "0") + " %"
	}
	return strings.TrimSuffix(strconv.FormatFloat(p, 'f', 1, 64), ".0") + " %"
}

// roughly formats a number of clients, which is an estimate if it is large.
func roughly(n int64) string {
	if n <= 4096 {
		return grouped(n)
	}
	unit := int64(10)
	for n >= 1000*unit {
		unit *= 10
	}
	return "about " + grouped((n+unit/2)/unit*unit)
}

// figure formats a number in a column.
func figure(n int64, width int) string {
	if s := grouped(n); len(s) <= width {
		return s
	}
	return tally(n)
}

func clockTime(t time.Time) string { return t.Format(time.DateTime) }

// span formats the length of the traffic.
func span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	case d >= 10*time.Second:
		d = d.Round(time.Second)
	}
	return short(d)
}

// heading describes the traffic.
func (l *logs) heading(calls int64, from, to time.Time) string {
	return fmt.Sprintf("%s calls in %s (%s), %s to %s UTC",
		grouped(calls), span(to.Sub(from)), l.kinds(), clockTime(from), clockTime(to))
}

// folded breaks a sentence into lines of a terminal.
func folded(text string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		width := ansi.StringWidth(word)
		switch {
		case column == 0:
		case column+1+width > screenWidth:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += width
	}
	return b.String()
}

const screenWidth = 80

// remarks qualify the figures.
func (l *logs) remarks(calls int64) (all []string) {
	bad, lines, samples := l.lines()
	if bad > 0 {
		all = append(all, fmt.Sprintf("%s of %s lines could not be read:", grouped(bad), grouped(lines)))
		for _, s := range samples {
			all = append(all, fmt.Sprintf("  %s: %s", harmless(s.file), l.sample(s.Bad, 40)))
		}
	}
	if l.seen.late > 0 {
		all = append(all, fmt.Sprintf("%s calls were left out: they come more than %s after later ones (--window).", grouped(l.seen.late), short(l.window)))
	}
	var answered []string
	for status, n := range map[string]int64{"429": l.seen.limited, "503": l.seen.unavailable} {
		if n > 0 {
			answered = append(answered, grouped(n)+" with "+status)
		}
	}
	if len(answered) > 0 {
		slices.Sort(answered)
		all = append(all, "The server refused calls, "+strings.Join(answered, " and ")+"; they count as offered.")
	}
	if l.seen.coarse > 0 {
		all = append(all, "Times are whole seconds: calls are spread evenly within their second.")
	}
	switch {
	case l.seen.untimed == calls:
		all = append(all, "No durations are logged: calls end at once.")
	case l.seen.untimed > 0:
		all = append(all, fmt.Sprintf("%s calls have no duration: they end at once.", grouped(l.seen.untimed)))
	}
	return append(all, "No log knows who would have retried, or the machine's load.")
}

// writeSurvey writes the description of traffic.
func (c *command) writeSurvey(l *logs, s *survey, format string) error {
	if !l.show {
		for i := range s.Heaviest {
			s.Heaviest[i].Client = ""
		}
	}
	switch format {
	case "json":
		s.Input = jsonInputOf(l)
		return writeJSON(c.out, s)
	case "csv":
		w := csv.NewWriter(c.out)
		_ = w.Write([]string{"route", "calls", "median", "p99", "p999", "max", "inFlight", "limit", "refused"})
		for _, r := range s.Routes {
			_ = w.Write([]string{
				cell(r.Route), fmt.Sprint(r.Calls), fmt.Sprint(r.Median), fmt.Sprint(r.P99), fmt.Sprint(r.P999),
				fmt.Sprint(r.Max), fmt.Sprint(r.InFlight), fmt.Sprint(r.Limit), fmt.Sprint(r.Refused),
			})
		}
		w.Flush()
		return w.Error()
	case "github":
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n\n", markdown(l.heading(s.Calls, s.From, s.To)))
		b.WriteString("| Route | Calls | Median/s | p99/s | p99.9/s | Max/s | Limit | Refused |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
		for _, r := range s.Routes {
			fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %s | %s |\n", markdown(r.Route), grouped(r.Calls), r.Median, r.P99, r.P999, r.Max, r.limit(), r.refuses())
		}
		_, err := io.WriteString(c.out, b.String())
		return err
	}
	var b strings.Builder
	fmt.Fprintln(&b, folded(l.heading(s.Calls, s.From, s.To)))
	fmt.Fprintf(&b, "%-16s%s calls, %s\n", "busiest second", grouped(s.BusiestSecond.Calls), clockTime(s.BusiestSecond.At))
	fmt.Fprintf(&b, "%-16s%s calls, %s\n", "busiest minute", grouped(s.BusiestMinute.Calls), s.BusiestMinute.At.Format("2006-01-02 15:04"))
	if s.InFlight != nil {
		fmt.Fprintf(&b, "%-16s%s calls, %s\n", "most in flight", grouped(s.InFlight.Calls), clockTime(s.InFlight.At))
	}
	if s.Failed > 0 {
		fmt.Fprintf(&b, "%-16s%s of the calls, answered 5xx\n", "failures", portion(s.Failed, s.Calls))
	}
	b.WriteString("\n" + c.paint(c.out, bold, "route                         calls median   p99 p99.9   max   in  limit refuses") + "\n")
	for _, r := range s.Routes {
		flight := "-"
		if s.InFlight != nil {
			flight = tally(r.InFlight)
		}
		fmt.Fprintf(&b, "%s %7s %6s %5s %5s %5s %4s %6s %7s\n", padded(safe(r.Route, 27), 27), figure(r.Calls, 7), tally(r.Median), tally(r.P99), tally(r.P999),
			tally(r.Max), flight, r.limit(), r.refuses())
	}
	if s.OtherRoutes > 0 {
		fmt.Fprintf(&b, "and %s.\n", count(s.OtherRoutes, "other route"))
	}
	b.WriteString(folded("Calls a second, over the seconds with calls; in: most in flight; limit: the least threshold of a flow rule "+
		"that refuses 0.1 % or less, and the share that it refuses.") + "\n\n")
	heaviest := "the heaviest:"
	if len(s.Heaviest) == 0 {
		heaviest = fmt.Sprintf("none has more than %s of the calls.", portion(1, maxHeavy))
	}
	fmt.Fprintln(&b, c.paint(c.out, bold, roughly(s.Clients)+" clients; "+heaviest))
	for i, k := range s.Heaviest {
		name := k.Client
		if !l.show {
			name = fmt.Sprintf("client %d", i+1)
		}
		fmt.Fprintf(&b, "%s %7s %8s\n", padded(safe(name, 40), 40), figure(k.Calls, 7), portion(k.Calls, s.Calls))
	}
	fmt.Fprintln(&b)
	for _, line := range l.remarks(s.Calls) {
		fmt.Fprintln(&b, line)
	}
	_, err := io.WriteString(c.out, b.String())
	return err
}

func (r routeSurvey) limit() string {
	if r.Limit == 0 {
		return "-"
	}
	return tally(r.Limit)
}

func (r routeSurvey) refuses() string {
	if r.Limit == 0 {
		return "-"
	}
	return portion(r.Refused, r.Calls)
}

// writeReplay writes the outcome of rules.
func (c *command) writeReplay(l *logs, o replayOutcome, set api.RuleSet, f *replayFlags) error {
	report := o.Report
	switch f.format {
	case "json":
		return writeJSON(c.out, jsonReplay(l, o))
	case "csv":
		return replayCSV(c.out, o)
	case "github":
		_, err := io.WriteString(c.out, replayMarkdown(l, o))
		return err
	}
	var b strings.Builder
	fmt.Fprintln(&b, folded(l.heading(report.Offered, report.From, report.To)))
	b.WriteString("\n" + c.paint(c.out, bold, "rule                   offered   passed  refused           waited    p50    p99") + "\n")
	for _, r := range report.Rules {
		p50, p99 := "-", "-"
		if r.Waited > 0 {
			p50, p99 = short(r.WaitP50), short(r.WaitP99)
		}
		fmt.Fprintf(&b, "%s %8s %8s %8s %8s %8s %6s %6s\n", padded(safe(r.Kind+" "+r.ID, 21), 21),
			figure(r.Offered, 8), figure(r.Passed, 8), figure(r.Refused, 8), portion(r.Refused, r.Offered), figure(r.Waited, 8), p50, p99)
	}
	fmt.Fprintln(&b)
	for i, r := range report.Rules {
		for _, line := range sentences(r, report.Clients, l.show) {
			fmt.Fprintln(&b, line)
		}
		if len(o.ranges) > 0 && o.ranges[i].matters(r.Offered) {
			fmt.Fprintf(&b, "  Its refusals depend on the times within seconds: %s.\n", o.ranges[i].text(r.Offered))
		}
	}
	fmt.Fprintf(&b, "Refused: %s of %s calls (%s).\n", grouped(report.Refused), grouped(report.Offered), portion(report.Refused, report.Offered))
	if f.failOver.text != "" {
		verdict := "not more"
		if refusedShare(report) > f.failOver.of {
			verdict = "more"
		}
		fmt.Fprintf(&b, "That is %s than %s.\n", verdict, percent(f.failOver.of))
	}
	fmt.Fprintln(&b)
	if report.Cut > 0 {
		fmt.Fprintf(&b, "%s calls ended early: a million others were running.\n", grouped(report.Cut))
	}
	if len(set.Gateway) > 0 {
		fmt.Fprintln(&b, "Gateway rules apply to calls of their route, but not to groups of paths.")
	}
	for _, line := range l.remarks(report.Offered) {
		fmt.Fprintln(&b, line)
	}
	_, err := io.WriteString(c.out, b.String())
	return err
}

// text returns the range in shares of the calls.
func (r refusedRange) text(offered int64) string {
	return portion(r.Least, offered) + " to " + portion(r.Most, offered)
}

// sentences describe the outcome of a rule in words, or are empty if there is nothing to say.
func sentences(r replay.Rule, clients int64, show bool) (all []string) {
	name := safe(r.Kind+" rule "+r.ID, 40)
	say := func(format string, args ...any) { all = append(all, folded(fmt.Sprintf(format, args...))) }
	add := func(format string, args ...any) {
		all = append(all, "  "+strings.ReplaceAll(folded(fmt.Sprintf(format, args...)), "\n", "\n  "))
	}
	if r.Offered == 0 {
		say("%s applies to no call: is the name of its resource right?", name)
	}
	if r.Refused > 0 {
		mode := ""
		if r.Shadow {
			mode = ", out of shadow mode,"
		}
		say("%s would%s have refused %s of its calls.", name, mode, portion(r.Refused, r.Offered))
		if r.Clients > 0 {
			add("They came from %s of %s clients%s.", roughly(r.Clients), roughly(clients), fewest(r))
		}
		if show && len(r.Top) > 0 {
			var top []string
			for _, k := range r.Top[:min(3, len(r.Top))] {
				top = append(top, fmt.Sprintf("%s (%s)", safe(k.Name, 45), grouped(k.Refused)))
			}
			add("Most came from %s.", strings.Join(top, ", "))
		}
		if !r.Worst.At.IsZero() {
			add("At worst %s of %s calls in the second of %s.", grouped(r.Worst.Refused), grouped(r.Worst.Offered), clockTime(r.Worst.At))
		}
	}
	if r.Opened > 0 {
		add("It opened %s.", count(int(r.Opened), "time"))
	}
	if r.Waited > 0 {
		say("%s would have delayed %s of its calls, by %s at most.", name, portion(r.Waited, r.Offered), short(r.WaitMax))
	}
	return all
}

// fewest describes how few clients had most of the refusals. It is empty if there is no such group.
func fewest(r replay.Rule) string {
	sum := int64(0)
	for i, k := range r.Top {
		sum += k.Refused
		if 10*sum >= 9*r.Refused {
			switch {
			case int64(i+1) == r.Clients:
				return ""
			case i == 0:
				return fmt.Sprintf("; one of them had %s of the refusals", portion(sum, r.Refused))
			}
			return fmt.Sprintf("; %d of them had %s of the refusals", i+1, portion(sum, r.Refused))
		}
	}
	return ""
}

// replayCSV writes the rules as a table for spreadsheets.
func replayCSV(out io.Writer, o replayOutcome) error {
	w := csv.NewWriter(out)
	_ = w.Write([]string{
		"kind", "rule", "resource", "shadow", "offered", "passed", "refused", "waited", "waitP50Seconds", "waitP99Seconds",
		"worstSecond", "worstOffered", "worstRefused", "clients", "opened",
		"refusedLeast", "refusedMost",
	})
	for i, r := range o.Rules {
		span := refusedRange{r.Refused, r.Refused}
		if len(o.ranges) > 0 {
			span = o.ranges[i]
		}
		worst := ""
		if !r.Worst.At.IsZero() {
			worst = r.Worst.At.Format(time.RFC3339)
		}
		_ = w.Write([]string{
			r.Kind, cell(r.ID), cell(r.Resource), strconv.FormatBool(r.Shadow), fmt.Sprint(r.Offered), fmt.Sprint(r.Passed), fmt.Sprint(r.Refused),
			fmt.Sprint(r.Waited), fmt.Sprint(r.WaitP50.Seconds()), fmt.Sprint(r.WaitP99.Seconds()), worst, fmt.Sprint(r.Worst.Offered),
			fmt.Sprint(r.Worst.Refused), fmt.Sprint(r.Clients), fmt.Sprint(r.Opened),
			fmt.Sprint(span.Least), fmt.Sprint(span.Most),
		})
	}
	w.Flush()
	return w.Error()
}

// cell returns a text that no spreadsheet takes for a formula, without control characters.
func cell(text string) string {
	text = harmless(text)
	if text != "" && strings.ContainsRune("=+-@", rune(text[0])) {
		return "'" + text
	}
	return text
}

// replayMarkdown returns the outcome as a table for a pull request.
func replayMarkdown(l *logs, o replayOutcome) string {
	var b strings.Builder
	report := o.Report
	fmt.Fprintf(&b, "%s\n\n", markdown(l.heading(report.Offered, report.From, report.To)))
	b.WriteString("| Rule | Offered | Passed | Refused | Share | Waited | p99 wait | Clients |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for i, r := range report.Rules {
		share := portion(r.Refused, r.Offered)
		if len(o.ranges) > 0 && o.ranges[i].matters(r.Offered) {
			share = o.ranges[i].text(r.Offered)
		}
		name, wait := r.Kind+" "+r.ID, ""
		if r.Shadow {
			name += " (shadow)"
		}
		if r.Waited > 0 {
			wait = short(r.WaitP99)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", markdown(name), grouped(r.Offered), grouped(r.Passed), grouped(r.Refused),
			share, grouped(r.Waited), wait, grouped(r.Clients))
	}
	fmt.Fprintf(&b, "\nRefused: %s of %s calls (%s).\n", grouped(report.Refused), grouped(report.Offered), portion(report.Refused, report.Offered))
	return b.String()
}

// markdown returns a text that stays text in a table of Markdown.
func markdown(text string) string {
	var b strings.Builder
	for _, r := range safe(text, mostShown) {
		switch {
		case r == '&' || r == '<' || r == '>':
			fmt.Fprintf(&b, "&#%d;", r)
		case strings.ContainsRune("\\`*_[]|~#!@", r):
			b.WriteRune('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

type jsonInput struct {
	Lines   int64 `json:"lines"`
	Bad     int64 `json:"badLines"`
	Late    int64 `json:"lateCalls"`
	Coarse  int64 `json:"wholeSecondCalls"`
	Untimed int64 `json:"callsWithoutDuration"`
	Status  struct {
		Limited     int64 `json:"429"`
		Unavailable int64 `json:"503"`
	} `json:"answered"`
}

func jsonInputOf(l *logs) (in jsonInput) {
	in.Bad, in.Lines, _ = l.lines()
	in.Late, in.Coarse, in.Untimed = l.seen.late, l.seen.coarse, l.seen.untimed
	in.Status.Limited, in.Status.Unavailable = l.seen.limited, l.seen.unavailable
	return in
}

type jsonReplayRule struct {
	Kind     string        `json:"kind"`
	ID       string        `json:"id"`
	Resource string        `json:"resource"`
	Shadow   bool          `json:"shadow,omitempty"`
	Offered  int64         `json:"offered"`
	Passed   int64         `json:"passed"`
	Refused  int64         `json:"refused"`
	Range    *refusedRange `json:"refusedRange,omitempty"`
	Waited   int64         `json:"waited"`
	WaitP50  float64       `json:"waitP50Seconds"`
	WaitP99  float64       `json:"waitP99Seconds"`
	WaitMax  float64       `json:"waitMaxSeconds"`
	Worst    *jsonWorst    `json:"worstSecond,omitempty"`
	Clients  int64         `json:"clients"`
	Top      []jsonClient  `json:"mostRefused,omitempty"`
	Opened   int64         `json:"opened,omitempty"`
}

type jsonWorst struct {
	At      time.Time `json:"at"`
	Offered int64     `json:"offered"`
	Refused int64     `json:"refused"`
}

type jsonClient struct {
	Client  string `json:"client"`
	Refused int64  `json:"refused"`
}

func jsonReplay(l *logs, o replayOutcome) any {
	report := o.Report
	rules := make([]jsonReplayRule, 0, len(report.Rules))
	for i, r := range report.Rules {
		j := jsonReplayRule{
			Kind: r.Kind, ID: r.ID, Resource: r.Resource, Shadow: r.Shadow, Offered: r.Offered, Passed: r.Passed, Refused: r.Refused, Waited: r.Waited,
			WaitP50: r.WaitP50.Seconds(), WaitP99: r.WaitP99.Seconds(), WaitMax: r.WaitMax.Seconds(), Clients: r.Clients, Opened: r.Opened,
		}
		if !r.Worst.At.IsZero() {
			j.Worst = &jsonWorst{r.Worst.At, r.Worst.Offered, r.Worst.Refused}
		}
		if len(o.ranges) > 0 {
			j.Range = &o.ranges[i]
		}
		for _, k := range r.Top {
			if !l.show {
				break
			}
			j.Top = append(j.Top, jsonClient{k.Name, k.Refused})
		}
		rules = append(rules, j)
	}
	return struct {
		From    time.Time        `json:"from"`
		To      time.Time        `json:"to"`
		Offered int64            `json:"offered"`
		Passed  int64            `json:"passed"`
		Refused int64            `json:"refused"`
		Waited  int64            `json:"waited"`
		Failed  int64            `json:"failed"`
		Cut     int64            `json:"cut"`
		Clients int64            `json:"clients"`
		Rules   []jsonReplayRule `json:"rules"`
		Input   jsonInput        `json:"input"`
	}{report.From, report.To, report.Offered, report.Passed, report.Refused, report.Waited, report.Failed, report.Cut, report.Clients, rules, jsonInputOf(l)}
}
