package arch

import (
	"go/ast"
	"path"
	"regexp"
	"strings"
	"testing"
)

func TestDocLinks(t *testing.T) { report(t, thisModule(t).checkLinks()) }

// docLink is [Name], [Type.Member], [pkg.Name] or [pkg.Type.Member] in a comment, perhaps with a
// star.
var docLink = regexp.MustCompile(`(?:^|[\s(])\[\*?(?:([a-z]\w*)\.)?([A-Z]\w*)(?:\.(\w+))?\](?:[^\[(\w]|$)`)

// declared holds the names of a package's declarations, each with its fields and methods. A type
// that embeds others has the member "*", since promoted members are declared elsewhere.
type declared map[string]map[string]bool

// checkLinks requires every link of a comment to lead to a declaration of the package itself, or of
// a package that it imports. Tests and names of other modules are left out.
func (t tree) checkLinks() (problems []string) {
	packages := map[string]declared{}
	imports := map[string]map[string]string{} // folders of this module by the names they have in a folder
	for _, f := range t.files {
		if f.test {
			continue
		}
		if packages[f.dir] == nil {
			packages[f.dir], imports[f.dir] = declared{}, map[string]string{}
		}
		packages[f.dir].add(f.syntax)
		t.imports(f, func(spec *ast.ImportSpec, name string) {
			if dir, ok := strings.CutPrefix(name, t.module+"/"); ok {
				imports[f.dir][path.Base(dir)] = dir
			}
		})
	}
	ours := map[string]bool{} // the names of this module's packages
	for dir := range packages {
		ours[path.Base(dir)] = true
	}
	for _, f := range t.files {
		if f.test {
			continue
		}
		for _, group := range f.syntax.Comments {
			for _, line := range group.List {
				if strings.HasPrefix(line.Text, "//\t") {
					continue // code
				}
				for _, link := range docLink.FindAllStringSubmatch(strings.TrimPrefix(line.Text, "//"), -1) {
					dir, ok := f.dir, true
					if pkg := link[1]; pkg != "" {
						if dir, ok = imports[f.dir][pkg]; !ok && !ours[pkg] {
							continue // of the standard library, or of another module
						}
					}
					if !ok || !packages[dir].has(link[2], link[3]) {
						problems = append(problems, t.problem(line, "%s leads to nothing: name a declaration in this package or in one that it imports",
							strings.TrimSpace(link[0])))
					}
				}
			}
		}
	}
	return problems
}

func (d declared) has(name, member string) bool {
	members, ok := d[name]
	return ok && (member == "" || members[member] || members["*"])
}

func (d declared) add(file *ast.File) {
	of := func(name string) map[string]bool {
		if d[name] == nil {
			d[name] = map[string]bool{}
		}
		return d[name]
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				of(decl.Name.Name)
			} else {
				of(typeName(decl.Recv.List[0].Type))[decl.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						of(name.Name)
					}
				case *ast.TypeSpec:
					addMembers(of(spec.Name.Name), spec)
				}
			}
		}
	}
}

// addMembers adds the fields of a struct and the methods of an interface.
func addMembers(members map[string]bool, spec *ast.TypeSpec) {
	var fields *ast.FieldList
	switch typ := spec.Type.(type) {
	case *ast.StructType:
		fields = typ.Fields
	case *ast.InterfaceType:
		fields = typ.Methods
	default: // of another type, or an alias
		members["*"] = true
		return
	}
	for _, field := range fields.List {
		if field.Names == nil {
			members["*"] = true
		}
		for _, name := range field.Names {
			members[name.Name] = true
		}
	}
}
