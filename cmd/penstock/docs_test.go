package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/observe/console"
)

var update = flag.Bool("update", false, "write the transcripts of docs/command.md and docs/replay.md anew")

// The pages with transcripts are in another module, so the go command would cache an earlier result
// though one has changed. Their checksums are in this module; package internal/proof/pages compares
// them with the pages.
var transcripts = []string{"command.md", "replay.md"}

func sumOf(text string) string { return fmt.Sprintf("%x\n", sha256.Sum256([]byte(text))) }

var fenced = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")

// The pages show actual output. A block that names a file, such as "yaml rules.yaml", is that file. A
// console block has commands and their output on both streams; they run in order in one folder, in
// which access.log is a day of a shop.
func TestDocs(t *testing.T) {
	shown := make(map[string]bool) // commands
	for _, name := range transcripts {
		t.Run(name, func(t *testing.T) { playPage(t, name, shown) })
	}
	c := &command{streams: streams{env: os.Getenv}}
	for _, cmd := range c.root().Commands() {
		if !cmd.Hidden && cmd.Name() != "help" {
			assert.True(t, shown[cmd.Name()], "a transcript of %s", cmd.Name())
		}
	}
}

func playPage(t *testing.T, name string, shown map[string]bool) {
	path, err := filepath.Abs("../../docs/" + name)
	require.NoError(t, err)
	sumPath, err := filepath.Abs("testdata/" + name + ".sha256")
	require.NoError(t, err)
	text := read(t, path)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("access.log", shopLog(), 0o644))
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

// shopLog is a day of a shop, as nginx logs it with $request_time: calls follow the sun, and at 14:00
// a crawler searches for five minutes.
func shopLog() []byte {
	random := rand.New(rand.NewPCG(1, 6))
	type request struct {
		end  time.Time
		line string
	}
	var all []request
	add := func(at time.Time, ip, method, path string, took time.Duration, status int) {
		end := at.Add(took)
		line := combinedLine(end, ip, method, path, status, fmt.Sprintf(" %.3f", took.Seconds()))
		all = append(all, request{end, line})
	}
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for at := begin; at.Before(begin.Add(24 * time.Hour)); {
		hour := at.Sub(begin).Hours()
		rate := 0.05 + 0.5*math.Pow(math.Sin(hour/24*math.Pi), 2) // a second
		at = at.Add(time.Duration(random.ExpFloat64() / rate * 1e9))
		ip := fmt.Sprint("198.51.100.", int(math.Pow(random.Float64(), 3)*250))
		took := time.Duration(20+random.IntN(300)) * time.Millisecond
		status := 200
		if random.IntN(500) == 0 {
			status = 503
		}
		switch n := random.IntN(100); {
		case n < 40:
			add(at, ip, "GET", fmt.Sprint("/products/", random.IntN(5000)), took, status)
		case n < 60:
			add(at, ip, "GET", "/", took/4, status)
		case n < 75:
			add(at, ip, "GET", fmt.Sprint("/search?q=", random.IntN(1000)), 2*took, status)
		case n < 90:
			add(at, ip, "GET", fmt.Sprint("/static/", random.IntN(9), ".css"), took/10, status)
		case n < 97:
			add(at, ip, "POST", "/cart", took, status)
		default:
			add(at, ip, "POST", "/checkout", 3*took, status)
		}
	}
	for i := range 300 * 8 {
		at := begin.Add(14*time.Hour + time.Duration(i)*time.Second/8)
		add(at, "203.0.113.7", "GET", fmt.Sprint("/search?q=", i), time.Duration(300+random.IntN(600))*time.Millisecond, 200)
	}
	slices.SortStableFunc(all, func(a, b request) int { return a.end.Compare(b.end) })
	var b bytes.Buffer
	for _, r := range all {
		b.WriteString(r.line)
	}
	return b.Bytes()
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
