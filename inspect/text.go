package inspect

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core"
)

const (
	// labelWidth leaves room for ordinary figures on a line of 80 columns.
	labelWidth = 34
	// nameWidth is what a name gets at least, however deep it stands.
	nameWidth = 12
)

// WriteText writes the tree for people, one node a line, contexts without calls
// left out. A call whose resource has a breaker that isn't closed says so. Below it
// stand what may need attention: calls that wait, slots that panicked, caps that were
// reached, what rules in shadow mode would have refused, the thresholds that go by the
// memory in use, the hottest values of hotspot rules, the limits that adaptive rules have
// learned, breakers that are not closed, and callees that are ejected. It returns the
// first error of w.
func (t Tree) WriteText(w io.Writer) error {
	lines := table{breakers: t.breakerLabels()}
	lines.add(shown(t.Root.Name, labelWidth), nil)
	lines.addBelow(&t.Root, "")
	var out bytes.Buffer
	lines.write(&out)
	t.writeAttention(&out)
	_, err := w.Write(out.Bytes())
	return err
}

func (t Tree) writeAttention(out *bytes.Buffer) {
	var lines []string
	if t.Waiting > 0 {
		lines = append(lines, fmt.Sprintf("waiting calls: %d", t.Waiting))
	}
	if t.Failures > 0 {
		lines = append(lines, fmt.Sprintf("slot panics: %d; each call went on without that slot", t.Failures))
	}
	if t.Leaked > 0 {
		lines = append(lines, fmt.Sprintf("calls that did not exit in time: %d; the log says who made them", t.Leaked))
	}
	for _, c := range []struct {
		name string
		Usage
	}{
		{"resources", t.Caps.Resources},
		{"contexts", t.Caps.Contexts},
		{"call nodes", t.Caps.Calls},
		{"origins", t.Caps.Origins},
	} {
		if c.Overflows > 0 {
			lines = append(lines, fmt.Sprintf("%s: %d of %d; %d times a name found no place and went to (overflow)", c.name, c.Used, c.Cap, c.Overflows))
		}
	}
	for _, r := range t.Rules {
		if r.Mode == core.Shadow {
			lines = append(lines, fmt.Sprintf("shadow rule %s: would have refused %d calls", shown(r.ID, labelWidth), r.Rehearsed))
		}
	}
	for _, r := range t.Rules {
		if r.Threshold > 0 {
			lines = append(lines, fmt.Sprintf("%s rule %s: threshold %s, %s", r.Kind, shown(r.ID, labelWidth), number(r.Threshold), memoryUse(r.Memory)))
		}
	}
	for _, r := range t.Rules {
		if r.Values > 0 && r.Kind != core.KindOutlier {
			lines = append(lines, valuesLine(r))
		}
	}
	for _, r := range t.Rules {
		for _, l := range r.Limits {
			lines = append(lines, limitLine(r, l))
		}
		if line := breakersLine(r, t.At); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(out, "\n%s\n", strings.Join(lines, "\n"))
	}
}

// memoryUse is a share of the memory, or bytes.
func memoryUse(v float64) string {
	switch {
	case v == core.Unknown:
		return "memory not known"
	case v <= 1:
		return "memory " + number(100*v) + " %"
	}
	return "memory " + number(v/(1<<20)) + " MiB"
}

// valuesLine tells of a rule that tells values apart: how many there are, and those that
// are asked for most.
func valuesLine(r core.RuleFigures) string {
	const most = 3
	var b strings.Builder
	fmt.Fprintf(&b, "%s rule %s: %d values", r.Kind, shown(r.ID, labelWidth), r.Values)
	for i, v := range r.Top[:min(len(r.Top), most)] {
		b.WriteString([]string{"; hottest ", ", "}[min(i, 1)])
		fmt.Fprintf(&b, "%s (%d passed, %d refused)", shown(v.Value, labelWidth), v.Passed, v.Refused)
	}
	if r.Overflowed > 0 {
		fmt.Fprintf(&b, "; %d times one found no place and shared a limit", r.Overflowed)
	}
	return b.String()
}

// limitLine tells what a rule has learned of a resource.
func limitLine(r core.RuleFigures, l core.LimitFigures) string {
	line := fmt.Sprintf("%s rule %s: limit of %s is %d", r.Kind, shown(r.ID, labelWidth), shown(l.Resource, labelWidth), l.Limit)
	if l.InForce > 0 {
		line += fmt.Sprintf(", now %d", l.InForce)
	}
	if l.FloorRT > 0 {
		line += "; rt below " + duration(l.FloorRT)
	}
	if l.LimitRT > 0 {
		line += ", above " + duration(l.LimitRT)
	}
	if l.Throughput > 0 {
		line += "; " + number(l.Throughput) + "/s"
	}
	return line
}

// table is lines of a label and figures, to be aligned.
type table struct {
	lines    []line
	widths   []int             // of the label and of each figure
	breakers map[string]string // what to add to calls of a resource
}

type line struct {
	label   string
	figures []string
}

// addBelow adds the children of a node with all below them. guide is what draws
// the lines of the levels above.
func (t *table) addBelow(n *Node, guide string) {
	var children []*Node
	for i := range n.Children {
		if c := &n.Children[i]; c.Kind != KindEntrance || len(c.Children) > 0 {
			children = append(children, c)
		}
	}
	for i, c := range children {
		branch, below := "├─ ", "│  "
		if i == len(children)-1 {
			branch, below = "└─ ", "   "
		}
		room := max(nameWidth, labelWidth-columns(guide+branch))
		figures := c.describe()
		if label := t.breakers[c.Name]; label != "" && c.Kind == KindCall {
			figures = append(figures, label)
		}
		t.add(guide+branch+shown(c.Name, room), figures)
		t.addBelow(c, guide+below)
	}
}

func (t *table) add(label string, figures []string) {
	t.lines = append(t.lines, line{label, figures})
	if figures == nil {
		return
	}
	for i, text := range append([]string{label}, figures...) {
		if i == len(t.widths) {
			t.widths = append(t.widths, 0)
		}
		t.widths[i] = max(t.widths[i], columns(text))
	}
	t.widths[0] = min(t.widths[0], labelWidth) // a line that is deeper stands out
}

func (t *table) write(out *bytes.Buffer) {
	for _, l := range t.lines {
		text := l.label
		for i, figure := range l.figures {
			out.WriteString(text)
			padding := max(0, t.widths[i]-columns(text)) + 2
			out.WriteString(strings.Repeat(" ", padding))
			text = figure
		}
		out.WriteString(text)
		out.WriteByte('\n')
	}
}

// describe is the figures of a line.
func (f *Figures) describe() []string {
	rates := f.Rates()
	rt := "-"
	if f.Second.Exited > 0 {
		rt = duration(f.AvgRT())
	}
	figures := []string{
		"pass " + number(rates.Pass) + "/s",
		"block " + number(rates.Block) + "/s",
		"rt " + rt,
		"in-flight " + strconv.FormatInt(f.InFlight, 10),
	}
	if f.Waiting > 0 {
		figures = append(figures, "waiting "+strconv.FormatInt(f.Waiting, 10))
	}
	return figures
}

// duration is short rather than exact: two digits or more.
func duration(d time.Duration) string {
	if d <= 0 {
		return "0ms" // less than the clock can tell
	}
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		if d >= unit.length {
			return number(float64(d)/float64(unit.length)) + unit.name
		}
	}
	return strconv.FormatInt(int64(d), 10) + "ns"
}

// number is short rather than exact: whole from 10 on, below with one decimal, and
// never 0 for what is more.
func number(v float64) string {
	switch {
	case v > 0 && v < 0.1:
		return strconv.FormatFloat(v, 'g', 1, 64)
	case v < 9.95:
		return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}
