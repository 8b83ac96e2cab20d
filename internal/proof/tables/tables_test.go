package tables_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/tables"
)

func TestMain(m *testing.M) { books.Main(m) }

func TestKeep(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	const page = "before\n<!-- a: begin, written by x -->\nold\n<!-- a: end -->\nbetween\n<!-- b: begin -->\n<!-- b: end -->\nafter\n"
	require.NoError(t, os.WriteFile(file, []byte(page), 0o644))
	require.NoError(t, tables.Keep(file, "a", "new\n"))
	require.NoError(t, tables.Keep(file, "b", "more\n"))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "before\n<!-- a: begin, written by x -->\nnew\n<!-- a: end -->\nbetween\n<!-- b: begin -->\nmore\n<!-- b: end -->\nafter\n", string(text))
	kept, err := tables.Kept(file, "b")
	require.NoError(t, err)
	assert.Equal(t, "more\n", kept)

	assert.ErrorContains(t, tables.Keep(file, "c", "new\n"), `the lines "<!-- c: begin ... -->" and "<!-- c: end -->" must stand around the table`)
	require.NoError(t, os.WriteFile(file, []byte("<!-- a: end -->\n<!-- a: begin -->\n"), 0o644))
	assert.Error(t, tables.Keep(file, "a", "new\n"))
	assert.Error(t, tables.Keep(file+".missing", "a", "new\n"))
}
