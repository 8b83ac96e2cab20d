package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/observe/console"
)

var update = flag.Bool("update", false, "write the transcripts of docs/command.md anew")

// The page is in another module, so the go command would cache an earlier result though it has
// changed. Its checksum is in this module; package internal/proof/pages compares it with the page.
const (
	page    = "../../docs/command.md"
	pageSum = "testdata/command.md.sha256"
)

func sumOf(text string) string { return fmt.Sprintf("%x\n", sha256.Sum256([]byte(text))) }

var fenced = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")

// The page shows actual output. A block that names a file, such as "yaml rules.yaml", is that file. A
// console block has commands and their output on both streams; they run in order in one folder.
func TestDocs(t *testing.T) {
	path, err := filepath.Abs(page)
	require.NoError(t, err)
	sumPath, err := filepath.Abs(pageSum)
	require.NoError(t, err)
	text := read(t, path)
	t.Chdir(t.TempDir())
	shown := make(map[string]bool) // commands
	program := shop(t, console.Config{})
	now := fenced.ReplaceAllStringFunc(text, func(block string) string {
		m := fenced.FindStringSubmatch(block)
		language, name, _ := strings.Cut(m[1], " ")
		switch {
		case name != "":
			require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
			require.NoError(t, os.WriteFile(name, []byte(m[2]), 0o644))
		case language == "console":
			var b strings.Builder
			for line := range strings.Lines(m[2]) {
				command, ok := strings.CutPrefix(line, "$ ")
				if !ok {
					continue
				}
				command = strings.TrimSuffix(command, "\n")
				b.WriteString("$ " + command + "\n" + played(t, command, shown, program))
			}
			return "```" + m[1] + "\n" + b.String() + "```"
		}
		return block
	})
	c := &command{streams: streams{env: os.Getenv}}
	for _, cmd := range c.root().Commands() {
		if !cmd.Hidden && cmd.Name() != "help" {
			assert.True(t, shown[cmd.Name()], "a transcript of %s", cmd.Name())
		}
	}
	for line := range strings.Lines(now) {
		if strings.HasPrefix(line, "$ ") {
			assert.LessOrEqual(t, len(line), 81, line)
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(now), 0o644))
		require.NoError(t, os.WriteFile(sumPath, []byte(sumOf(now)), 0o644))
		return
	}
	var differ []string
	for _, h := range hunks(strings.Split(text, "\n"), strings.Split(now, "\n")) {
		differ = append(append(differ, h.head()), h.lines...)
	}
	assert.Equal(t, read(t, sumPath), sumOf(text), "go test -run TestDocs -update writes it anew")
	assert.Empty(t, strings.Join(differ, "\n"), "go test -run TestDocs -update writes it anew")
}

// played runs a command line of a transcript and returns the text on the terminal. Commands that query
// a program reach one.
func played(t *testing.T, line string, shown map[string]bool, program *served) string {
	t.Helper()
	line, status := strings.CutSuffix(line, "; echo $?")
	line, file, into := strings.Cut(line, " >")
	args := words(line)
	require.NotEmpty(t, args)
	if args[0] == "cat" {
		return read(t, args[1])
	}
	require.Equal(t, "penstock", args[0], line)
	shown[args[1]] = true
	var out, all bytes.Buffer
	std := streams{in: strings.NewReader(""), out: &all, err: &all, env: func(string) string { return "" }, now: time.Now, transport: program}
	if into {
		std.out = &out
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600")
	code := run(args[1:], std)
	if into {
		require.NoError(t, os.WriteFile(file, out.Bytes(), 0o644))
	}
	text := all.String()
	if args[1] == "version" {
		text = "penstock v0.1.0\ngo1.26.0 linux/amd64\n" // of a typical build
	}
	if status {
		return text + strconv.Itoa(code) + "\n"
	}
	assert.Zero(t, code, "%s: a transcript shows an exit code that is not 0:\n%s", line, text)
	return text
}

// words splits a command line, respecting quotes.
func words(line string) (all []string) {
	for _, m := range regexp.MustCompile(`"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		all = append(all, m[1]+m[2])
	}
	return all
}
