package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
)

// result is the result of a run of the command.
type result struct {
	code     int
	out, err string
}

// penstock runs the command with some standard input.
func penstock(t *testing.T, in string, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	code := run(args, streams{in: strings.NewReader(in), out: &out, err: &err, env: func(string) string { return "" }, now: time.Now})
	return result{code, out.String(), err.String()}
}

// write writes a file into a new directory and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func parse(t *testing.T, text string) rules.Set {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte(text))
	require.NoError(t, err, text)
	return set
}

// go install accepts only a program without replace directives, and the version of the library it
// requires must exist.
func TestCanBeInstalled(t *testing.T) {
	mod := read(t, "go.mod")
	assert.NotRegexp(t, `(?m)^\s*replace\b`, mod)
	assert.Regexp(t, `(?m)^\tgithub.com/penstock-go/penstock v\d+\.\d+\.\d+$`, mod)
}

func TestColor(t *testing.T) {
	bad := write(t, "rules.yaml", "flow:\n  - {resource: a, treshold: 1}\n")
	assert.NotContains(t, penstock(t, "", "check", bad).out, "\x1b", "no terminal")
	assert.Contains(t, penstock(t, "", "check", "--color", "always", bad).out, "\x1b[31merror\x1b[0m")
	assert.NotContains(t, penstock(t, "", "check", "--color", "never", bad).out, "\x1b")
	r := penstock(t, "", "check", "--color", "red", bad)
	assert.Equal(t, exitErrors, r.code)
	assert.Contains(t, r.err, "use auto, always or never")

	c := command{streams: streams{env: func(string) string { return "" }}, color: auto}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	assert.True(t, c.colored(null), "a character device, as a terminal is")
	c.env = func(name string) string { return map[string]string{"NO_COLOR": "1"}[name] }
	assert.False(t, c.colored(null), "NO_COLOR")
	c.env = func(name string) string { return map[string]string{"TERM": "dumb"}[name] }
	assert.False(t, c.colored(null), "a terminal that knows no colors")
}

// Long work shows its progress after a delay and at intervals, but only on a terminal.
func TestProgress(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	now := start
	c := &command{streams: streams{err: null, env: func(string) string { return "" }, now: func() time.Time { return now }}}
	p := c.progress("playing")
	p.at(0.1)
	assert.False(t, p.visible, "short work shows nothing")
	now = now.Add(progressAfter)
	p.at(0.2)
	assert.True(t, p.visible)
	assert.Equal(t, now, p.drawn)
	now = now.Add(progressEvery / 2)
	p.at(0.3)
	assert.NotEqual(t, now, p.drawn)
	p.done()

	var text bytes.Buffer
	c.err = &text
	p = c.progress("playing")
	now = now.Add(time.Hour)
	p.at(0.5)
	p.done()
	assert.Empty(t, text.String())
}

// Every command reports wrong usage, and where to find help.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"check"}, "check needs files, directories, or - for standard input", exitErrors},
		{[]string{"check", "--dialect", "java", "x"}, `unknown dialect "java": use native, sentinel-java or sentinel-go`, exitErrors},
		{[]string{"check", "--format", "xml", "x"}, `unknown format "xml": use text, json or github`, exitErrors},
		{[]string{"chekc"}, `unknown command "chekc"`, exitErrors},
		{[]string{"diff", "a"}, "diff needs two files or directories", exitTrouble},
		{[]string{"diff", "-", "-"}, "only one of the two can be standard input", exitTrouble},
		{[]string{"diff", "--jsn", "a", "b"}, "unknown flag: --jsn", exitTrouble},
		{[]string{"diff", "a", "b", "c"}, `extra argument "c"`, exitTrouble},
		{[]string{"explain", "GET /orders"}, "explain needs rule files or directories or the address of a program's console, and a resource", exitErrors},
		{[]string{"try", "x"}, "try needs rule files or directories, and a resource", exitErrors},
		{[]string{"try", "x", "y", "--rate", "fast"}, "use calls per time, such as 150/s, 9000/m or 1/10s", exitErrors},
		{[]string{"try", "x", "y", "--rate", "5/w"}, `"w" is not a unit of time`, exitErrors},
		{[]string{"try", "x", "y", "--rate", "1e9/s"}, "10000000000 calls exceed the maximum", exitErrors},
		{[]string{"try", "x", "y", "--errors", "200%"}, "use a share from 0% to 100%", exitErrors},
		{[]string{"try", "x", "y", "--arg", "user"}, "use a name or a number from 0, and a value", exitErrors},
		{[]string{"try", "x", "y", "--arg", "-1=2"}, "arguments are numbered from 0 to 99", exitErrors},
		{[]string{"try", "x", "y", "--for", "-1s"}, "--for is -1s", exitErrors},
		{[]string{"man"}, "man needs one directory", exitErrors},
		{[]string{"fmt", "-w", "-"}, "", exitErrors},
	} {
		r := penstock(t, "flow: []", c.args...)
		assert.Equal(t, c.code, r.code, "%q", c.args)
		assert.Contains(t, r.err, c.want, "%q", c.args)
		assert.Empty(t, r.out, "%q", c.args)
	}
}

func TestHelpFitsATerminal(t *testing.T) {
	c := &command{streams: streams{env: os.Getenv}}
	for _, cmd := range append(c.root().Commands(), c.root()) {
		r := penstock(t, "", append(strings.Fields(cmd.CommandPath())[1:], "--help")...)
		require.Equal(t, exitOK, r.code, r.err)
		for line := range strings.Lines(r.out) {
			assert.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 80, "%s:\n%s", cmd.CommandPath(), line)
		}
	}
}

// The starter file passes all checks, and never overwrites a file.
func TestNew(t *testing.T) {
	t.Chdir(t.TempDir())
	r := penstock(t, "", "new")
	assert.Equal(t, result{exitOK, "rules.yaml written. Edit it, then run: penstock check rules.yaml\n", ""}, r)
	assert.Equal(t, string(starter), read(t, "rules.yaml"))
	assert.Equal(t, exitOK, penstock(t, "", "check", "--strict", "rules.yaml").code)
	assert.Equal(t, result{}, penstock(t, "", "fmt", "--check", "rules.yaml"), "it is formatted")

	require.NoError(t, os.WriteFile("mine.yaml", []byte("mine"), 0o644))
	r = penstock(t, "", "new", "mine.yaml")
	assert.Equal(t, exitErrors, r.code)
	assert.Contains(t, r.err, "mine.yaml exists already")
	assert.Equal(t, "mine", read(t, "mine.yaml"))

	assert.Equal(t, result{exitOK, string(starter), ""}, penstock(t, "", "new", "-"))
}

func TestVersionAndManPages(t *testing.T) {
	assert.Regexp(t, `^penstock \S.*\ngo\S+ \w+/\w+\n$`, penstock(t, "", "version").out)
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600")
	dir := filepath.Join(t.TempDir(), "man1")
	require.Equal(t, exitOK, penstock(t, "", "man", dir).code)
	page := read(t, filepath.Join(dir, "penstock-check.1"))
	assert.Contains(t, page, "Report all mistakes in rule files")
	assert.Contains(t, page, `"Jan 2026"`)
	for _, name := range []string{"penstock.1", "penstock-try.1", "penstock-fmt.1", "penstock-diff.1"} {
		assert.FileExists(t, filepath.Join(dir, name))
	}
}

func TestSchema(t *testing.T) {
	assert.Equal(t, result{exitOK, string(rules.Schema()), ""}, penstock(t, "", "schema"))
	first, _, _ := strings.Cut(string(starter), "\n")
	assert.Equal(t, "# yaml-language-server: $schema="+rules.SchemaURL, first, "the starter names it")
}

// There is a completion script for each shell, and completions for arguments.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		r := penstock(t, "", "completion", shell)
		assert.Equal(t, exitOK, r.code)
		assert.Contains(t, r.out, "penstock", shell)
	}
	file := write(t, "rules.yaml", "flow:\n  - {resource: POST /a, threshold: 1}\n  - {resource: \"*\", threshold: 1}\nisolation:\n  - {resource: GET /b, threshold: 1}\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"try", file, ""}, "GET /b\nPOST /a\n:4\n"},
		{[]string{"check", "--dialect", ""}, "native\nsentinel-java\nsentinel-go\n:4\n"},
		{[]string{"check", "--format", ""}, "text\njson\ngithub\n:4\n"},
		{[]string{"check", ""}, "yaml\nyml\njson\n:8\n"},
		{[]string{"--color", ""}, "auto\nalways\nnever\n:4\n"},
	} {
		assert.Equal(t, c.want, penstock(t, "", append([]string{"__complete"}, c.args...)...).out, "%q", c.args)
	}
}
