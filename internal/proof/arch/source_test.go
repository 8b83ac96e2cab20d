package arch

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// dependency is a module that the root module may require, and where its packages may be imported.
type dependency struct {
	module string
	place  string // for the message
	ok     func(file) bool
}

var dependencies = []dependency{
	{"github.com/fsnotify/fsnotify", "package rules", inRules},
	{"gopkg.in/yaml.v3", "package rules", inRules},
	{"github.com/stretchr/testify", "_test.go files", func(f file) bool { return f.test }},
}

func inRules(f file) bool { return f.dir == "rules" }

// vagueNames say nothing about a package's purpose.
var vagueNames = []string{"base", "util", "common", "manager", "impl"}

func TestRequirements(t *testing.T)      { report(t, thisModule(t).checkRequirements()) }
func TestThirdPartyImports(t *testing.T) { report(t, thisModule(t).checkThirdParty()) }
func TestNoInit(t *testing.T)            { report(t, thisModule(t).checkInit()) }
func TestNoUnsafe(t *testing.T)          { report(t, thisModule(t).checkUnsafe()) }
func TestPackageNames(t *testing.T)      { report(t, thisModule(t).checkPackageNames()) }

func TestBooksAreChecked(t *testing.T) { report(t, thisModule(t).checkBooks()) }

func report(t *testing.T, problems []string) {
	t.Helper()
	for _, p := range problems {
		t.Error(p)
	}
}

// checkRequirements reads go.mod line by line: its own requirements, without "// indirect" ones,
// must be in dependencies.
func (t tree) checkRequirements() (problems []string) {
	block := false
	number := 0
	for line := range strings.Lines(string(t.gomod)) {
		number++
		line = strings.TrimSpace(line)
		required, one := strings.CutPrefix(line, "require ")
		switch {
		case required == "(":
			block = true
			continue
		case line == ")":
			block = false
		case block:
			required = line
		case !one:
			continue
		}
		module, _, ok := strings.Cut(required, " ")
		if !ok || module == "//" || strings.HasSuffix(line, "// indirect") {
			continue
		}
		if _, ok := dependencyOf(module); !ok {
			problems = append(problems, fmt.Sprintf(
				"go.mod:%d: the root module must not require %s: what needs it belongs in a nested module", number, module))
		}
	}
	return problems
}

func (t tree) checkThirdParty() (problems []string) {
	for _, f := range t.files {
		t.imports(f, func(spec *ast.ImportSpec, name string) {
			first, _, _ := strings.Cut(name, "/")
			if !strings.Contains(first, ".") || strings.HasPrefix(name+"/", t.module+"/") {
				return // the standard library, or this module
			}
			switch d, ok := dependencyOf(name); {
			case !ok:
				problems = append(problems, t.problem(spec,
					"the root module must not import %s: what needs it belongs in a nested module", name))
			case !d.ok(f):
				problems = append(problems, t.problem(spec, "%s is for %s only: move what needs it there", name, d.place))
			}
		})
	}
	return problems
}

func dependencyOf(name string) (dependency, bool) {
	for _, d := range dependencies {
		if strings.HasPrefix(name+"/", d.module+"/") {
			return d, true
		}
	}
	return dependency{}, false
}

func (t tree) checkInit() (problems []string) {
	for _, f := range t.files {
		if f.test || f.in("examples") || f.in("proof") {
			continue
		}
		for _, decl := range f.syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				problems = append(problems, t.problem(fn,
					"importing a package starts nothing: turn init into a variable's value or into part of a constructor"))
			}
		}
	}
	return problems
}

func (t tree) checkUnsafe() (problems []string) {
	for _, f := range t.files {
		if f.test {
			continue
		}
		t.imports(f, func(spec *ast.ImportSpec, name string) {
			if name == "unsafe" {
				problems = append(problems, t.problem(spec, "unsafe is for tests of sizes only: import it in a _test.go file"))
			}
		})
		for _, group := range f.syntax.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//go:linkname") {
					problems = append(problems, t.problem(c, "no go:linkname: use what the other package exports"))
				}
			}
		}
	}
	return problems
}

func (t tree) checkPackageNames() (problems []string) {
	for _, f := range t.files {
		name := f.syntax.Name
		if slices.Contains(vagueNames, strings.TrimSuffix(name.Name, "_test")) {
			problems = append(problems, t.problem(name, "package %s: name it after what it provides", name.Name))
		}
	}
	return problems
}
