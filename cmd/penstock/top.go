package main

import (
	"context"
	"net/url"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
)

func (c *command) top() *cobra.Command {
	return &cobra.Command{
		Use:   "top [URL]",
		Short: "Watch a running program",
		Long: `Top shows the calls of a running program live: a tree or a list, with the calls
passed and refused each second, response times, calls in flight, and the last
minute as bars. Each resource has its own view, with its rules, its callers, and
the latest refusals.

  ↑ ↓ PgUp PgDn   move           t       tree or list
  Enter           the resource   s       sort by traffic, name, blocks, response
  Esc             back                   times or calls in flight
  /               find           r       reverse the order
  Space           pause          q       quit

In the tree, the bars are those of the resource over all contexts.

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
				return err // before the screen is taken over
			}
			program := tea.NewProgram(newTop(p, c.colored(c.out)), tea.WithInput(c.in), tea.WithOutput(c.out))
			_, err = program.Run()
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// frame holds a program's responses at one time.
type frame struct {
	resources resourcesJSON
	tree      *treeJSON   // nil if the list is shown
	detail    *detailJSON // nil unless a resource is shown
	name      string      // of the resource in detail
	err       error
	periodic  bool // the next request follows a second later
}

// top is the state of the screen. Update changes a copy of it, as bubbletea requires, so nothing
// here is shared.
type top struct {
	program *program
	colors  bool

	width, height int
	frame         frame
	troubled      error // the latest error; earlier data stays visible
	paused        bool

	list    bool // the list instead of the tree
	sort    sortKey
	reverse bool
	find    string
	typing  bool
	chosen  string // the key of the selected row
	first   int    // first visible row
	open    string // the resource shown in detail
	scroll  int    // lines scrolled off its top
	help    bool
}

func newTop(p *program, colors bool) top {
	return top{program: p, colors: colors, width: 80, height: 24}
}

// tick triggers the next request.
type tick struct{}

// Init sends the first request.
func (m top) Init() tea.Cmd { return m.ask(true) }

// ask returns the request for the current view. Only a periodic request triggers the next, so there is
// one per second, plus any that keys trigger.
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
		if f.resources, f.err = answer[resourcesJSON](ctx, p, "api/resources", url.Values{"limit": {"10000"}}); f.err == nil && tree && f.resources.Total <= mostInTree {
			f.tree, f.err = pointer(answer[treeJSON](ctx, p, "api/tree", nil))
		}
		return f
	}
}

// mostInTree is the maximum number of resources for requesting the tree each second: for hundreds of
// thousands of resources it would take hundreds of MiB. Beyond it, the list is shown.
const mostInTree = 10_000

func pointer[T any](v T, err error) (*T, error) { return &v, err }

// Update handles a key, a response, or a new size.
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

// take applies a response, unless the screen is paused.
func (m *top) take(f frame) {
	if m.troubled = f.err; f.err != nil || m.paused && !m.frame.resources.At.IsZero() {
		return
	}
	if f.detail != nil {
		if f.name == m.open {
			m.frame.detail, m.frame.name = f.detail, f.name
		}
		return
	}
	f.detail, f.name = m.frame.detail, m.frame.name
	if f.tree == nil && f.resources.Total <= mostInTree {
		f.tree = m.frame.tree
	}
	m.frame = f
}

// typed handles a key while a name is typed.
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
		m.paused = !m.paused
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

// move moves the selection, or scrolls a resource's view.
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
