package arch

import (
	"go/ast"
	"go/token"
	"testing"
)

func TestDocComments(t *testing.T) { report(t, thisModule(t).checkDocs()) }

// checkDocs requires a doc comment on every exported function, type, constant and variable, and on
// every exported method of an exported type, of the packages that users import. Fields and the
// methods of an interface are covered by their type's comment.
func (t tree) checkDocs() (problems []string) {
	missing := func(at ast.Node, what, name string) {
		problems = append(problems, t.problem(at, "%s %s has no doc comment: say what it promises", what, name))
	}
	for _, f := range t.files {
		if f.test || f.in("internal") || f.in("examples") || f.syntax.Name.Name == "main" {
			continue
		}
		for _, decl := range f.syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				receiver := ""
				if decl.Recv != nil {
					receiver = typeName(decl.Recv.List[0].Type)
				}
				switch {
				case !decl.Name.IsExported() || documented(decl.Doc):
				case decl.Recv == nil:
					missing(decl, "function", decl.Name.Name)
				case ast.IsExported(receiver):
					missing(decl, "method", receiver+"."+decl.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						alone := !decl.Lparen.IsValid() && documented(decl.Doc)
						if spec.Name.IsExported() && !alone && !documented(spec.Doc, spec.Comment) {
							missing(spec, "type", spec.Name.Name)
						}
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							if name.IsExported() && !documented(decl.Doc, spec.Doc, spec.Comment) {
								missing(name, kind(decl.Tok), name.Name)
							}
						}
					}
				}
			}
		}
	}
	return problems
}

// documented reports whether one of the comments has text; a //go: directive does not count.
func documented(comments ...*ast.CommentGroup) bool {
	for _, c := range comments {
		if c.Text() != "" {
			return true
		}
	}
	return false
}

func kind(tok token.Token) string {
	if tok == token.CONST {
		return "constant"
	}
	return "variable"
}

// typeName returns the name of a receiver's type, without its pointer and its type parameters.
func typeName(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		return typeName(expr.X)
	case *ast.ParenExpr:
		return typeName(expr.X)
	case *ast.IndexExpr:
		return typeName(expr.X)
	case *ast.IndexListExpr:
		return typeName(expr.X)
	case *ast.Ident:
		return expr.Name
	}
	return ""
}
