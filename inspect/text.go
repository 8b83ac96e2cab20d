package inspect

import (
	"bufio"
	"io"
	"iter"
	"strconv"

	"github.com/penstock-go/penstock/internal/shown"
)

// nameWidth is what a name gets at least, however deep it stands.
const nameWidth = 12

// WriteText writes the tree for people, one node a line, contexts without calls
// left out. Beside a call stands the most urgent of what rules tell of its resource. Below
// the tree stands what may need attention: calls that wait, slots that panicked, caps that
// were reached, what rules in shadow mode would have refused, and what else rules tell. It
// returns the first error of w.
func (t Tree) WriteText(w io.Writer) error { return t.view().writeText(w) }

func (v view) writeText(w io.Writer) error {
	var t table
	for line := range v.lines {
		t.fit(line)
	}
	out := bufio.NewWriter(w)
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
	text []byte // of all, one after the other
	ends []int
}

// end ends a cell, to whose text so much was appended.
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
			line.end(shown.Append(line.text, n.Name, shown.LabelWidth))
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
			line.end(shown.Append(text, n.Name, max(nameWidth, shown.LabelWidth-shown.Columns(text))))
			n.describe(line)
			if n.Kind == NodeCall {
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
func (f *Figures) describe(line *cells) {
	rates := f.Rates()
	line.end(append(shown.AppendNumber(append(line.text, "pass "...), rates.Pass), "/s"...))
	line.end(append(shown.AppendNumber(append(line.text, "block "...), rates.Block), "/s"...))
	if f.Second.Timed() > 0 {
		line.end(shown.AppendDuration(append(line.text, "rt "...), f.AvgRT()))
	} else {
		line.end(append(line.text, "rt -"...))
	}
	line.end(strconv.AppendInt(append(line.text, "in-flight "...), f.InFlight, 10))
	if f.Waiting > 0 {
		line.end(strconv.AppendInt(append(line.text, "waiting "...), f.Waiting, 10))
	}
}

// table is the widths of columns that lines are aligned in.
type table []int

// fit makes the columns as wide as a line needs that has figures.
func (t *table) fit(line *cells) {
	if len(line.ends) == 1 {
		return
	}
	for i, text := range line.all() {
		if i == len(*t) {
			*t = append(*t, 0)
		}
		(*t)[i] = max((*t)[i], shown.Columns(text))
	}
	(*t)[0] = min((*t)[0], shown.LabelWidth) // a line that is deeper stands out
}

func (t table) write(out *bufio.Writer, line *cells) error {
	for i, text := range line.all() {
		out.Write(text)
		if i+1 < len(line.ends) {
			for range max(0, t[i]-shown.Columns(text)) + 2 {
				out.WriteByte(' ')
			}
		}
	}
	return out.WriteByte('\n')
}
