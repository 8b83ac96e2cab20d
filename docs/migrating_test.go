package docs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The rule files that migrating.md shows beside other libraries are those that examples/migrating plays beside them.
func TestPairsShownArePlayed(t *testing.T) {
	var shown []string
	for _, b := range blocks(t, "migrating.md") {
		shown = append(shown, b.text)
	}
	files, err := filepath.Glob("../examples/migrating/*.[yj]*")
	require.NoError(t, err)
	require.Greater(t, len(files), 7)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Contains(t, shown, withoutSchema(string(text)), file)
	}
}
