package main

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/observe/console"
)

// screen runs top as on a terminal.
type screen struct {
	top
	t *testing.T
}

func newScreen(t *testing.T, s *served) *screen {
	c := &command{streams: streams{env: func(string) string { return "" }, transport: s}}
	p, err := c.program("")
	require.NoError(t, err)
	sc := &screen{newTop(p, false), t}
	sc.answer(sc.Init())
	return sc
}

// answer makes the program respond.
func (s *screen) answer(cmd tea.Cmd) {
	s.t.Helper()
	if cmd != nil {
		s.send(cmd())
	}
}

func (s *screen) send(msg tea.Msg) tea.Cmd {
	s.t.Helper()
	m, cmd := s.Update(msg)
	s.top = m.(top)
	return cmd
}

// press presses keys, and makes the program respond to the requests.
func (s *screen) press(keys ...string) {
	s.t.Helper()
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp,
		"home": tea.KeyHome, "end": tea.KeyEnd, "backspace": tea.KeyBackspace, "space": tea.KeySpace}
	for _, key := range keys {
		msg := tea.KeyPressMsg{Code: special[key]}
		if msg.Code == 0 {
			msg = tea.KeyPressMsg{Code: []rune(key)[0], Text: key}
		}
		require.Equal(s.t, key, msg.String())
		if cmd := s.send(msg); cmd != nil {
			answer := cmd()
			if f, ok := answer.(frame); ok {
				assert.False(s.t, f.periodic, "a key begins no second round of questions")
			}
			s.send(answer)
		}
	}
}

// text returns the screen, after checking that it fits.
func (s *screen) text() string {
	s.t.Helper()
	text := s.View().Content
	lines := strings.Split(text, "\n")
	assert.Len(s.t, lines, s.height)
	for _, line := range lines {
		assert.LessOrEqual(s.t, ansi.StringWidth(line), s.width, line)
	}
	return text + "\n"
}

// Each view fits a screen of 80 by 24.
func TestTopScreens(t *testing.T) {
	s := newScreen(t, shop(t, console.Config{}))
	golden(t, "top-tree.txt", s.text())
	s.press("t")
	golden(t, "top-list.txt", s.text())
	s.press("enter")
	golden(t, "top-resource.txt", s.text())
	s.press("esc", "?")
	golden(t, "top-help.txt", s.text())
	assert.True(t, s.View().AltScreen)
}

// Refusals name the caller and the value, escaped and within the line.
func TestTopNamesWhoWasRefused(t *testing.T) {
	s := newScreen(t, shop(t, console.Config{}))
	s.press("t", "enter")
	d := s.frame.detail
	require.NotEmpty(t, d.Refusals)
	d.Refusals[0].Origin, d.Refusals[0].Value = "acme\x1b[2J", `"ann"`
	assert.Contains(t, s.text(), `  "ann"  from acme\x1b[2J`)
	d.Refusals[0].Origin, d.Refusals[0].Value, d.Refusals[0].Reason = strings.Repeat("o", 500), strings.Repeat("v", 500), strings.Repeat("r", 500)
	assert.Contains(t, s.text(), "vvv…  from ooo")
}

// The console's response has the caller and the value of refusals.
func TestTopReadsWhoWasRefused(t *testing.T) {
	program := shop(t, console.Config{})
	require.NoError(t, program.LoadRules(api.RuleSet{Hotspot: []hotspot.Rule{{ID: "users", Resource: "GET /search", Param: "user", Threshold: 0}}}))
	program.call(t, 1, "http", "GET /search", "acme", "")
	s := newScreen(t, program)
	s.open = "GET /search"
	s.answer(s.ask(false))
	assert.Contains(t, s.text(), `  "ann"  from acme`)
}

// The tree of a program with very many resources is not requested each second.
func TestTopOfManyResources(t *testing.T) {
	s := newScreen(t, shop(t, console.Config{}))
	require.NotNil(t, s.frame.tree)
	f := s.frame
	f.tree, f.resources.Total = nil, mostInTree+1
	s.send(f)
	assert.Nil(t, s.frame.tree)
	assert.Contains(t, s.text(), "no tree: too many")
	assert.Contains(t, s.text(), "GET /orders")
	f.resources.Total = 5
	s.send(f)
	assert.NotContains(t, s.text(), "too many")
}

// huge is a program with a number of resources, and a list of the requested paths.
type huge struct {
	resources int
	asked     []string
}

func (h *huge) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked = append(h.asked, r.URL.Path)
	w := httptest.NewRecorder()
	fmt.Fprintf(w, `{"total": %d, "resources": []}`, h.resources)
	return w.Result(), nil
}

func TestTopAsksForNoTreeOfManyResources(t *testing.T) {
	for resources, want := range map[int][]string{
		mostInTree:     {"/api/resources", "/api/tree"},
		mostInTree + 1: {"/api/resources"},
	} {
		of := &huge{resources: resources}
		c := &command{streams: streams{env: func(string) string { return "" }, transport: of}}
		p, err := c.program("")
		require.NoError(t, err)
		f, ok := newTop(p, false).Init()().(frame)
		require.True(t, ok)
		require.NoError(t, f.err)
		assert.Equal(t, want, of.asked)
	}
}

func TestTopPercentiles(t *testing.T) {
	s := newScreen(t, shop(t, console.Config{}, withPercentiles))
	golden(t, "top-tree-percentiles.txt", s.text())
	s.press("t", "enter")
	golden(t, "top-resource-percentiles.txt", s.text())
}

func TestTopSortsAndFinds(t *testing.T) {
	s := newScreen(t, shop(t, console.Config{}))
	names := func() string {
		var all []string
		for _, r := range s.rows() {
			all = append(all, r.label)
		}
		return strings.Join(all, ", ")
	}
	assert.Equal(t, "machine-root, http, GET /orders, sql orders.select, GET /search", names())
	s.press("s", "r")
	assert.Equal(t, "machine-root, http, GET /search, GET /orders, sql orders.select", names(), "by name, from the last")
	s.press("r", "t")
	assert.Equal(t, "GET /orders, GET /search, sql orders.select", names())
	s.press("s")
	assert.Equal(t, "GET /orders, GET /search, sql orders.select", names(), "by blocks")
	s.press("s")
	assert.Equal(t, "GET /orders, GET /search, sql orders.select", names(), "by response times")
	s.press("s", "s")
	assert.Equal(t, "GET /orders, sql orders.select, GET /search", names(), "by traffic again")

	s.press("/", "Q", "L", "x", "backspace")
	assert.Contains(t, s.text(), "find: QL")
	assert.Equal(t, "sql orders.select", names())
	s.press("enter", "t")
	assert.Equal(t, "machine-root, http, GET /orders, sql orders.select", names(), "with its ancestors")
	s.press("/", "n", "o", "n", "e", "enter")
	assert.Contains(t, s.text(), "no resource has this name")
	s.press("down", "enter", "esc")
	assert.Contains(t, s.text(), "machine-root")
}

// The selection stays on its row as rows appear and disappear, and the screen follows it.
func TestTopMoves(t *testing.T) {
	program := shop(t, console.Config{})
	for i := range 40 {
		program.call(t, i+1, "http", "many "+string(rune('A'+i)), "", "")
	}
	s := newScreen(t, program)
	s.press("t", "end")
	row, ok := s.chosenRow()
	require.True(t, ok)
	last := row.label
	assert.Contains(t, s.text(), "◂")
	s.press("up", "up", "pgup", "pgup", "pgup", "home", "down", "pgdown", "k", "j")
	row, _ = s.chosenRow()
	assert.Contains(t, s.text(), row.label)
	s.press("end")
	program.call(t, 500, "http", "newest", "", "")
	s.answer(s.Init())
	row, _ = s.chosenRow()
	assert.Equal(t, last, row.label)
	assert.Contains(t, s.text(), last)
	for _, size := range []tea.WindowSizeMsg{{Width: 200, Height: 60}, {Width: 40, Height: 10}, {Width: 1, Height: 1}, {Width: 80, Height: 24}} {
		s.send(size)
		s.text()
		s.press("t")
		s.text()
		s.press("t", "enter")
		s.text()
		s.press("down", "pgdown", "end", "home", "esc")
	}
}

// If a program stops responding, its last data stays visible, and it is asked again each second.
func TestTopTrouble(t *testing.T) {
	s := newScreen(t, shop(t, console.Config{}))
	cmd := s.send(frame{err: errors.New("shop doesn't answer:\n\x1b[2J"), periodic: true})
	assert.NotNil(t, cmd, "the next question")
	assert.Contains(t, s.text(), `shop doesn't answer:\n\x1b[2J; retrying`)
	assert.Contains(t, s.text(), "GET /orders")
	assert.NotNil(t, s.send(tick{}))
	s.answer(s.Init())
	assert.NotContains(t, s.text(), "retrying")

	empty := newScreen(t, serve(t, console.Config{}))
	assert.Contains(t, empty.text(), "machine-root")
	empty.press("t")
	assert.Contains(t, empty.text(), "no calls yet")
	empty.press("down", "enter", "end")

	fresh := &screen{newTop(s.program, false), t}
	assert.Contains(t, fresh.text(), "asking…")
}

// While it is paused, responses change nothing.
func TestTopStandsStill(t *testing.T) {
	program := shop(t, console.Config{})
	s := newScreen(t, program)
	s.press("space")
	before := s.text()
	assert.Contains(t, before, "paused")
	program.call(t, 3, "http", "newest", "", "")
	s.answer(s.Init())
	assert.Equal(t, before, s.text())
	s.press("space")
	s.answer(s.Init())
	assert.Contains(t, s.text(), "newest")
}

func TestTopEnds(t *testing.T) {
	s := newScreen(t, shop(t, console.Config{}))
	_, cmd := s.Update(tea.KeyPressMsg{Code: 'q', Text: "q"})
	assert.Equal(t, tea.QuitMsg{}, cmd())
	_, cmd = s.Update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	assert.Equal(t, tea.QuitMsg{}, cmd())
	s.press("down", "down", "enter")
	require.NotEmpty(t, s.open)
	s.press("q")
	assert.Empty(t, s.open, "back first")
}

// Colors change nothing but the color.
func TestTopColors(t *testing.T) {
	s := newScreen(t, shop(t, console.Config{}))
	s.press("down")
	plain := strings.ReplaceAll(s.text(), "◂", "")
	s.colors = true
	colored := s.text()
	assert.Contains(t, colored, "\x1b[7m")
	for i, line := range strings.Split(ansi.Strip(colored), "\n") {
		assert.Equal(t, strings.TrimRight(strings.Split(plain, "\n")[i], " "), strings.TrimRight(line, " "))
	}
}

// The picture in the documentation shows a screen with colors.
func TestTopPicture(t *testing.T) {
	s := newScreen(t, shop(t, console.Config{}))
	s.press("t", "enter")
	s.colors = true
	golden(t, "top.svg", picture(s.text(), s.width))
}

// picture draws a screen. Each run of one color starts at its position on a terminal.
func picture(screen string, width int) string {
	const across, down, margin = 8.4, 18, 12
	lines := strings.Split(strings.TrimSuffix(screen, "\n"), "\n")
	wide, high := float64(width)*across+2*margin, len(lines)*down+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0[1]f %[2]d" width="%.0[1]f" height="%[2]d" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" fill="#d8dee9">`+"\n", wide, high)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="#1d2230"/>`+"\n")
	styles := map[string]string{red: ` fill="#f07178"`, yellow: ` fill="#ffcb6b"`, bold: ` font-weight="bold"`, faint: ` fill="#7f8aa3"`, inverse: ` fill="#82aaff"`}
	for i, line := range lines {
		at, style := 0, ""
		for piece := range strings.SplitSeq(line, "\x1b[") {
			if code, rest, ok := strings.Cut(piece, "m"); ok && (code == "0" || styles[code] != "") {
				piece, style = rest, styles[code]
			}
			if text := strings.TrimRight(piece, " "); text != "" {
				fmt.Fprintf(&b, `<text x="%.1f" y="%d"%s xml:space="preserve" textLength="%.1f">%s</text>`+"\n",
					margin+float64(at)*across, margin+down*(i+1)-5, style, float64(ansi.StringWidth(text))*across, html.EscapeString(text))
			}
			at += ansi.StringWidth(piece)
		}
	}
	return b.String() + "</svg>\n"
}
