package pages_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Source files that a page names exist.
func TestFilesThatPagesNameExist(t *testing.T) {
	t.Chdir(docs)
	pages, err := filepath.Glob("*.md")
	require.NoError(t, err)
	file := regexp.MustCompile(`(?m)(?:^|[^\w\\/.])([a-z0-9]+(?:/[a-z0-9]+)*/[A-Za-z0-9_]+\.go)\b`)
	named := 0
	for _, page := range append(append(pages, pagesOfRules(t)...), "../README.md", "../CONTRIBUTING.md", "../internal/proof/README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range file.FindAllSubmatch(text, -1) {
			named++
			assert.FileExists(t, filepath.Join("..", filepath.FromSlash(string(m[1]))), page)
		}
	}
	require.Greater(t, named, 50, "the test found too few")
}

// The transcripts were played in their current form. The test that plays them is in another module:
// the go command doesn't notice that a page has changed, except through this sum.
func TestTranscriptsArePlayed(t *testing.T) {
	t.Chdir(docs)
	for _, page := range []string{"command.md", "replay.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		sum, err := os.ReadFile("../cmd/penstock/testdata/" + page + ".sha256")
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("%x\n", sha256.Sum256(text)), string(sum), "in cmd/penstock: go test -run TestDocs -update .")
	}
}
