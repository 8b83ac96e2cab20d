package memory

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/source"
)

// Names that collide under a hash that outsiders can compute would turn a lookup into a search. All
// names are kept in Go's maps, whose hash nobody can compute. So the code computes no hash itself:
// it imports nothing from package hash and has no constants of a hash.
func TestNoHashThatOutsidersCanCompute(t *testing.T) {
	constants := []string{"16777619", "2166136261", "1099511628211", "14695981039346656037", "5381"} // FNV, djb2
	files := 0
	check := func(name string, text []byte) {
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if strings.HasPrefix(name, "hash/") && name != "hash/maphash" {
				t.Errorf("%s: %s: keep names in a map, or hash them with hash/maphash and a seed", set.Position(spec.Pos()), name)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.INT {
				return true
			}
			value, err := strconv.ParseUint(literal.Value, 0, 64)
			if err == nil && slices.Contains(constants, strconv.FormatUint(value, 10)) {
				t.Errorf("%s: %s is a constant of a hash that outsiders can compute", set.Position(n.Pos()), literal.Value)
			}
			return true
		})
	}
	root := os.DirFS(filepath.Join("..", "..", "..", ".."))
	require.NoError(t, source.Each(root, func(name string, text []byte) error {
		if !strings.HasPrefix(name, "internal/") && !strings.HasSuffix(name, "_test.go") { // tests and their tools keep no names
			check(name, text)
		}
		return nil
	}))
	require.Greater(t, files, 50)
}
