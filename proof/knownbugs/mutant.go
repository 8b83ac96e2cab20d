package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const mutantsDir = "proof/knownbugs/mutants"

// mutant is a patch that puts a mistake into the code. Its file begins with
// comments, then comes the diff:
//
//	# known bug 23
//	# What goes wrong with it.
//	# go test -run '^TestX$' ./stat
//	# attack storms
//
// The last line is there if an attack of package proof/attack finds it as well. The
// command names the tests that must fail, each by its whole name, one or '^(TestX|TestY)$'.
// It may begin with environment variables. It is run as it stands, without a shell.
type mutant struct {
	name string // of the file, without .patch
	file string
	rows []int
	why  string
	// changes are the files that the diff changes.
	changes []string
	attack  string // that finds it, "" if none is known to
	command
}

// short is the name without the row's number.
func (m mutant) short() string {
	_, rest, _ := strings.Cut(m.name, "-")
	return rest
}

// command is a go test command with its environment.
type command struct {
	env  []string
	args []string // without "go"
}

// tests are the names of those that it runs, nil if they are not named in full.
func (c command) tests() []string {
	i := slices.Index(c.args, "-run")
	if i < 0 || i+1 == len(c.args) {
		return nil
	}
	names := inFull.FindStringSubmatch(c.args[i+1])
	if names == nil {
		return nil
	}
	return strings.Split(names[1]+names[2], "|")
}

// packages are the folders of those that it runs tests of.
func (c command) packages() (dirs []string) {
	for _, arg := range c.args {
		if dir, ok := strings.CutPrefix(arg, "./"); ok {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func (c command) String() string {
	words := slices.Concat(c.env, []string{"go"}, c.args)
	for i, w := range words {
		if strings.ContainsAny(w, "^$|*() ") {
			words[i] = "'" + w + "'"
		}
	}
	return strings.Join(words, " ")
}

func readMutants(dir string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m, err := parseMutant(strings.TrimSuffix(filepath.Base(file), ".patch"), string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		m.file = file
		all = append(all, m)
	}
	slices.SortStableFunc(all, func(a, b mutant) int { return a.rows[0] - b.rows[0] })
	return all, nil
}

var (
	attackBy = regexp.MustCompile(`^attack ([a-z]+)$`)
	goTest   = regexp.MustCompile(`^(\w+=\S* )*go test `)
	fileName = regexp.MustCompile(`^(\d+)-[a-z0-9]+(-[a-z0-9]+)*$`)
	inFull   = regexp.MustCompile(`^\^(?:(\w+)|\((\w+(?:\|\w+)+)\))\$$`)
	word     = regexp.MustCompile(`'([^']*)'|(\S+)`)
)

func parseMutant(name, text string) (mutant, error) {
	m := mutant{name: name}
	var why []string
	diff := false
	for line := range strings.Lines(text) {
		rest, comment := strings.CutPrefix(line, "#")
		if diff = diff || !comment; diff {
			if changed, ok := strings.CutPrefix(line, "+++ b/"); ok {
				m.changes = append(m.changes, strings.TrimSpace(changed))
			}
			continue
		}
		rest = strings.TrimSpace(rest)
		switch {
		case strings.HasPrefix(rest, "known bug "):
			numbers, err := numbersIn(rest)
			if err != nil {
				return m, err
			}
			m.rows = append(m.rows, numbers...)
		case goTest.MatchString(rest):
			if m.args != nil {
				return m, errors.New("two go test commands: one patch has one")
			}
			m.command = parseCommand(rest)
		case attackBy.MatchString(rest):
			m.attack = attackBy.FindStringSubmatch(rest)[1]
		default:
			why = append(why, rest)
		}
	}
	m.why = strings.TrimSpace(strings.Join(why, " "))
	number := fileName.FindStringSubmatch(name)
	switch {
	case number == nil:
		return m, errors.New("call the file NN-what-is-wrong.patch, in lower case")
	case len(m.rows) == 0:
		return m, errors.New(`no row: begin with a line "# known bug 23"`)
	case fmt.Sprintf("%02d", m.rows[0]) != number[1]:
		return m, fmt.Errorf("the file name begins with %s, and the first row is %d", number[1], m.rows[0])
	case m.why == "":
		return m, errors.New("say in a # line what goes wrong")
	case m.args == nil:
		return m, errors.New(`no command: add a line "# go test -run '^TestX$' ./pkg"`)
	case m.tests() == nil:
		return m, errors.New(`name the tests that must fail in full: -run '^TestX$'`)
	case len(m.changes) == 0:
		return m, errors.New("no diff below the comments")
	}
	return m, nil
}

func parseCommand(line string) (c command) {
	inGo := false
	for _, m := range word.FindAllStringSubmatch(line, -1) {
		w := m[1] + m[2]
		switch {
		case inGo:
			c.args = append(c.args, w)
		case w == "go":
			inGo = true
		default:
			c.env = append(c.env, w)
		}
	}
	return c
}
