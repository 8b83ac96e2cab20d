package pages_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each of the ten questions ends in a rule file, which TestRuleFilesShown loads.
func TestEveryQuestionEndsInARule(t *testing.T) {
	t.Chdir(docs)
	text, err := os.ReadFile("choosing.md")
	require.NoError(t, err)
	questions := regexp.MustCompile(`(?ms)^## \d+\. .*?(?:^## |\z)`)
	rest, found := string(text), 0
	for at := questions.FindStringIndex(rest); at != nil; at = questions.FindStringIndex(rest) {
		question := rest[at[0] : at[1]-len("## ")]
		assert.Contains(t, question, "\n```yaml\n", question)
		rest = rest[at[1]-len("## "):]
		found++
	}
	assert.Equal(t, 10, found)
}

// The rule files that migrating.md shows next to other libraries' code are the files that
// examples/migrating runs.
func TestPairsShownArePlayed(t *testing.T) {
	t.Chdir(docs)
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
