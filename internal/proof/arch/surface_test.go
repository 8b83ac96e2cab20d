package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// surface limits the number of exported names of each package: its declarations, except the values
// of enumerations and numeric bounds. A commit that adds a name beyond the limit must raise it and
// say why.
var surface = map[string]int{
	"api": 81, "bandwidth": 7, "core": 45, "slots": 22, "stat": 22, "node": 20, "cluster": 14, "cluster/store": 32, "replay": 7,
	"flow": 25, "hotspot": 25, "breaker": 25, "isolation": 25, "adaptive": 25, "outlier": 25, "system": 25, "authority": 25,
}

func TestSurface(t *testing.T) { report(t, thisModule(t).checkSurface(surface)) }

func (t tree) checkSurface(most map[string]int) (problems []string) {
	names := map[string][]string{}
	at := map[string]*ast.Ident{}
	for _, f := range t.files {
		if f.test || most[f.dir] == 0 {
			continue
		}
		for _, d := range f.syntax.Decls {
			for _, id := range shown(d) {
				names[f.dir] = append(names[f.dir], id.Name)
				at[f.dir] = id
			}
		}
	}
	for dir, n := range most {
		if len(names[dir]) == 0 {
			problems = append(problems, dir+" doesn't exist, or exports nothing")
		}
		if len(names[dir]) > n {
			slices.Sort(names[dir])
			problems = append(problems, t.problem(at[dir], "%s exports %d names, %d at most: move names that users don't need below internal: %s",
				dir, len(names[dir]), n, strings.Join(names[dir], " ")))
		}
	}
	return problems
}

// shown returns the names of a declaration that count.
func shown(d ast.Decl) (all []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			all = append(all, d.Name)
		}
	case *ast.GenDecl:
		enum := false // a value of an enumeration, or a number; a constant without a value repeats the one before
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				all = append(all, s.Name)
			case *ast.ValueSpec:
				if d.Tok == token.CONST {
					if len(s.Values) > 0 || s.Type != nil {
						enum = s.Type != nil || !text(s.Values)
					}
					if enum {
						continue
					}
				}
				all = append(all, s.Names...)
			}
		}
	}
	return slices.DeleteFunc(all, func(id *ast.Ident) bool { return !id.IsExported() })
}

// text reports whether a constant is a string literal.
func text(values []ast.Expr) bool {
	lit, ok := values[0].(*ast.BasicLit)
	return ok && lit.Kind == token.STRING
}
