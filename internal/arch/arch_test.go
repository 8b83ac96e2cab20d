// Package arch holds the module's source against its rules: which package may import which, where
// a dependency may be used, and what code never does. It reads the files itself instead of asking
// the go command, so that a cached test result follows every change of a file.
package arch

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

// families are the packages of the rule families. None sees another, but outlier, which judges
// callees by breakers.
const families = "flow isolation adaptive breaker outlier hotspot system authority"

// public is what programs and nested modules may build on.
const public = "api inspect rules core node stat machine " + families

// layers says which packages of this module each package may import, lowest layer first.
// A name ending in /* stands for every package below that folder.
// Only files that are not tests count: a test may use the layers above.
var layers = []layer{
	{"internal/shared", ""}, // sync and sync/atomic, or what schedule tests put in their place

	{"stat", "internal/shared"},
	{"machine", ""}, // what the files of the system tell of it
	{"node", "internal/shared stat"},
	{"core", "internal/shared node stat machine"},

	{"flow", "internal/shared core node stat"},
	{"isolation", "internal/shared core node stat"},
	{"adaptive", "internal/shared core node stat"},
	{"breaker", "internal/shared core node stat"},
	{"outlier", "internal/shared core node stat breaker"},
	{"hotspot", "internal/shared core node stat"},
	{"system", "internal/shared core node stat"},
	{"authority", "internal/shared core node stat"},

	{"slots", "core node stat " + families},
	{"rules", "core " + families},

	{"inspect", "rules core node stat " + families},
	{"api", "inspect rules slots core node stat machine " + families},

	{"adapters/*", public},
	{"exporter/*", public},
	{"datasource/*", public},
	{"cluster/*", public},
	{"cmd/*", public},
	{"bench", public},
	{"examples/*", public},

	{"internal/*", "*"}, // tools and tests of the project
}

// testTools are for tests and for each other only, whatever a row says.
var testTools = []string{"internal/arch", "internal/books", "internal/chance", "internal/figure", "internal/golden", "internal/sim", "internal/trial"}

type layer struct {
	pkg     string // the package's folder
	imports string // the packages of this module that it may import
}

func TestLayers(t *testing.T) {
	report(t, thisModule(t).checkLayers(layers))
}

func (t tree) checkLayers(rows []layer) (problems []string) {
	unknown := map[string]bool{}
	for _, f := range t.files {
		if f.test || unknown[f.dir] {
			continue
		}
		row, ok := rowOf(rows, f.dir)
		if !ok {
			unknown[f.dir] = true
			problems = append(problems, t.problem(f.syntax.Name,
				"no row for this package: add {%q, \"...\"} to layers in internal/arch/arch_test.go, in its layer's place", f.dir))
			continue
		}
		t.imports(f, func(spec *ast.ImportSpec, name string) {
			pkg, ok := strings.CutPrefix(name+"/", t.module+"/")
			if !ok {
				return
			}
			pkg = path.Clean(pkg)
			switch {
			case !f.in("internal") && matchesAny(testTools, pkg):
				problems = append(problems, t.problem(spec, "%s is for tests only: import it in a _test.go file", pkg))
			case row.imports != "*" && !matchesAny(strings.Fields(row.imports), pkg):
				problems = append(problems, t.problem(spec,
					"%s must not import %s, only [%s]: move the code to the layer that may see both", f.dir, pkg, row.imports))
			}
		})
	}
	return problems
}

func rowOf(rows []layer, dir string) (layer, bool) {
	for _, row := range rows {
		if matchesAny([]string{row.pkg}, dir) {
			return row, true
		}
	}
	return layer{}, false
}

// matchesAny tells whether one of the names is pkg, or is a folder's /* and pkg lies below it.
func matchesAny(names []string, pkg string) bool {
	for _, name := range names {
		folder, all := strings.CutSuffix(name, "*")
		if name == pkg || all && strings.HasPrefix(pkg, folder) {
			return true
		}
	}
	return false
}
