package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/tables"
)

const width = 80

// table holds the figures of all checks, and the machine.
type table struct {
	machine tables.Machine
	size    string
	results []result
}

func (t table) figures() (n int) {
	for _, r := range t.results {
		n += len(r.figures)
	}
	return n
}

func (t table) missed() (n int) {
	for _, r := range t.results {
		for _, f := range r.figures {
			if !f.Met() {
				n++
			}
		}
	}
	return n
}

// line is one line of the table: its cells except the name, which takes the remaining width.
type line struct {
	name  string
	cells [5]string
	seed  string // on the next line if it is too long for its cell
	miss  bool
}

const longSeed = 10

var head = line{name: "figure", cells: [5]string{"value", "target", "n", "3/n", "seed"}}

func (t table) String() string {
	groups := make([][]line, len(t.results))
	widths := [5]int{}
	fit := func(l line) {
		for i, cell := range l.cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	fit(head)
	for i, r := range t.results {
		for _, f := range r.figures {
			l := lineOf(f)
			fit(l)
			groups[i] = append(groups[i], l)
		}
	}
	rest := 0
	for _, w := range widths {
		rest += w + 2
	}
	name := max(width-rest, 16)

	var b strings.Builder
	fmt.Fprintf(&b, "%vFIGURES=%s\n\n", t.machine, t.size)
	head.write(&b, "", name, widths)
	for i, r := range t.results {
		fmt.Fprintf(&b, "%s\n", r.check)
		for _, l := range groups[i] {
			l.write(&b, "  ", name, widths)
		}
		if len(r.figures) == 0 {
			b.WriteString("  no figure\n")
		}
	}
	return b.String()
}

func lineOf(f figure.Figure) line {
	l := line{name: f.Name, miss: !f.Met()}
	target := "≤ " + number(f.AtMost)
	if f.AtLeast != 0 {
		target = "≥ " + number(f.AtLeast)
	}
	l.cells = [5]string{number(f.Value) + f.Unit, target + f.Unit, grouped(f.N), bound(f), ""}
	if f.Seed != 0 {
		l.seed = strconv.FormatUint(f.Seed, 10)
	}
	if len(l.seed) <= longSeed {
		l.cells[4], l.seed = l.seed, ""
	}
	return l
}

// bound returns the upper bound of the rate, with 95 % confidence, if n trials showed none.
func bound(f figure.Figure) string {
	if f.Value != 0 || f.AtLeast != 0 || f.N == 0 {
		return ""
	}
	return strconv.FormatFloat(3/float64(f.N), 'e', 0, 64)
}

func (l line) write(b *strings.Builder, indent string, name int, widths [5]int) {
	mark := indent
	if l.miss {
		mark = "! "
	}
	names := wrap(l.name, name-len(indent))
	if l.seed != "" && len(names) == 1 {
		names = append(names, "")
	}
	for i, text := range names {
		row := mark + text
		switch {
		case i == 0:
			row += strings.Repeat(" ", max(0, name-utf8.RuneCountInString(row)))
			for k, cell := range l.cells {
				row += strings.Repeat(" ", 2+widths[k]-utf8.RuneCountInString(cell)) + cell
			}
		case i == 1 && l.seed != "":
			row += fmt.Sprintf("%*s", width-utf8.RuneCountInString(row), l.seed)
		}
		b.WriteString(strings.TrimRight(row, " ") + "\n")
		mark = indent + "  "
	}
}

// wrap breaks text into lines of at most most characters; the caller indents all but the first by
// two.
func wrap(text string, most int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > most {
			lines = append(lines, line)
			line = ""
			if len(lines) == 1 {
				most -= 2
			}
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

func number(v float64) string {
	if v == float64(int64(v)) {
		return grouped(int64(v))
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// grouped formats an integer with thousands separators.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := len(digits) - len(strings.TrimLeft(digits, "-"))
	for i := len(digits) - 3; i > sign; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
