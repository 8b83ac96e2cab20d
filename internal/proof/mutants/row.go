package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// row is a mutant: a mistake that breaks an invariant, and the test that must then fail.
type row struct {
	invariant   string
	declaration string // function, method or type, after its package's folder: "stat.Window.TryAdd"
	old, new    string // the tokens of old occur once in the declaration; new replaces them
	test        string // command that runs one test of one package
	hangs       bool   // a timeout kills the mutant too
}

// String returns the text that -run matches.
func (r row) String() string { return r.declaration + ": " + r.invariant }

var testCommand = regexp.MustCompile(`^go test (?:-tags \w+ |-timeout \w+ |-short )*-run \^(Test\w+)\$ \./(\S+)$`)

// testName returns the test of the row's command and the folder of its package.
func (r row) testName() (test, folder string) {
	m := testCommand.FindStringSubmatch(r.test)
	if m == nil {
		return "", ""
	}
	return m[1], m[2]
}

// apply returns the file that a row changes and its text after the change.
func (r row) apply(root fs.FS) (name, text string, err error) {
	at := strings.LastIndex(r.declaration, "/") + 1
	folder, declared, ok := strings.Cut(r.declaration[at:], ".")
	if !ok {
		return "", "", errors.New(`the declaration is not of the form "stat.Window.TryAdd"`)
	}
	files, err := fs.Glob(root, r.declaration[:at]+folder+"/*.go")
	if err != nil {
		return "", "", err
	}
	for _, file := range files {
		src, err := fs.ReadFile(root, file)
		if err != nil {
			return "", "", err
		}
		if strings.HasSuffix(file, "_test.go") || !bytes.Contains(src, []byte(declared[strings.Index(declared, ".")+1:])) {
			continue
		}
		fset := token.NewFileSet()
		syntax, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
		if err != nil {
			return "", "", err
		}
		node := declaration(syntax, declared)
		switch {
		case node == nil:
			continue
		case name != "":
			return "", "", fmt.Errorf("%s and %s both declare it", name, file)
		}
		name = file
		from, to := fset.Position(node.Pos()).Offset, fset.Position(node.End()).Offset
		changed, err := replace(string(src[from:to]), r.old, r.new)
		if err != nil {
			return "", "", err
		}
		text = string(src[:from]) + changed + string(src[to:])
	}
	if name == "" {
		return "", "", errors.New("no such declaration")
	}
	_, err = parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	return name, text, err
}

// declaration finds a function "F", a method "T.M" or a type "T".
func declaration(file *ast.File, name string) ast.Node {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			of := ""
			if d.Recv != nil { // "*T[P]" in full
				of, _, _ = strings.Cut(strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*"), "[")
				of += "."
			}
			if of+d.Name.Name == name {
				return d
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if t, ok := s.(*ast.TypeSpec); ok && t.Name.Name == name {
					return t
				}
			}
		}
	}
	return nil
}

// replace puts changed in place of the only occurrence of old's tokens in text.
func replace(text, old, changed string) (string, error) {
	all, err := tokens(text)
	if err != nil {
		return "", err
	}
	want, err := tokens(old)
	if err != nil {
		return "", fmt.Errorf("old: %w", err)
	}
	with, err := tokens(changed)
	if err != nil {
		return "", fmt.Errorf("new: %w", err)
	}
	same := func(a, b lexeme) bool { return a.text == b.text }
	switch {
	case len(want) == 0:
		return "", errors.New("old is empty")
	case slices.EqualFunc(want, with, same):
		return "", errors.New("new is the same as old")
	}
	var at []int
	for i := 0; i+len(want) <= len(all); i++ {
		if slices.EqualFunc(all[i:i+len(want)], want, same) {
			at = append(at, i)
		}
	}
	if len(at) != 1 {
		return "", fmt.Errorf("old occurs %d times in the declaration, not once", len(at))
	}
	return text[:all[at[0]].from] + changed + text[all[at[0]+len(want)-1].to:], nil
}

type lexeme struct {
	text     string
	from, to int
}

// tokens splits code. Two texts that gofmt would format alike have equal tokens: the end of a line
// becomes the semicolon that it implies, except before a closing bracket and at the end.
func tokens(code string) (all []lexeme, err error) {
	file := token.NewFileSet().AddFile("", -1, len(code))
	var s scanner.Scanner
	s.Init(file, []byte(code), func(_ token.Position, problem string) { err = errors.New(problem) }, 0)
	for {
		pos, kind, text := s.Scan()
		from := file.Offset(pos)
		last := ""
		if len(all) > 0 {
			last = all[len(all)-1].text
		}
		switch kind {
		case token.RBRACE, token.RPAREN, token.RBRACK:
			if last == ";" || last == "," {
				all = all[:len(all)-1]
			}
		case token.EOF:
			if last == ";" {
				all = all[:len(all)-1]
			}
			return all, err
		}
		if text == "" || kind == token.SEMICOLON {
			text = kind.String()
		}
		all = append(all, lexeme{text, from, from + len(text)})
	}
}
