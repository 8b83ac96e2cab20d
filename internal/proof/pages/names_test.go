package pages_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	testName = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz|Example)[A-Z]\w*`)
	folder   = regexp.MustCompile(`^[\w.-]+(?:/[\w.*-]+)+$`)
	exported = regexp.MustCompile(`\b([a-z]\w*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
)

// ofOthers are names from other libraries' packages that have the same name as one of ours.
var ofOthers = map[string]bool{
	"sentinel.InitDefault": true, "sentinel.Entry": true, "sentinel.TraceError": true, "flow.LoadRules": true, // sentinel-golang
}

// Tests, folders and exported names that a page names exist. Types of api are often aliases of
// core's, with the same fields.
func TestNamesShownExist(t *testing.T) {
	t.Chdir(docs)
	tests, declared := namesInTheTree(t)
	top, err := os.ReadDir("..")
	require.NoError(t, err)
	isTop := make(map[string]bool)
	for _, entry := range top {
		isTop[entry.Name()] = true
	}
	found := make(map[string]int)
	for _, page := range pagesWithCommands(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, name := range testName.FindAllString(string(text), -1) {
			if name == "TestSim" {
				continue // how the names of schedules begin: -run ^TestSim
			}
			found["tests"]++
			assert.True(t, tests[name], "%s: no test is named %s", page, name)
		}
		for _, m := range inCode.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
			if first, _, _ := strings.Cut(m[1], "/"); folder.MatchString(m[1]) && isTop[first] && !strings.HasSuffix(m[1], "...") {
				found["folders"]++
				at, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(m[1])))
				require.NoError(t, err)
				inAdapters, err := filepath.Glob(filepath.Join("..", "adapters", filepath.FromSlash(m[1])))
				require.NoError(t, err)
				assert.NotEmpty(t, append(at, inAdapters...), "%s: there is no %s", page, m[1])
			}
			for _, name := range exported.FindAllStringSubmatch(m[1], -1) {
				of := declared[name[1]]
				if of == nil || ofOthers[name[0]] {
					continue
				}
				found["names"]++
				assert.True(t, of[name[2]], "%s: %s is not declared", page, name[0])
				member := name[2] + "." + name[3]
				assert.True(t, name[3] == "" || of[member] || declared["core"][member], "%s: %s is not declared", page, name[0])
			}
		}
	}
	assert.Greater(t, found["tests"], 100)
	assert.Greater(t, found["folders"], 50)
	assert.Greater(t, found["names"], 100)
}

// namesInTheTree returns the tests of the repository, and the exported names of its packages:
// functions, types, values, and the fields and methods of types as Type.Name.
func namesInTheTree(t *testing.T) (tests map[string]bool, declared map[string]map[string]bool) {
	t.Helper()
	tests, declared = make(map[string]bool), make(map[string]map[string]bool)
	functions := regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(`)
	set := token.NewFileSet()
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 2 && d.Name()[0] == '.'):
			return filepath.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			text, err := os.ReadFile(path)
			for _, m := range functions.FindAllSubmatch(text, -1) {
				tests[string(m[1])] = true
			}
			return err
		case filepath.Ext(path) != ".go":
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		own := strings.HasPrefix(path, filepath.Join("..", "examples")) || strings.Contains(filepath.ToSlash(path), "/internal/server/")
		if err != nil || own || file.Name.Name == "main" { // nothing that a page names
			return err
		}
		names := declared[file.Name.Name]
		if names == nil {
			names = make(map[string]bool)
			declared[file.Name.Name] = names
		}
		for _, d := range file.Decls {
			declare(names, d)
		}
		return nil
	}))
	return tests, declared
}

func declare(names map[string]bool, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names[d.Name.Name] = true
			return
		}
		of := d.Recv.List[0].Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		if name, ok := of.(*ast.Ident); ok {
			names[name.Name+"."+d.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names[name.Name] = true
				}
			case *ast.TypeSpec:
				names[spec.Name.Name] = true
				members(names, spec)
			}
		}
	}
}

func members(names map[string]bool, spec *ast.TypeSpec) {
	var list *ast.FieldList
	switch of := spec.Type.(type) {
	case *ast.StructType:
		list = of.Fields
	case *ast.InterfaceType:
		list = of.Methods
	default:
		return
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			names[spec.Name.Name+"."+name.Name] = true
		}
	}
}
