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

// How many columns a name gets: in a line of 80 with ordinary figures, and at least, however deep
// its node is.
const (
	labelWidth = 30
	nameWidth  = 12
)

// WriteText writes the tree for people, one node a line, contexts without calls
// left out. Each line has the units that passed and were refused and the mean response time,
// in the last second (or what api.Config.Interval is, see [Stats.Second]) and in the last
// minute, and the calls in flight. Units are counts and no rates, so none is extrapolated;
// from 100,000 on they are rounded, as in 123k.
//
// Beside a call are the percentiles of its resource's response times in the last minute, in all
// contexts, where api.Config.Percentiles is on, and the most urgent of what rules report of it.
// Below the tree is what may need attention: calls that wait, slots that panicked, caps that were
// reached, which rules refused most, what rules in shadow mode would have refused, and what else
// rules report. It returns the first error of w.
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
	before := "\n" // an empty line above the first
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

// cells are the texts of a line: a label and figures.
type cells struct {
	text []byte // of all, one after another
	ends []int
}

// end ends a cell to whose text this much was appended.
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

// lines yields a line for each node that is shown, good until the next.
func (v view) lines(yield func(*cells) bool) {
	guides := [][]byte{nil, nil} // what draws the lines of the levels above, by depth
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
			}
		}
		if !yield(line) {
			return
		}
	}
}

// describe adds the figures of a line.
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

// headings are above the figures of a line: the root's line has them. Each three are for one span
// of time; the last continues from the "in" above it.
var headings = [...]string{"pass", "block", "rt", "pass", "block", "rt", "flight"}

// table is the widths of columns that lines are aligned in: the name, the figures, and what
// else there is.
type table []int

// fit makes the columns as wide as a line needs that has figures.
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
	(*t)[0] = min((*t)[0], labelWidth) // a line that is deeper stands out
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
