package arch

import (
	"go/ast"
	"slices"
	"testing"
)

func TestArgumentsInOrder(t *testing.T) { report(t, thisModule(t).checkOrder()) }

// checkOrder finds swapped arguments. Instants, units, limits and bucket numbers are plain int64
// values, often side by side, so the compiler accepts f(n, now) for f(now, n). An argument that is
// named like another parameter of the same type is a mistake, or deserves a better name. Calls are
// matched by the function's name and number of parameters alone: a call is in order if it is so for
// one of these functions.
func (t tree) checkOrder() (problems []string) {
	declared := map[string][][]param{}
	for _, f := range t.files {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				declared[n.Name.Name] = append(declared[n.Name.Name], paramsOf(n.Type))
			case *ast.Field: // a method of an interface
				if fn, ok := n.Type.(*ast.FuncType); ok && len(n.Names) == 1 {
					declared[n.Names[0].Name] = append(declared[n.Names[0].Name], paramsOf(fn))
				}
			}
			return true
		})
	}
	for _, f := range t.files {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			same := slices.DeleteFunc(slices.Clone(declared[nameOf(call.Fun)]), func(p []param) bool { return len(p) != len(call.Args) })
			if len(same) > 0 && !slices.ContainsFunc(same, func(p []param) bool { return inOrder(call.Args, p) }) {
				problems = append(problems, t.problem(call,
					"an argument of %s is named like another of its parameters: are they swapped?", nameOf(call.Fun)))
			}
			return true
		})
	}
	return problems
}

// param is a parameter's name, and its type if that is a predeclared or local one.
type param struct{ name, kind string }

func paramsOf(fn *ast.FuncType) (all []param) {
	for _, field := range fn.Params.List {
		if len(field.Names) == 0 {
			all = append(all, param{kind: nameOf(field.Type)})
		}
		for _, name := range field.Names {
			all = append(all, param{name.Name, nameOf(field.Type)})
		}
	}
	return all
}

// inOrder reports whether no argument has the name of another int64 parameter. The same value for
// both is in order.
func inOrder(args []ast.Expr, params []param) bool {
	for i, arg := range args {
		own := slices.Index(params, param{nameOf(arg), "int64"})
		if own >= 0 && params[i].kind == "int64" && params[i].name != nameOf(arg) && nameOf(args[own]) != nameOf(arg) {
			return false
		}
	}
	return true
}

// nameOf returns the last part of a name or selector, or "".
func nameOf(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}
