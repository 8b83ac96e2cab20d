package arch

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// plainWords are phrases that read as translated, and home-made words, with what to write instead.
// CONTRIBUTING explains them.
var plainWords = []struct {
	phrase  *regexp.Regexp
	instead string
}{
	{word(`(is|are|was|were) (what|how|when|where)`), "say it with a noun: \"Timeout is the longest wait\", not \"is how long it waits\""},
	{word(`of which`), "two sentences, or \"whose\""},
	{word(`all (that|of what|there is)`), "\"everything\", or the noun"},
	{word(`by which`), "say who does it"},
	{word(`as far as`), "\"if\", \"where\", or the bound"},
	{word(`those (that|which)`), "the noun: \"rules that\", \"calls that\""},
	{word(`any more`), "\"no longer\""},
	{word(`for good`), "\"permanently\", or what ends it"},
	{word(`mov(es?|ed|ing) up`), "\"advances\""},
	{word(`(un)?told`), "\"reports\", \"is notified\""},
	{word(`heed(s|ed|ing)?`), "\"applies\", \"follows\""},
	{word(`heirs?`), "\"successor\""},
	{word(`foresee(s|n)?`), "\"prepares\""},
	{word(`fleets?`), "\"members\""},
	{word(`tabs?`), "\"table\", \"column\""},
	{word(`said`), "\"declared\", \"configured\", \"reported\""},
	{word(`lack(s|ed|ing)?`), "\"needs\", \"is missing\", \"short of\""},
}

func word(s string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b` + s + `\b`) }

// allowedWords are reviewed exceptions: a file, or a folder that ends in a slash, and a phrase of a
// line in it.
//
//go:embed words.txt
var allowedWords []byte

// Comments, messages and pages are in plain English. A program finds only the phrases above.
func TestPlainWords(t *testing.T) {
	allowed := allowances(t)
	found := 0
	check := func(path string, line int, text string) {
		for _, w := range plainWords {
			phrase := w.phrase.FindString(text)
			if phrase == "" || slices.ContainsFunc(allowed, func(a *allowance) bool { return a.covers(path, text) }) {
				continue
			}
			found++
			t.Errorf("%s:%d: %q in %q: write %s", path, line, phrase, strings.TrimSpace(text), w.instead)
		}
	}
	root := moduleRoot(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		switch {
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go"):
			return proseOf(path, func(line int, text string) { check(name, line, text) })
		case strings.HasSuffix(name, ".md"):
			text, err := os.ReadFile(path)
			for i, line := range strings.Split(string(text), "\n") {
				check(name, i+1, line)
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range allowed {
		if !a.used {
			t.Errorf("words.txt: %q in %s matches nothing: remove it", a.phrase, a.path)
		}
	}
}

// proseOf passes the lines of comments, and string literals outside tests.
func proseOf(path string, line func(number int, text string)) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			for i, text := range strings.Split(c.Text, "\n") {
				line(fset.Position(c.Pos()).Line+i, text)
			}
		}
	}
	if strings.HasSuffix(path, "_test.go") {
		return nil
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			line(fset.Position(lit.Pos()).Line, lit.Value)
		}
		return true
	})
	return nil
}

type allowance struct {
	path, phrase string
	used         bool
}

func (a *allowance) covers(path, text string) bool {
	if path != a.path && !(strings.HasSuffix(a.path, "/") && strings.HasPrefix(path, a.path)) || !strings.Contains(text, a.phrase) {
		return false
	}
	a.used = true
	return true
}

func allowances(t *testing.T) (all []*allowance) {
	lines := bufio.NewScanner(bytes.NewReader(allowedWords))
	for i := 1; lines.Scan(); i++ {
		if text := lines.Text(); text != "" && !strings.HasPrefix(text, "#") {
			path, phrase, ok := strings.Cut(text, ": ")
			if !ok {
				t.Fatal(fmt.Errorf("words.txt:%d: write FILE: PHRASE", i))
			}
			all = append(all, &allowance{path: path, phrase: phrase})
		}
	}
	return all
}
