package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// View draws the screen: a title line, the column heads, the rows, and a line of keys.
func (m top) View() tea.View {
	v := tea.NewView(m.text())
	v.AltScreen = true
	v.WindowTitle = "penstock top"
	return v
}

func (m top) text() string {
	var lines []string
	lines = append(lines, m.paint(bold, m.line(m.title())), "")
	switch {
	case m.help:
		lines = append(lines, strings.Split(strings.TrimSpace(helpText), "\n")...)
	case m.open != "":
		all := m.detailLines()
		from := max(0, min(m.scroll, len(all)-m.rowsHigh()))
		lines = append(lines[:1], all[from:min(len(all), from+m.height-2)]...)
	default:
		lines = append(lines, m.body()...)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines[:m.height-1], m.foot())
	return strings.Join(lines, "\n")
}

const helpText = `
↑ ↓ PgUp PgDn   move
Enter           the view of a resource
Esc             back
/               find a name
t               tree or list
s               sort by traffic, name, blocks, response times, calls in flight
r               reverse the order
Space           pause
q               quit

pass/s and blk/s are units of the last complete second, rt is the mean of the
last minute, in is calls in flight, and the bars are all calls of the last
minute; in the tree, those of the resource over all contexts. If the program has
percentiles on, p95 is the 95th percentile of the resource's response times over
the last minute and all contexts.
`

func (m top) title() string {
	at := m.frame.resources.At
	if m.open != "" && m.frame.detail != nil {
		at = m.frame.detail.At
	}
	parts := []string{"penstock top", safe(m.program.at.Host, 40)}
	if !at.IsZero() {
		parts = append(parts, at.UTC().Format("15:04:05"))
	}
	if n := m.frame.resources.Total; n > 0 {
		parts = append(parts, plural(n, "resource"))
	}
	if !m.list && m.frame.resources.Total > mostInTree {
		parts = append(parts, "no tree: too many")
	}
	if t := m.frame.tree; t != nil && t.Waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting", t.Waiting))
	}
	if m.paused {
		parts = append(parts, "paused")
	}
	return strings.Join(parts, " · ")
}

func (m top) foot() string {
	switch {
	case m.typing:
		return m.line("find: " + safe(m.find, m.width-8) + "▏")
	case m.troubled != nil:
		return m.paint(red, m.line(safe(m.troubled.Error(), m.width-16)+"; retrying"))
	case m.open != "":
		return m.paint(faint, m.line("Esc back  ↑↓ move  Space pause  q back"))
	}
	order := m.sort.String()
	if m.reverse {
		order += ", reversed"
	}
	keys := "Enter view  t tree/list  s sort: " + order + "  / find"
	if m.find != "" {
		keys += ": " + safe(m.find, 20)
	}
	return m.paint(faint, m.line(keys+"  ? help  q quit"))
}

// body returns the column heads and the rows.
func (m top) body() []string {
	if m.frame.resources.At.IsZero() {
		return []string{"asking…"}
	}
	name, width := m.columns()
	times := fmt.Sprintf("%7s", "rt")
	if m.frame.resources.Percentiles {
		times += fmt.Sprintf(" %6s", "p95")
	}
	heads := padded("resource", name) + fmt.Sprintf(" %6s %6s %s %5s  ", "pass/s", "blk/s", times, "in") + "last minute"
	lines := []string{m.paint(faint, m.line(heads))}
	rows := m.rows()
	if len(rows) == 0 {
		if m.find != "" {
			return append(lines, "no resource has this name")
		}
		return append(lines, "no calls yet")
	}
	chosen := m.indexOf(rows)
	first := max(0, min(m.first, len(rows)-1, chosen))
	first = max(first, chosen-m.rowsHigh()+1)
	for i := first; i < min(len(rows), first+m.rowsHigh()); i++ {
		lines = append(lines, m.row(&rows[i], i == chosen, name, width))
	}
	return lines
}

// columns returns the widths of names and of bars.
func (m top) columns() (name, sparks int) {
	figures := 31 // columns of counts, including blanks and the selection mark
	if m.frame.resources.Percentiles {
		figures += 7
	}
	room := max(20, m.width-figures)
	name = max(14, room*3/5)
	return name, max(0, m.width-figures-name)
}

func (m top) row(r *row, chosen bool, name, width int) string {
	f := &r.figures
	label := r.guide + safe(r.label, max(1, name-ansi.StringWidth(r.guide)))
	if ansi.StringWidth(label) > name {
		label = ansi.Truncate(label, name, "…")
	}
	block := fmt.Sprintf("%6s", tally(f.LastSecond.Block))
	tail := sparks(asked(f.History), width)
	if len(f.Marks) > 0 {
		tail = safe(f.Marks[0], width)
	}
	text := padded(label, name) + fmt.Sprintf(" %6s ", tally(f.LastSecond.Pass))
	times := fmt.Sprintf("%7s", millis(f.Minute.AvgRTMs, f.Minute.Complete))
	if m.frame.resources.Percentiles {
		times += fmt.Sprintf(" %6s", percentile(f.Minute.P95Ms))
	}
	rest := fmt.Sprintf(" %s %5s  ", times, tally(f.InFlight)) + tail
	if chosen {
		if !m.colors {
			return m.line(padded(text+block+rest, m.width-1) + "◂")
		}
		return m.paint(inverse, m.line(padded(text+block+rest, m.width)))
	}
	if f.LastSecond.Block > 0 {
		block = m.paint(red, block)
	}
	if len(f.Marks) > 0 {
		return m.line(text + block + m.paint(yellow, rest))
	}
	return m.line(text + block + rest)
}

// detailLines returns the view of a resource.
func (m top) detailLines() []string {
	d := m.frame.detail
	if d == nil || m.frame.name != m.open {
		return []string{"", safe(m.open, m.width), "asking…"}
	}
	lines := []string{m.paint(bold, m.line(safe(d.Name, m.width))), ""}
	width := min(60, m.width-20)
	chart := func(name string, values []float64, now string) {
		lines = append(lines, m.line(padded(name, 8)+padded(sparks(values, width), width)+"  "+now))
	}
	chart("passed", floats(d.History.Pass), tally(d.LastSecond.Pass)+"/s")
	chart("blocked", floats(d.History.Block), tally(d.LastSecond.Block)+"/s")
	chart("rt", d.History.RTMs, millis(d.Minute.AvgRTMs, d.Minute.Complete))
	if d.Minute.P50Ms != nil {
		lines = append(lines, m.line(fmt.Sprintf("        p50 %s, p95 %s, p99 %s", percentile(d.Minute.P50Ms), percentile(d.Minute.P95Ms), percentile(d.Minute.P99Ms))))
	}
	text := fmt.Sprintf("last minute: %s passed, %s blocked, %s failed · in flight: %s", tally(d.Minute.Pass), tally(d.Minute.Block), tally(d.Minute.Exception), tally(d.InFlight))
	if d.Waiting > 0 {
		text += ", waiting: " + tally(d.Waiting)
	}
	if d.Limit != nil {
		text += fmt.Sprintf(" · limit: %.4g/s", *d.Limit)
	}
	lines = append(lines, m.line(text))
	for _, u := range d.Units {
		lines = append(lines, m.line(safe(u.String(), m.width)))
	}
	lines = append(lines, "")
	part := func(title string, n int) bool {
		if n > 0 {
			lines = append(lines, m.paint(faint, m.line(title)))
		}
		return n > 0
	}
	if part(fmt.Sprintf("%-10s %s %8s %8s  %s", "kind", padded("rule", 32), "refused", "shadow", "full"), len(d.Rules)) {
		for _, r := range d.Rules {
			lines = append(lines, m.line(ruleLine(r)))
		}
		lines = append(lines, "")
	}
	if part(padded("caller", 36)+fmt.Sprintf("%8s %8s %8s %6s", "pass/m", "block/m", "rt", "in"), len(d.Origins)) {
		for _, o := range d.Origins {
			lines = append(lines, m.line(padded(safe(o.Name, 35), 36)+fmt.Sprintf("%8s %8s %8s %6s",
				tally(o.Minute.Pass), tally(o.Minute.Block), millis(o.Minute.AvgRTMs, o.Minute.Complete), tally(o.InFlight))))
		}
		lines = append(lines, "")
	}
	if part(padded("value", 36)+fmt.Sprintf("%8s %8s  full", "passed", "refused"), len(d.HotValues)) {
		for _, v := range d.HotValues {
			line := padded(safe(v.Value, 35), 36) + fmt.Sprintf("%8s %8s", tally(v.Passed), tally(v.Refused))
			if v.Full != nil {
				line += "  " + fullness(*v.Full)
			}
			lines = append(lines, m.line(line))
		}
		lines = append(lines, "")
	}
	if part("the last refusals", len(d.Refusals)) {
		for _, r := range d.Refusals {
			times := ""
			if r.Count > 1 {
				times = fmt.Sprintf("  ×%s", tally(r.Count))
			}
			who := ""
			if r.Value != "" {
				who += "  " + safe(r.Value, 24)
			}
			if r.Origin != "" {
				who += "  from " + safe(r.Origin, 24)
			}
			reason := safe(r.Reason, max(20, m.width-12-utf8.RuneCountInString(times+who)))
			lines = append(lines, m.line(r.Last.UTC().Format("15:04:05")+"  "+reason+who+times))
		}
	}
	return lines
}

const inverse = "7"

func (m top) paint(color, text string) string {
	if !m.colors || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// line returns a text as one line of the screen.
func (m top) line(text string) string {
	return strings.TrimRight(ansi.Truncate(text, m.width, "…"), " ")
}
