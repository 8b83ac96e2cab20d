package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/tables"
)

const (
	tableFile   = "internal/proof/figures/figures.md"
	summaryFile = "docs/reliability.md"
)

// keep puts the table and its commands into one page below root, and their summary into the other.
func keep(root string, t table) error {
	if err := tables.Keep(filepath.Join(root, tableFile), "figures", "\n"+kept(t)+"\n"); err != nil {
		return err
	}
	return keepSummary(root, t)
}

func keepSummary(root string, t table) error {
	return tables.Keep(filepath.Join(root, summaryFile), "summary", "\n"+summary(t)+"\n")
}

func kept(t table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "```text\n%s```\n\nEach row again, by itself:\n\n```\n", t)
	for _, r := range t.results {
		for _, c := range r.commands(t.size) {
			b.WriteString(c + "\n")
		}
	}
	b.WriteString("```\n")
	return b.String()
}

// commands returns the commands that repeat the tests that reported the figures, one each.
func (r result) commands(size string) (commands []string) {
	for _, f := range r.figures {
		test, _, _ := strings.Cut(f.Test, "/")
		words := []string{figure.SizeEnv + "=" + size}
		where := "./" + r.dir
		if len(r.env) > 0 {
			words = append(words, r.env...)
			where = "." // the command runs in the folder of a module that isn't in go.work
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
