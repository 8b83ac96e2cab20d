package main

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/internal/proof/source"
)

// check is one run of go test: a package whose tests report figures, with its build flags.
type check struct {
	dir   string   // slash-separated, from the root of the tree
	flags []string // of go test
}

func (c check) String() string { return strings.Join(append([]string{"./" + c.dir}, c.flags...), " ") }

// schedules reports whether one goroutine runs at a time, and nothing is timed.
func (c check) schedules() bool { return slices.Contains(c.flags, "sim") }

// ways are the kinds of build in which a test file may exist, the plain one first. With the tag
// sim, shared memory belongs to a scheduler, so only tests that use one run.
var ways = []struct {
	tag   string
	flags []string
}{
	{"", nil},
	{"sim", []string{"-tags", "sim", "-run", "^TestSim"}},
	{"race", []string{"-race"}},
}

// findChecks searches all test files below the root of fsys for calls that report figures.
func findChecks(fsys fs.FS) (checks []check, err error) {
	err = source.Each(fsys, func(name string, text []byte) error {
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !reports(file) {
			return nil
		}
		flags, err := flagsFor(file)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		c := check{path.Dir(name), flags}
		if !slices.ContainsFunc(checks, func(o check) bool { return o.String() == c.String() }) {
			checks = append(checks, c)
		}
		return nil
	})
	slices.SortFunc(checks, func(a, b check) int { return strings.Compare(a.String(), b.String()) })
	return checks, err
}

// reporters are the functions that report a figure, by their package.
var reporters = map[string][]string{
	"internal/proof/figure":    {"Report"},
	"internal/proof/schedules": {"Random", "Sample", "Exhaustive", "SampleOrAll"},
}

// reports reports whether a file calls one of reporters. The tests of package schedules itself do,
// but report no figures.
func reports(file *ast.File) (found bool) {
	if file.Name.Name == "schedules_test" {
		return false
	}
	local := make(map[string][]string) // by the package's name in the file
	for _, spec := range file.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		for pkg, functions := range reporters {
			if !strings.HasSuffix(name, "/"+pkg) {
				continue
			}
			as := path.Base(pkg)
			if spec.Name != nil {
				as = spec.Name.Name
			}
			local[as] = functions
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			x, ok := sel.X.(*ast.Ident)
			found = found || ok && slices.Contains(local[x.Name], sel.Sel.Name)
		}
		return true
	})
	return found
}

// flagsFor returns the flags of go test that build a file.
func flagsFor(file *ast.File) ([]string, error) {
	for _, way := range ways {
		built := true
		for _, group := range file.Comments {
			for _, c := range group.List {
				if c.Pos() > file.Package || !constraint.IsGoBuild(c.Text) {
					continue
				}
				expr, err := constraint.Parse(c.Text)
				if err != nil {
					return nil, err
				}
				built = expr.Eval(func(tag string) bool {
					return tag == way.tag || tag == runtime.GOOS || tag == runtime.GOARCH || tag == "unix" || strings.HasPrefix(tag, "go1.")
				})
			}
		}
		if built {
			return way.flags, nil
		}
	}
	return nil, fmt.Errorf("it reports a figure under a build constraint that no entry of ways satisfies: add one in internal/proof/figures/find.go")
}
