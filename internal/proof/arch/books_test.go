package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// checkBooks requires every package with tests to have a TestMain that calls books.Main, which
// checks at the end that no call, reservation or goroutine was left. Examples can't, since they are
// to be copied; .ci/step does it for them, in a copy.
func (t tree) checkBooks() (problems []string) {
	tested := map[string]*ast.Ident{} // the first test of each folder
	kept := map[string]bool{}
	for _, f := range t.files {
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || !f.test || fn.Recv != nil {
				continue
			}
			switch {
			case fn.Name.Name == "TestMain":
				kept[f.dir] = kept[f.dir] || t.callsBooks(f, fn)
			case isTest(fn.Name.Name) && tested[f.dir] == nil && !isExample(f.dir):
				tested[f.dir] = fn.Name
			}
		}
	}
	for dir, name := range tested {
		if !kept[dir] {
			problems = append(problems, t.problem(name,
				"%s has tests without a final check: add func TestMain(m *testing.M) { books.Main(m) }", dir))
		}
	}
	slices.Sort(problems)
	return problems
}

func isTest(name string) bool {
	return slices.ContainsFunc([]string{"Test", "Fuzz", "Example", "Benchmark"}, func(kind string) bool {
		return strings.HasPrefix(name, kind)
	})
}

// callsBooks reports whether fn calls Main of package internal/proof/books.
func (t tree) callsBooks(f file, fn *ast.FuncDecl) (found bool) {
	imported := f.dir == "internal/proof/books"
	t.imports(f, func(_ *ast.ImportSpec, name string) { imported = imported || name == t.module+"/internal/proof/books" })
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch called := call.Fun.(type) {
		case *ast.SelectorExpr:
			x, ok := called.X.(*ast.Ident)
			found = found || ok && x.Name == "books" && called.Sel.Name == "Main"
		case *ast.Ident: // in the package itself
			found = found || f.dir == "internal/proof/books" && called.Name == "Main"
		}
		return true
	})
	return imported && found
}
