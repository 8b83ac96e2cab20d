package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/internal/figure"
)

const pageFile = "docs/reliability.md"

// What lies between these two lines of the page is written by -write.
const (
	begin = "<!-- figures: begin, written by go run ./internal/figures -write -->\n"
	end   = "<!-- figures: end -->\n"
)

// keep puts the table and its commands into the page.
func keep(page string, t table) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		return fmt.Errorf("%s: the lines %q and %q must stand around the table", pageFile, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	kept := before + begin + "\n" + kept(t) + "\n" + end + after
	return os.WriteFile(page, []byte(kept), 0o644)
}

func kept(t table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "```text\n%s```\n\nEach line again, by itself:\n\n```\n", t)
	for _, r := range t.results {
		for _, c := range r.commands(t.machine.size) {
			b.WriteString(c + "\n")
		}
	}
	b.WriteString("```\n")
	return b.String()
}

// commands repeat the tests that reported the figures, one each.
func (r result) commands(size string) (commands []string) {
	for _, f := range r.figures {
		test, _, _ := strings.Cut(f.Test, "/")
		words := []string{figure.SizeEnv + "=" + size}
		where := "./" + r.dir
		if len(r.env) > 0 {
			words = append(words, r.env...)
			where = "." // a module that isn't in go.work is entered
		}
		words = append(words, "go", "test", "-count=1", "-v")
		for i := 0; i < len(r.flags); i++ {
			if r.flags[i] == "-run" {
				i++
				continue
			}
			words = append(words, r.flags[i])
		}
		words = append(words, "-run", "'^"+test+"$'", where)
		command := strings.Join(words, " ")
		if where == "." {
			command = "(cd " + r.dir + " && " + command + ")"
		}
		if !slices.Contains(commands, command) {
			commands = append(commands, command)
		}
	}
	return commands
}
