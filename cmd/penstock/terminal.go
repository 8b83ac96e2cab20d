package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"
)

// streams is the environment of a run of the command.
type streams struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	now      func() time.Time // for progress only

	transport http.RoundTripper          // connects to programs; nil means the network
	pause     func(d time.Duration) bool // waits, or returns false if interrupted; nil means a real wait
}

// system returns the environment of the process.
func system() streams {
	return streams{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv, now: time.Now}
}

// colorMode selects when to use colors.
type colorMode string

const (
	auto   colorMode = "auto" // on a terminal, unless NO_COLOR is set
	always colorMode = "always"
	never  colorMode = "never"
)

var colorNames = []string{string(auto), string(always), string(never)}

func (m *colorMode) String() string { return string(*m) }
func (m *colorMode) Type() string   { return "when" }

func (m *colorMode) Set(s string) error {
	if !slices.Contains(colorNames, s) {
		return fmt.Errorf("use auto, always or never")
	}
	*m = colorMode(s)
	return nil
}

// The terminal codes of the colors.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	bold   = "1"
	faint  = "2"
)

// paint colors a text for w, if colors are in use there.
func (c *command) paint(w io.Writer, color, text string) string {
	if !c.colored(w) || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

func (c *command) colored(w io.Writer) bool {
	switch c.color {
	case always:
		return true
	case never:
		return false
	}
	return c.env("NO_COLOR") == "" && c.terminal(w)
}

// terminal reports whether w understands control sequences.
func (c *command) terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || c.env("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// progress is a line on standard error with the progress of long work. It prints nothing if that is
// not a terminal.
type progress struct {
	c       *command
	what    string
	begun   time.Time
	drawn   time.Time
	visible bool
}

// Work shorter than progressAfter shows no progress; progressEvery is the interval of updates.
const (
	progressAfter = 500 * time.Millisecond
	progressEvery = 100 * time.Millisecond
)

func (c *command) progress(what string) *progress {
	p := &progress{c: c, what: what}
	if c.terminal(c.err) {
		p.begun = c.now()
	}
	return p
}

// at reports the completed share.
func (p *progress) at(share float64) {
	if p.begun.IsZero() {
		return
	}
	now := p.c.now()
	if now.Sub(p.begun) < progressAfter || now.Sub(p.drawn) < progressEvery {
		return
	}
	p.drawn, p.visible = now, true
	fmt.Fprintf(p.c.err, "\r%s: %3.0f %%", p.what, 100*share)
}

// done removes the line.
func (p *progress) done() {
	if p.visible {
		fmt.Fprint(p.c.err, "\r\x1b[K")
	}
}
