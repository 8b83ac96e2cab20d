package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
)

func (c *command) top() *cobra.Command {
	return &cobra.Command{
		Use:   "top [URL]",
		Short: "Watch a running program",
		Long: `Top shows the calls of a running program as they come: a tree or a list, with
what passed and was refused each second, response times, calls in flight, and
the last minute as bars. A resource has a view of its own, with its rules, who
calls it, and the last refusals.

  ↑ ↓ PgUp PgDn   move           t       tree or list
  Enter           the resource   s       sort by traffic, name, blocks, response
  Esc             back                   times or calls in flight
  /               find           r       the other way round
  Space           stand still    q       end

In the tree, the bars are those of the resource in all contexts.

URL is the address of the program's console, ` + usualURL + ` unless
given. A token for it is read from the environment: ` + tokenName + `.`,
		Example: `  penstock top
  penstock top http://10.1.7.20:8719`,
		Args: args(0, 1, "one address of a program"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := c.program(strings.Join(args, ""))
			if err != nil {
				return err
			}
			if _, err := p.ask(context.Background(), "api/resources", url.Values{"limit": {"1"}}); err != nil {
				return err // before the screen is taken
			}
			program := tea.NewProgram(newTop(p, c.colored(c.out)), tea.WithInput(c.in), tea.WithOutput(c.out))
			_, err = program.Run()
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// sortKey is what rows are sorted by.
type sortKey int

const (
	byTraffic sortKey = iota
	byName
	byBlocks
	byRT
	byFlight
	sortKeys
)

func (k sortKey) String() string {
	return [...]string{"traffic", "name", "blocks", "rt", "in flight"}[k]
}

// frame is what a program answered at one time.
type frame struct {
	resources resourcesJSON
	tree      *treeJSON   // nil while the list is shown
	detail    *detailJSON // nil while no resource is
	name      string      // of which it is
	err       error
	periodic  bool // another one is to follow a second later
}

// row is a line of the screen: a resource, or a node of the tree.
type row struct {
	key      string // what it is known by while others come and go
	name     string // of the resource, "" of what is none
	label    string
	guide    string // what draws the lines of a tree
	figures  resourceJSON
	overflow bool
}

// top is what is on the screen. Update changes a copy of it, as bubbletea wants it, so nothing
// here is shared.
type top struct {
	program *program
	colors  bool

	width, height int
	frame         frame
	troubled      error // why the last question has no answer; what was there before stays
	still         bool

	list    bool // and no tree
	sort    sortKey
	reverse bool
	find    string
	typing  bool
	chosen  string // the key of the chosen row
	first   int    // row on the screen
	open    string // the resource whose view is open
	scroll  int    // lines of it that are above the screen
	help    bool
}

func newTop(p *program, colors bool) top {
	return top{program: p, colors: colors, width: 80, height: 24}
}

// tick tells that it is time to ask again.
type tick struct{}

// Init asks at once.
func (m top) Init() tea.Cmd { return m.ask(true) }

// ask returns the question for what is shown. Only one that is periodic has others follow it, so
// that there is one a second, and those that keys ask for.
func (m top) ask(periodic bool) tea.Cmd {
	p, tree, open := m.program, !m.list && m.open == "", m.open
	return func() tea.Msg {
		ctx, done := context.WithTimeout(context.Background(), askTimeout)
		defer done()
		f := frame{periodic: periodic}
		if open != "" {
			f.name = open
			f.detail, f.err = pointer(answer[detailJSON](ctx, p, "api/resource", url.Values{"name": {open}}))
			return f
		}
		if f.resources, f.err = answer[resourcesJSON](ctx, p, "api/resources", url.Values{"limit": {"10000"}}); f.err == nil && tree {
			f.tree, f.err = pointer(answer[treeJSON](ctx, p, "api/tree", nil))
		}
		return f
	}
}

func pointer[T any](v T, err error) (*T, error) { return &v, err }

// Update takes what happened: a key, an answer, another size.
func (m top) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(msg.Width, 20), max(msg.Height, 6)
	case tick:
		return m, m.ask(true)
	case frame:
		m.take(msg)
		if !msg.periodic {
			return m, nil
		}
		return m, tea.Tick(watchEvery, func(time.Time) tea.Msg { return tick{} })
	case tea.KeyPressMsg:
		if m.typing {
			return m.typed(msg), nil
		}
		return m.pressed(msg)
	}
	return m, nil
}

// take takes an answer, unless the screen stands still.
func (m *top) take(f frame) {
	if m.troubled = f.err; f.err != nil || m.still && !m.frame.resources.At.IsZero() {
		return
	}
	if f.detail != nil {
		if f.name == m.open {
			m.frame.detail, m.frame.name = f.detail, f.name
		}
		return
	}
	f.detail, f.name = m.frame.detail, m.frame.name
	if f.tree == nil {
		f.tree = m.frame.tree
	}
	m.frame = f
}

// typed takes a key while a name is typed.
func (m top) typed(key tea.KeyPressMsg) top {
	switch key.String() {
	case "enter":
		m.typing = false
	case "esc", "ctrl+c":
		m.typing, m.find = false, ""
	case "backspace":
		if r := []rune(m.find); len(r) > 0 {
			m.find = string(r[:len(r)-1])
		}
	default:
		m.find += key.Text
	}
	m.chosen, m.first = "", 0
	return m
}

func (m top) pressed(key tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch key.String() {
	case "ctrl+c":
		return m, tea.Quit
	case "q":
		if m.open == "" {
			return m, tea.Quit
		}
		m.open = ""
		return m, m.ask(false)
	case "esc", "backspace", "left", "h":
		switch {
		case m.help:
			m.help = false
		case m.open != "":
			m.open = ""
			return m, m.ask(false)
		default:
			m.find = ""
		}
	case "?":
		m.help = !m.help
	case "space":
		m.still = !m.still
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-m.rowsHigh())
	case "pgdown":
		m.move(m.rowsHigh())
	case "home", "g":
		m.move(-1 << 30)
	case "end", "G", "shift+g":
		m.move(1 << 30)
	}
	if m.open != "" {
		return m, nil
	}
	switch key.String() {
	case "t":
		m.list, m.first = !m.list, 0
		return m, m.ask(false)
	case "s":
		m.sort = (m.sort + 1) % sortKeys
	case "r":
		m.reverse = !m.reverse
	case "/":
		m.typing, m.find = true, ""
	case "enter", "right", "l":
		if r, ok := m.chosenRow(); ok && r.name != "" {
			m.open, m.scroll = r.name, 0
			if m.frame.name != r.name {
				m.frame.detail = nil
			}
			return m, m.ask(false)
		}
	}
	return m, nil
}

// move moves the choice, or what is to be seen of a resource.
func (m *top) move(by int) {
	if m.open != "" {
		m.scroll = max(0, min(m.scroll+by, len(m.detailLines())-m.rowsHigh()))
		return
	}
	rows := m.rows()
	if len(rows) == 0 {
		return
	}
	at := max(0, min(m.indexOf(rows)+by, len(rows)-1))
	m.chosen = rows[at].key
	m.first = max(min(m.first, at), at-m.rowsHigh()+1, 0)
}

func (m top) indexOf(rows []row) int {
	for i := range rows {
		if rows[i].key == m.chosen {
			return i
		}
	}
	return 0
}

func (m top) chosenRow() (row, bool) {
	rows := m.rows()
	if len(rows) == 0 {
		return row{}, false
	}
	return rows[m.indexOf(rows)], true
}

// rowsHigh is how many rows there is room for.
func (m top) rowsHigh() int { return max(1, m.height-4) }

// rows are the rows that are to be seen, if there is room.
func (m top) rows() []row {
	if m.list || m.frame.tree == nil {
		return m.listRows()
	}
	byName := make(map[string]*resourceJSON, len(m.frame.resources.Resources))
	for i := range m.frame.resources.Resources {
		r := &m.frame.resources.Resources[i]
		byName[r.Name] = r
	}
	return m.treeRows(nil, &m.frame.tree.Root, "", "", "", byName)
}

func (m top) listRows() (rows []row) {
	for _, r := range m.frame.resources.Resources {
		if m.found(r.Name) {
			rows = append(rows, row{key: r.Name, name: r.Name, label: r.Name, figures: r, overflow: r.Overflow})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return m.compare(&a.figures, &b.figures) })
	return rows
}

func (m top) found(name string) bool {
	return m.find == "" || strings.Contains(strings.ToLower(name), strings.ToLower(m.find))
}

// compare compares by the sort key: the most first, but names from the first.
func (m top) compare(a, b *resourceJSON) int {
	c := 0
	switch m.sort {
	case byTraffic:
		c = cmp.Compare(b.Minute.Pass+b.Minute.Block, a.Minute.Pass+a.Minute.Block)
	case byBlocks:
		c = cmp.Compare(b.Minute.Block, a.Minute.Block)
	case byRT:
		c = cmp.Compare(b.Minute.AvgRTMs, a.Minute.AvgRTMs)
	case byFlight:
		c = cmp.Compare(b.InFlight, a.InFlight)
	}
	if c = cmp.Or(c, strings.Compare(a.Name, b.Name)); m.reverse {
		return -c
	}
	return c
}

// treeRows appends a node and those below it. Where a name is looked for, only nodes that are called so
// are there, and those above them.
func (m top) treeRows(rows []row, n *nodeJSON, above, guide, below string, resources map[string]*resourceJSON) []row {
	r := row{key: fmt.Sprintf("%s\x00%s %v", above, n.Name, n.Overflow), label: n.Name, guide: guide, overflow: n.Overflow, figures: figuresOfNode(n)}
	if n.Kind.String() == "call" {
		r.name = n.Name
		if res := resources[n.Name]; res != nil {
			r.figures.History, r.figures.Marks = res.History, res.Marks
			r.figures.Minute.percentilesJSON = res.Minute.percentilesJSON
		}
	}
	own := len(rows)
	rows = append(rows, r)
	children := slices.Clone(n.Children)
	children = slices.DeleteFunc(children, func(c nodeJSON) bool { return c.Kind.String() == "entrance" && len(c.Children) == 0 })
	slices.SortStableFunc(children, func(a, b nodeJSON) int {
		x, y := figuresOfNode(&a), figuresOfNode(&b)
		return m.compare(&x, &y)
	})
	for i := range children {
		branch, next := "├─ ", "│  "
		if i == len(children)-1 {
			branch, next = "└─ ", "   "
		}
		rows = m.treeRows(rows, &children[i], r.key, below+branch, below+next, resources)
	}
	if len(rows) == own+1 && m.find != "" && !m.found(n.Name) {
		rows = rows[:own]
	}
	return rows
}

func figuresOfNode(n *nodeJSON) resourceJSON {
	of := func(c countsJSON) figuresJSON {
		f := figuresJSON{Pass: c.Pass, Block: c.Block, Complete: c.Complete, Exception: c.Exception}
		if timed := c.Exited - c.LongLived; timed > 0 {
			f.AvgRTMs = c.RTMs / float64(timed)
		}
		return f
	}
	return resourceJSON{Name: n.Name, Overflow: n.Overflow, InFlight: n.InFlight, Waiting: n.Waiting, LastSecond: of(n.LastSecond), Minute: of(n.Minute)}
}

// View draws the screen: a line of what it is about, the heads of the columns, the rows, and a line of
// keys.
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
r               the other way round
Space           stand still
q               end

pass/s and blk/s are units of the last second that is over, rt is the mean of
the last minute, in is calls in flight, and the bars are all that asked in the
last minute; in the tree, those of the resource in all contexts. Where the
program counts percentiles, p95 is what 95 of 100 calls of the resource took at
most, in the last minute and all contexts.
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
	if t := m.frame.tree; t != nil && t.Waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting", t.Waiting))
	}
	if m.still {
		parts = append(parts, "standing still")
	}
	return strings.Join(parts, " · ")
}

func (m top) foot() string {
	switch {
	case m.typing:
		return m.line("find: " + safe(m.find, m.width-8) + "▏")
	case m.troubled != nil:
		return m.paint(red, m.line(safe(m.troubled.Error(), m.width-16)+"; trying on"))
	case m.open != "":
		return m.paint(faint, m.line("Esc back  ↑↓ move  Space stand still  q back"))
	}
	order := m.sort.String()
	if m.reverse {
		order += ", reversed"
	}
	keys := "Enter view  t tree/list  s sort: " + order + "  / find"
	if m.find != "" {
		keys += ": " + safe(m.find, 20)
	}
	return m.paint(faint, m.line(keys+"  ? help  q end"))
}

// body is the heads of the columns and the rows.
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
			return append(lines, "no resource is called so")
		}
		return append(lines, "no call has come yet")
	}
	chosen := m.indexOf(rows)
	first := max(0, min(m.first, len(rows)-1, chosen))
	first = max(first, chosen-m.rowsHigh()+1)
	for i := first; i < min(len(rows), first+m.rowsHigh()); i++ {
		lines = append(lines, m.row(&rows[i], i == chosen, name, width))
	}
	return lines
}

// columns are the widths of names and of bars.
func (m top) columns() (name, sparks int) {
	figures := 31 // columns of them, with the blanks between, and the mark of the choice
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

// detailLines is the view of a resource.
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
	lines = append(lines, m.line(text), "")
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
			lines = append(lines, m.line(r.Last.UTC().Format("15:04:05")+"  "+safe(r.Reason, m.width-20)+times))
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

// line is a text on one line of the screen.
func (m top) line(text string) string {
	return strings.TrimRight(ansi.Truncate(text, m.width, "…"), " ")
}
