package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/penstock-go/penstock/internal/proof/source"
)

// tree is the Go source of one module: nested modules, testdata and hidden folders are left out.
type tree struct {
	module string // the module's path
	gomod  []byte
	fset   *token.FileSet
	files  []file
}

type file struct {
	dir    string // slash-separated, from the module's root
	test   bool
	syntax *ast.File
}

// in reports whether the file lies in a folder called elem or below one.
func (f file) in(elem string) bool { return slices.Contains(strings.Split(f.dir, "/"), elem) }

// readTree parses the module at the root of fsys.
func readTree(fsys fs.FS) (tree, error) {
	t := tree{fset: token.NewFileSet()}
	var err error
	if t.gomod, err = fs.ReadFile(fsys, "go.mod"); err != nil {
		return t, err
	}
	for line := range bytes.Lines(t.gomod) {
		if name, ok := strings.CutPrefix(string(line), "module "); ok {
			t.module = strings.TrimSpace(name)
		}
	}
	return t, source.EachOfModule(fsys, func(name string, text []byte) error {
		syntax, err := parser.ParseFile(t.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		t.files = append(t.files, file{path.Dir(name), strings.HasSuffix(name, "_test.go"), syntax})
		return nil
	})
}

// imports calls visit for each import of f.
func (t tree) imports(f file, visit func(spec *ast.ImportSpec, name string)) {
	for _, spec := range f.syntax.Imports {
		if name, err := strconv.Unquote(spec.Path.Value); err == nil {
			visit(spec, name)
		}
	}
}

// problem formats a finding: file:line and what to do.
func (t tree) problem(at ast.Node, format string, args ...any) string {
	pos := t.fset.Position(at.Pos())
	return fmt.Sprintf("%s:%d: ", pos.Filename, pos.Line) + fmt.Sprintf(format, args...)
}

// thisModule reads the module of the test.
func thisModule(t *testing.T) tree {
	t.Helper()
	root := moduleRoot(t)
	module, err := readTree(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(module.files, func(f file) bool { return f.dir == "stat" && !f.test }) {
		t.Fatalf("read %d Go files and none of package stat: this is not the module's tree", len(module.files))
	}
	return module
}

// moduleRoot returns the folder of the test's module.
func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := os.Getwd()
	for err == nil {
		if _, err = os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if up := filepath.Dir(root); up != root {
			root, err = up, nil
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// fixture returns a module example.com/m made of files, by name.
func fixture(t *testing.T, files map[string]string) tree {
	t.Helper()
	fsys := fstest.MapFS{"go.mod": {Data: []byte("module example.com/m\n")}}
	for name, src := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(src)}
	}
	module, err := readTree(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return module
}
