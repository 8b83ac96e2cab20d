package report

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Width is the maximum width of a table's line.
const Width = 80

// Table is text in columns. The first column gets the width that the others leave.
type Table struct {
	head []string
	rows []row
}

type row struct {
	cells []string
	note  string // on a separate line below
}

// NewTable returns a table with these column heads.
func NewTable(head ...string) *Table { return &Table{head: head} }

// Row adds a line; a non-empty note stands below it.
func (t *Table) Row(note string, cells ...string) {
	t.rows = append(t.rows, row{cells: cells, note: note})
}

func (t *Table) String() string {
	widths := make([]int, len(t.head))
	fit := func(cells []string) {
		for i, cell := range cells[1:] {
			widths[i+1] = max(widths[i+1], utf8.RuneCountInString(cell))
		}
	}
	fit(t.head)
	for _, r := range t.rows {
		fit(r.cells)
	}
	widths[0] = Width
	for _, w := range widths[1:] {
		widths[0] -= w + 2
	}

	var b strings.Builder
	line := func(indent string, cells []string) {
		names := Wrap(cells[0], widths[0]-len(indent))
		texts := []string{indent, pad(names[0], len(indent)-widths[0])}
		for i, cell := range cells[1:] {
			texts = append(texts, "  ", pad(cell, widths[i+1]))
		}
		b.WriteString(strings.TrimRight(strings.Join(texts, ""), " ") + "\n")
		for _, more := range names[1:] {
			b.WriteString(indent + "  " + more + "\n")
		}
	}
	head := t.head
	if utf8.RuneCountInString(head[0]) > widths[0] {
		b.WriteString(head[0] + "\n")
		head = append([]string{""}, head[1:]...)
	}
	line("", head)
	for _, r := range t.rows {
		line("  ", r.cells)
		if r.note != "" {
			for _, text := range Wrap(r.note, Width-6) {
				b.WriteString("      " + text + "\n")
			}
		}
	}
	return b.String()
}

// pad fills text up with blanks: before it, or after it if width is negative.
func pad(text string, width int) string { return fmt.Sprintf("%*s", width, text) }

// Wrap breaks text into lines of at most most characters.
func Wrap(text string, most int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > most {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// Number formats v with three significant digits.
func Number(v float64) string {
	switch size := math.Abs(v); {
	case math.IsNaN(v):
		return "-"
	case size >= 99.95:
		return grouped(int64(math.Round(v)))
	case size >= 9.995:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// grouped formats an integer with thousands separators.
func grouped(n int64) string {
	digits := fmt.Sprint(n)
	sign := len(digits) - len(strings.TrimLeft(digits, "-"))
	for i := len(digits) - 3; i > sign; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
