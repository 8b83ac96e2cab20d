package arch

import (
	"strings"
	"testing"
)

// Each check gets code that it must report, and similar code that it must accept.
func TestChecksReport(t *testing.T) {
	rows := []layer{{"low", ""}, {"high", "low"}, {"examples/*", "high"}, {"open", "*"}, {"internal/proof/*", "*"}}
	checkLayers := func(m tree) []string { return m.checkLayers(rows) }
	few := func(m tree) []string { return m.checkSurface(map[string]int{"low": 2}) }

	for _, c := range []struct {
		name  string
		check func(tree) []string
		files map[string]string
		want  []string // how each problem starts
	}{
		{"links", tree.checkLinks, map[string]string{
			"low/a.go": "package low\n\n// T is a type.\ntype T struct{ F int }\n\nfunc (T) M() {}\n",
			"high/a.go": "package high\nimport \"example.com/m/low\"\n\n// [A], [low.T.M], [low.T.F], [*low.T] and [context.Canceled] are, x[B] is none,\n" +
				"// [B] and [low.T.N] and [low.U]\n// are not.\nvar A low.T\n",
			"other/a.go": "package other\n\n// A is no [low.T], which is not imported.\nvar A = 1\n",
		}, []string{"high/a.go:5: [B]", "high/a.go:5: [low.T.N]", "high/a.go:5: [low.U]", "other/a.go:3: [low.T]"}},
		{"layers: allowed", checkLayers, map[string]string{
			"low/a.go":              "package low\nimport \"fmt\"",
			"low/a_test.go":         "package low\nimport \"example.com/m/internal/proof/replay\"",
			"high/a.go":             "package high\nimport \"example.com/m/low\"",
			"examples/e/a.go":       "package main\nimport \"example.com/m/high\"",
			"internal/proof/x/a.go": "package x\nimport \"example.com/m/internal/proof/replay\"",
			"tests/a_test.go":       "package tests",
			"high/testdata/a.go":    "package unknown",
			"nested/go.mod":         "module example.com/m/nested",
			"nested/a.go":           "package nested",
		}, nil},
		{"layers: a higher layer", checkLayers, map[string]string{
			"low/a.go": "package low\nimport (\n\"fmt\"\n\"example.com/m/high\"\n)",
		}, []string{"low/a.go:4: low must not import high, only []"}},
		{"layers: a package that merely starts like an allowed one", checkLayers, map[string]string{
			"high/a.go": "package high\nimport \"example.com/m/lower\"",
		}, []string{"high/a.go:2: high must not import lower, only [low]"}},
		{"layers: the module's root package", checkLayers, map[string]string{
			"high/a.go": "package high\nimport \"example.com/m\"",
		}, []string{"high/a.go:2: high must not import ., only [low]"}},
		{"layers: below a package of a row", checkLayers, map[string]string{
			"low/deep/a.go": "package deep",
		}, []string{`low/deep/a.go:1: no row for this package: add {"low/deep", `}},
		{"layers: a package without a row, once", checkLayers, map[string]string{
			"new/a.go": "package new", "new/b.go": "package new",
		}, []string{`new/a.go:1: no row for this package: add {"new", `}},
		{"layers: a test tool, though the row allows all", checkLayers, map[string]string{
			"open/a.go": "package open\nimport \"example.com/m/internal/proof/replay\"",
		}, []string{"open/a.go:2: internal/proof/replay is for tests only"}},

		{"surface: values, numbers and what is not exported don't count", few, map[string]string{
			"low/a.go":      "package low\ntype Mode int\nconst (\nA Mode = iota\nB\n)\nconst Max = 1 << 3\nfunc (Mode) Text() {}\nfunc hidden() {}\nvar Err error",
			"low/a_test.go": "package low\ntype Helper int",
		}, nil},
		{"surface: a name too many", few, map[string]string{
			"low/a.go": "package low\ntype Mode int\nconst Name = \"x\"\nfunc New() {}",
		}, []string{"low/a.go:4: low exports 3 names, 2 at most: move names that users don't need below internal: Mode Name New"}},
		{"surface: a package that has moved", few, map[string]string{"high/a.go": "package high"}, []string{"low doesn't exist, or exports nothing"}},

		{"order: in order", tree.checkOrder, map[string]string{
			"low/a.go": "package low\nfunc Add(now, n int64) {}\ntype c interface{ Take(now, n int64) }\nfunc f(x c, now, n, m int64) { Add(now, n); Add(n, n); Add(m, n); x.Take(now, 1) }",
		}, nil},
		{"order: swapped", tree.checkOrder, map[string]string{
			"low/a.go":  "package low\nfunc Add(now, n int64) {}\ntype c interface{ Take(now, n int64) }",
			"high/a.go": "package high\nfunc f(now, n int64) {\nlow.Add(n, now)\nx.Take(0, call.now)\n}",
		}, []string{"high/a.go:3: an argument of Add", "high/a.go:4: an argument of Take"}},

		{"examples: tests", tree.checkExamples, map[string]string{
			"examples/e/a_test.go":       "package main\nimport (\n\"example.com/m/api\"\n\"example.com/m/internal/proof/books\"\n\"example.com/m/core/clocks\"\n)",
			"internal/proof/x/a_test.go": "package x\nimport \"example.com/m/internal/proof/books\"",
		}, []string{"examples/e/a_test.go:4: the test of an example must not import internal/proof/books"}},

		{"requirements: allowed", tree.checkRequirements, map[string]string{
			"go.mod": "module example.com/m\n\nrequire (\n\t// why\n\tgopkg.in/yaml.v3 v3.0.1\n\texample.com/x v1.0.0 // indirect\n)\n",
		}, nil},
		{"requirements: in a block and alone", tree.checkRequirements, map[string]string{
			"go.mod": "module example.com/m\n\nrequire (\n\tgopkg.in/yaml.v3 v3.0.1\n\texample.com/x v1.0.0\n)\n\nrequire example.com/y v1.0.0\n",
		}, []string{"go.mod:5: the root module must not require example.com/x", "go.mod:8: the root module must not require example.com/y"}},

		{"third party: allowed", tree.checkThirdParty, map[string]string{
			"rules/a.go":    "package rules\nimport \"gopkg.in/yaml.v3\"\nimport \"github.com/fsnotify/fsnotify\"",
			"low/a_test.go": "package low\nimport \"github.com/stretchr/testify/require\"",
			"low/a.go":      "package low\nimport \"net/http\"",
		}, nil},
		{"third party: elsewhere", tree.checkThirdParty, map[string]string{
			"low/a.go": "package low\nimport \"gopkg.in/yaml.v3\"\nimport \"github.com/stretchr/testify/assert\"\nimport \"example.com/x\"",
		}, []string{
			"low/a.go:2: gopkg.in/yaml.v3 is for package rules only",
			"low/a.go:3: github.com/stretchr/testify/assert is for _test.go files only",
			"low/a.go:4: the root module must not import example.com/x",
		}},

		{"init: where it may be", tree.checkInit, map[string]string{
			"examples/e/a.go":       "package main\nfunc init() {}",
			"internal/proof/x/a.go": "package x\nfunc init() {}",
			"low/a_test.go":         "package low\nfunc init() {}",
			"low/a.go":              "package low\ntype T int\nfunc (T) init() {}",
		}, nil},
		{"init", tree.checkInit, map[string]string{
			"low/a.go": "package low\n\nfunc init() {}",
		}, []string{"low/a.go:3: importing a package starts nothing"}},

		{"unsafe: in a test", tree.checkUnsafe, map[string]string{
			"low/a_test.go": "package low\nimport \"unsafe\"\n//go:linkname a b\nfunc a()",
		}, nil},
		{"unsafe", tree.checkUnsafe, map[string]string{
			"internal/proof/x/a.go": "package x\nimport _ \"unsafe\"\n\n// a is b.\n//\n//go:linkname a b\nfunc a()",
		}, []string{"internal/proof/x/a.go:2: unsafe is for tests", "internal/proof/x/a.go:6: no go:linkname"}},

		{"package names", tree.checkPackageNames, map[string]string{
			"a/a.go": "package utility", "b/b.go": "package util", "c/c_test.go": "package base_test",
		}, []string{"b/b.go:1: package util: ", "c/c_test.go:1: package base_test: "}},

		{"books: checked", tree.checkBooks, map[string]string{
			"low/a_test.go":                  "package low\nimport \"testing\"\nfunc TestA(t *testing.T) {}",
			"low/main_test.go":               "package low_test\nimport (\n\"testing\"\n\"example.com/m/internal/proof/books\"\n)\nfunc TestMain(m *testing.M) { books.Main(m) }",
			"high/a_test.go":                 "package high\nfunc helper() {}\ntype T int\nfunc (T) TestNothing() {}",
			"examples/e/a_test.go":           "package main\nimport \"testing\"\nfunc TestA(t *testing.T) {}",
			"internal/proof/books/a_test.go": "package books\nimport \"testing\"\nfunc TestMain(m *testing.M) { Main(m) }\nfunc TestA(t *testing.T) {}",
		}, nil},
		{"books: not checked", tree.checkBooks, map[string]string{
			"a/a_test.go": "package a\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\nfunc TestB(t *testing.T) {}",
			"b/b_test.go": "package b\nimport (\n\"os\"\n\"testing\"\n)\nfunc FuzzB(f *testing.F) {}\nfunc TestMain(m *testing.M) { os.Exit(m.Run()) }",
			"c/c_test.go": "package c\nimport \"testing\"\nfunc ExampleC() {}\nfunc TestMain(m *testing.M) { books.Main(m) }\nvar books struct{ Main func(any) }",
			"d/d_test.go": "package d\nimport \"example.com/m/internal/proof/books\"\nfunc BenchmarkD() { books.Main(nil) }",
		}, []string{
			"a/a_test.go:4: a has tests without a final check", "b/b_test.go:6: b has", "c/c_test.go:3: c has", "d/d_test.go:3: d has",
		}},

		{"docs: present or not needed", tree.checkDocs, map[string]string{
			"low/a.go": `package low
// T is.
type T[K any] struct{ Field K }
// M does.
func (t *T[K]) M() {}
type hidden int
func (hidden) String() string { return "" }
func f() {}
// The letters.
const (
	A = iota
	B
)
var (
	C = 1 // C is one.
	// D is two.
	D = 2
	e = 3
)
type (
	// U is.
	U int
	V int // V is.
)`,
			"low/a_test.go":         "package low\nfunc Helper() {}",
			"internal/proof/x/a.go": "package x\nfunc F() {}",
			"examples/e/a.go":       "package e\nfunc F() {}",
			"cmd/m/a.go":            "package main\nfunc F() {}",
			"low/_old/a.go":         "package old\nfunc F() {}",
			"low/vendor/x/a.go":     "package x\nfunc F() {}",
		}, nil},
		{"docs: missing", tree.checkDocs, map[string]string{
			"low/a.go": `package low
type T[K any] struct{}
func (t *T[K]) M() {}
//go:noinline
func F() {}
const A = 1
var (
	B, C = 1, 2
)
// A group's comment does not speak for its types.
type (
	U int
)`,
		}, []string{
			"low/a.go:2: type T has", "low/a.go:3: method T.M has", "low/a.go:5: function F has", "low/a.go:6: constant A has",
			"low/a.go:8: variable B has", "low/a.go:8: variable C has", "low/a.go:12: type U has",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.check(fixture(t, c.files))
			for i := range max(len(got), len(c.want)) {
				switch {
				case i >= len(got):
					t.Errorf("not reported: %s", c.want[i])
				case i >= len(c.want):
					t.Errorf("reported: %s", got[i])
				case !strings.HasPrefix(got[i], c.want[i]):
					t.Errorf("reported %q, want %q", got[i], c.want[i])
				}
			}
		})
	}
}
