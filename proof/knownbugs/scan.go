package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/proof/source"
)

// owner is a test that names rows.
type owner struct {
	file string // slash-separated, from the root of the tree
	line int    // of the test
	test string
}

func (o owner) dir() string { return path.Dir(o.file) }

// found is what the tests of a tree say: who owns a row, and what can't be meant.
type found struct {
	owners   map[int][]owner
	tests    map[string]bool // all there are, by their folder and name: "stat TestX"
	problems []string
}

// scan reads the comments of all tests below the root of fsys, whatever their build
// tags and modules.
func scan(fsys fs.FS) (found, error) {
	result := found{owners: make(map[int][]owner), tests: make(map[string]bool)}
	err := source.Each(fsys, func(name string, text []byte) error {
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		return result.file(name, text)
	})
	for _, owners := range result.owners {
		slices.SortFunc(owners, func(a, b owner) int {
			return strings.Compare(fmt.Sprintf("%s:%08d", a.file, a.line), fmt.Sprintf("%s:%08d", b.file, b.line))
		})
	}
	return result, err
}

func (f *found) file(name string, src []byte) error {
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, decl := range syntax.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && isTest(fn.Name.Name) {
			f.tests[path.Dir(name)+" "+fn.Name.Name] = true
		}
	}
	for _, comment := range syntax.Comments {
		numbers, err := numbersIn(comment.Text())
		line := fset.Position(comment.Pos()).Line
		if err != nil {
			f.problems = append(f.problems, fmt.Sprintf("%s:%d: %v", name, line, err))
			continue
		}
		if len(numbers) == 0 {
			continue
		}
		test := testAround(syntax, comment)
		if test == nil {
			f.problems = append(f.problems, fmt.Sprintf(
				"%s:%d: a row is named outside a test: put the comment inside the test that owns it, or right above", name, line))
			continue
		}
		own := owner{name, fset.Position(test.Pos()).Line, test.Name.Name}
		for _, n := range numbers {
			if !slices.Contains(f.owners[n], own) {
				f.owners[n] = append(f.owners[n], own)
			}
		}
	}
	return nil
}

// testAround is the test that a comment stands in or right above.
func testAround(file *ast.File, comment *ast.CommentGroup) *ast.FuncDecl {
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || !isTest(fn.Name.Name) {
			continue
		}
		if fn.Doc == comment || fn.Pos() <= comment.Pos() && comment.End() <= fn.End() {
			return fn
		}
	}
	return nil
}

// isTest leaves benchmarks out: nothing in them fails.
func isTest(name string) bool {
	for _, prefix := range []string{"Test", "Fuzz", "Example"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && name != "TestMain" {
			return rest == "" || !('a' <= rest[0] && rest[0] <= 'z')
		}
	}
	return false
}

var (
	mention = regexp.MustCompile(`\bknown bugs?\s+(\d+(?:\s*[-–]\s*\d+)?(?:\s*(?:,|and)\s*\d+(?:\s*[-–]\s*\d+)?)*)`)
	piece   = regexp.MustCompile(`(\d+)(?:\s*[-–]\s*(\d+))?`)
)

// numbersIn are the rows that a comment names: "known bug 3, 4-7".
func numbersIn(text string) (numbers []int, err error) {
	for _, m := range mention.FindAllStringSubmatch(text, -1) {
		for _, p := range piece.FindAllStringSubmatch(m[1], -1) {
			first, _ := strconv.Atoi(p[1])
			last := first
			if p[2] != "" {
				last, _ = strconv.Atoi(p[2])
			}
			if first < 1 || last > len(allRows()) || last < first {
				return nil, fmt.Errorf("there is no row %s: rows are 1 to %d", p[0], len(allRows()))
			}
			for n := first; n <= last; n++ {
				numbers = append(numbers, n)
			}
		}
	}
	return numbers, nil
}

func allRows() []row {
	var rows []row
	for _, s := range sections {
		rows = append(rows, s.rows...)
	}
	return rows
}
