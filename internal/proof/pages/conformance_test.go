package pages_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The cases that the page on traps names exist: as a test's function, or as the name of a case.
func TestEveryTrapHasACase(t *testing.T) {
	t.Chdir(docs)
	page, err := os.ReadFile(filepath.Join("adapters", "conformance.md"))
	require.NoError(t, err)
	named := regexp.MustCompile("`([a-z0-9/]+)` ([^;]+)")
	traps, cases := 0, 0
	for line := range strings.SplitSeq(string(page), "\n") {
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		traps++
		_, line, _ = strings.Cut(line, ": ")
		for _, m := range named.FindAllStringSubmatch(line, -1) {
			cases++
			folder, name := m[1], strings.TrimSpace(m[2])
			name, _, _ = strings.Cut(name, ", which")
			files, err := filepath.Glob(filepath.Join("..", "adapters", filepath.FromSlash(folder), "*.go"))
			require.NoError(t, err)
			found := false
			for _, file := range files {
				source, err := os.ReadFile(file)
				require.NoError(t, err)
				found = found || strings.Contains(string(source), `"`+name+`"`) || strings.Contains(string(source), "func "+name+"(")
			}
			assert.True(t, found, "adapters/%s has no case %q", folder, name)
		}
	}
	assert.Greater(t, traps, 29)
	assert.Greater(t, cases, 50)
}
