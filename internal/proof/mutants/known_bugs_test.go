package main

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	trees "github.com/penstock-go/penstock/internal/proof/source"
)

var (
	bugRow     = regexp.MustCompile(`(?m)^\| (\d+) \| [^|]+ \| [^|]+ \| ([^|]+) \|$`)
	nextLine   = regexp.MustCompile(`\n\s*//\s*`) // continued comment
	bugComment = regexp.MustCompile(`\bknown bugs? (\d+(?:,? (?:and )?\d+)*)`)
	number     = regexp.MustCompile(`\d+`)
	testNamed  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
)

// Each row of the page names one or two tests, in files that name the bug in a comment; each such
// comment refers to a row.
func TestKnownBugsHaveTests(t *testing.T) {
	root, err := trees.Root()
	require.NoError(t, err)
	page, err := os.ReadFile("known-bugs.md")
	require.NoError(t, err)
	rows := bugRow.FindAllStringSubmatch(string(page), -1)
	assert.Len(t, rows, strings.Count(string(page), "\n| ")-1, "rows of the table, without its head")
	known := make(map[string]bool)
	for i, row := range rows {
		assert.Equal(t, fmt.Sprint(i+1), row[1], "rows are numbered from 1")
		known[row[1]] = true
	}

	tests := make(map[[3]string]bool) // folder, test, number of a bug that its file names
	require.NoError(t, trees.Each(os.DirFS(root), func(file string, text []byte) error {
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		for _, comment := range bugComment.FindAllStringSubmatch(nextLine.ReplaceAllString(string(text), " "), -1) {
			for _, n := range number.FindAllString(comment[1], -1) {
				assert.True(t, known[n], "%s names bug %s, which the page does not list", file, n)
				for _, m := range testNamed.FindAllSubmatch(text, -1) {
					tests[[3]string{path.Dir(file), string(m[1]), n}] = true
				}
			}
		}
		return nil
	}))
	for _, row := range rows {
		named := 0
		for part := range strings.SplitSeq(row[2], "; ") {
			folder, names, _ := strings.Cut(strings.TrimPrefix(part, "`"), "` ")
			for name := range strings.SplitSeq(names, ", ") {
				named++
				assert.True(t, tests[[3]string{folder, name, row[1]}], "bug %s: no file of %s has %q and names the bug", row[1], folder, name)
			}
		}
		assert.LessOrEqual(t, named, 2, "bug %s: tests", row[1])
	}
}
