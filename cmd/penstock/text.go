package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// lines returns a multi-line text without control sequences.
func lines(text string) string {
	var all []string
	for line := range strings.Lines(text) {
		all = append(all, safe(strings.TrimSuffix(line, "\n"), mostShown)+"\n")
	}
	return strings.Join(all, "")
}

// safe makes a program's text safe for a terminal: one line, at most width wide, without control
// sequences.
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

// padded returns a safe text padded to width.
func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// tally formats a number in at most five columns.
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

// millis formats a mean response time of a number of calls.
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

// asked returns the total of each second.
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

// sparks draws values as bars, the newest last. The highest value fills the line. If there are more
// values than bars, a bar shows the highest of several values.
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

// plural formats a number of things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
