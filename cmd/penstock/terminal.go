package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"
)

// streams are what a run of the command has of the world.
type streams struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	now      func() time.Time // for progress only

	transport http.RoundTripper          // how programs are asked; nil is by the network
	pause     func(d time.Duration) bool // waits, or says that it was interrupted; nil is for real
}

// system is what the process has.
func system() streams {
	return streams{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv, now: time.Now}
}

// colorMode is when colors are used.
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

// The colors, as terminals know them.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	bold   = "1"
	faint  = "2"
)

// paint colors a text that goes to w, if colors are to be used there.
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

// terminal reports whether w is one that understands control sequences.
func (c *command) terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || c.env("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// progress is a line on the terminal of the errors that says how far long work is. Where there
// is no terminal it says nothing.
type progress struct {
	c       *command
	what    string
	begun   time.Time
	told    time.Time
	visible bool
}

// Work that is done before progressAfter shows no progress; progressEvery is how often progress is
// redrawn.
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

// at says that so large a share is done.
func (p *progress) at(share float64) {
	if p.begun.IsZero() {
		return
	}
	now := p.c.now()
	if now.Sub(p.begun) < progressAfter || now.Sub(p.told) < progressEvery {
		return
	}
	p.told, p.visible = now, true
	fmt.Fprintf(p.c.err, "\r%s: %3.0f %%", p.what, 100*share)
}

// done removes the line.
func (p *progress) done() {
	if p.visible {
		fmt.Fprint(p.c.err, "\r\x1b[K")
	}
}
