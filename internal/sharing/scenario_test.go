package sharing

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what the scenarios of testdata print")

// Each file in testdata is a transcript of one part of a limit alone, without store, member or
// goroutine. A command is a line; its output is indented below. Time is in milliseconds: a number
// before a command sets the clock. Each random number is the middle of its range.
//
//	go test ./internal/sharing -run TestScenarios -update    rewrites the output
func TestScenarios(t *testing.T) {
	parts := map[string]func(*scenario) script{
		"leases":   leasesScript,
		"demand":   demandScript,
		"round":    roundScript,
		"fallback": fallbackScript,
		"permits":  permitsScript,
		"turns":    turnsScript,
		"tokens":   tokensScript,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name+".txt")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(text), part)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, gots := strings.Split(string(text), "\n"), strings.Split(got, "\n")
			for i := range max(len(want), len(gots)) {
				if i >= len(want) || i >= len(gots) || want[i] != gots[i] {
					t.Fatalf("%s differs from line %d on; it should read\n%s", file, i+1, got)
				}
			}
		})
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) != len(parts) {
		t.Fatalf("%d parts, and the files %v: %v", len(parts), files, err)
	}
}

// script maps the names of a part's commands to functions. Their results are printed; "" prints
// nothing.
type script map[string]func() string

// scenario is a transcript being played: the time, and the current command's arguments.
type scenario struct {
	t    *testing.T
	now  int64
	line string
	args map[string]string
}

// play returns the text with the present output of its commands.
func play(t *testing.T, text string, part func(*scenario) script) string {
	var out strings.Builder
	s := &scenario{t: t}
	commands := part(s)
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); strings.HasPrefix(line, " ") {
			continue // output of an earlier run
		}
		fmt.Fprintln(&out, line)
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		s.line, s.args = line, map[string]string{}
		if at, ok := strings.CutSuffix(words[0], "ms"); ok {
			s.now, words = s.milliseconds(at), words[1:]
		}
		command := commands[words[0]]
		if command == nil {
			t.Fatalf("%q: no such command", line)
		}
		for _, word := range words[1:] {
			if name, value, ok := strings.Cut(word, "="); ok {
				s.args[name] = value
			} else if _, err := strconv.Atoi(word); err == nil {
				s.args["units"] = word
			} else {
				s.args[word] = "1"
			}
		}
		for printed := range strings.Lines(command()) {
			fmt.Fprintf(&out, "      %s\n", strings.TrimRight(printed, "\n"))
		}
		for name := range s.args {
			t.Fatalf("%q: the command has no argument %s", line, name)
		}
	}
	return out.String()
}

// num returns a named argument of the command; the number without a name is units.
func (s *scenario) num(name string, otherwise int64) int64 {
	text, ok := s.args[name]
	if !ok {
		return otherwise
	}
	delete(s.args, name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatalf("%q: %v", s.line, err)
	}
	return n
}

func (s *scenario) units() int64         { return s.num("units", 0) }
func (s *scenario) has(name string) bool { return s.num(name, 0) == 1 }

// at returns an argument that is a time in milliseconds.
func (s *scenario) at(name string, otherwise int64) int64 {
	text, ok := s.args[name]
	if !ok {
		return otherwise
	}
	delete(s.args, name)
	return s.milliseconds(text)
}

func (s *scenario) milliseconds(text string) int64 {
	ms, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatalf("%q: %v", s.line, err)
	}
	return int64(ms * float64(time.Millisecond))
}

// lines joins the non-empty lines that a command prints.
func lines(all ...string) string {
	var b strings.Builder
	for _, line := range all {
		if line != "" {
			fmt.Fprintln(&b, line)
		}
	}
	return b.String()
}

// span truncates a time to microseconds, as in replies and printed output.
func span(at int64) time.Duration { return time.Duration(at).Truncate(time.Microsecond) }
