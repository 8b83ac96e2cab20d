package inspect

import (
	"bufio"
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// The width of a name: in a line of 80 columns with ordinary counts, and at least, regardless of the
// node's depth.
const (
	labelWidth = 30
	nameWidth  = 12
)

// WriteText writes the tree for people, one node per line, without contexts that have no calls. It
// returns the first error of w. Each line has the units passed and refused and the mean response
// time, in the last second (or api.Config.Interval, see [Stats.Second]) and in the last minute, and
// the calls in flight. Units are counts, not rates, so they are not extrapolated; counts of 100,000
// or more are rounded, as in 123k.
//
// Next to a call are the percentiles of its resource's response times in the last minute, over all
// contexts, if api.Config.Percentiles is on, the most urgent report of a rule on it, and what calls
// used of each unit in the last minute, such as tokens, also over all contexts. Below the tree are
// lines that may need attention: waiting calls, panics of slots, full caps, the rules with the most
// refusals, refusals that rules in shadow mode would have made, and other reports of rules.
func (t Tree) WriteText(w io.Writer) error { return t.view().writeText(w) }

func (v view) writeText(w io.Writer) error {
	var t table
	for line := range v.lines {
		t.fit(line)
	}
	out := bufio.NewWriter(w)
	if t != nil {
		t.writeSpans(out, v.head.Root.Interval)
	}
	for line := range v.lines {
		if err := t.write(out, line); err != nil {
			return err
		}
	}
	before := "\n" // an empty line before the first
	for line := range v.head.attention {
		out.WriteString(before)
		out.WriteString(line)
		if err := out.WriteByte('\n'); err != nil {
			return err
		}
		before = ""
	}
	return out.Flush()
}

// cells are the texts of a line: a label and counts.
type cells struct {
	text []byte // of all cells, concatenated
	ends []int
}

// end ends a cell after its text was appended.
func (c *cells) end(text []byte) {
	c.text, c.ends = text, append(c.ends, len(text))
}

func (c *cells) all() iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		begin := 0
		for i, end := range c.ends {
			if !yield(i, c.text[begin:end]) {
				return
			}
			begin = end
		}
	}
}

// lines yields a line for each shown node, valid until the next.
func (v view) lines(yield func(*cells) bool) {
	guides := [][]byte{nil, nil} // tree lines of the levels above, by depth
	line := new(cells)
	for n := range v.calls {
		if n.Kind == NodeEntrance && n.below == 0 {
			continue
		}
		line.text, line.ends = line.text[:0], line.ends[:0]
		if n.depth == 0 {
			line.end(shown.Append(line.text, n.Name, labelWidth))
		} else {
			branch, below := "├─ ", "│  "
			if n.last {
				branch, below = "└─ ", "   "
			}
			if len(guides) < n.depth+2 {
				guides = append(guides, nil)
			}
			guide := guides[n.depth]
			guides[n.depth+1] = append(append(guides[n.depth+1][:0], guide...), below...)
			text := append(append(line.text, guide...), branch...)
			line.end(shown.Append(text, n.Name, max(nameWidth, labelWidth-shown.Columns(text))))
			n.describe(line)
			if n.Kind == NodeCall {
				v.times.describe(line, n.Name)
				if mark := v.details.of(n.Name).mark(); mark != "" {
					line.end(append(line.text, mark...))
				}
				v.units.describe(line, n.Name)
			}
		}
		if !yield(line) {
			return
		}
	}
}

// describe adds the counts of a line.
func (f *Stats) describe(line *cells) {
	for _, c := range [...]*stat.Counts{&f.Second, &f.Minute} {
		line.end(shown.AppendCount(line.text, c.Pass))
		line.end(shown.AppendCount(line.text, c.Block))
		if c.Timed() > 0 {
			line.end(shown.AppendDuration(line.text, c.AvgRT()))
		} else {
			line.end(append(line.text, '-'))
		}
	}
	line.end(shown.AppendCount(line.text, f.InFlight))
	if f.Waiting > 0 {
		line.end(strconv.AppendInt(append(line.text, "waiting "...), f.Waiting, 10))
	}
}

// headings are the titles of the columns, printed in the root's line. Each group of three is for one
// span of time; the last continues the "in" above it.
var headings = [...]string{"pass", "block", "rt", "pass", "block", "rt", "flight"}

// table holds the widths of aligned columns: the name, the counts, and further ones.
type table []int

// fit widens the columns for a line with counts.
func (t *table) fit(line *cells) {
	if len(line.ends) == 1 {
		return
	}
	if *t == nil {
		*t = append(*t, len(node.RootName))
		for _, heading := range headings {
			*t = append(*t, len(heading))
		}
	}
	for i, text := range line.all() {
		if i == len(*t) {
			*t = append(*t, 0)
		}
		(*t)[i] = max((*t)[i], shown.Columns(text))
	}
	(*t)[0] = min((*t)[0], labelWidth) // a deeper line sticks out
}

// writeSpans writes the line above the headings.
func (t table) writeSpans(out *bufio.Writer, interval time.Duration) {
	latest := "last second"
	if interval != time.Second {
		latest = "last " + shown.Duration(interval)
	}
	pad(out, t[0])
	for i, span := range [...]string{latest, "last minute"} {
		of := t[1+3*i:]
		pad(out, 2)
		out.WriteString(span)
		pad(out, of[0]+2+of[1]+2+of[2]-len(span))
	}
	pad(out, t[len(headings)])
	out.WriteString("in\n")
}

func (t table) write(out *bufio.Writer, line *cells) error {
	if len(line.ends) == 1 && t != nil {
		for _, heading := range headings {
			line.end(append(line.text, heading...))
		}
	}
	for i, text := range line.all() {
		if i > 0 {
			pad(out, 2)
		}
		figure := i > 0 && i <= len(headings)
		if figure {
			pad(out, t[i]-shown.Columns(text))
		}
		out.Write(text)
		if !figure && i+1 < len(line.ends) {
			pad(out, t[i]-shown.Columns(text))
		}
	}
	return out.WriteByte('\n')
}

func pad(out *bufio.Writer, columns int) {
	for range columns {
		out.WriteByte(' ')
	}
}
