package pages_test

import (
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
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	named   = regexp.MustCompile(`<a id="([^"]+)">`)
	link    = regexp.MustCompile(`(?:\]\(|(?:src|srcset|href)=")([^)\s"]+)[)"]`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchorsOf returns the places on a page that a link can lead to: its headings, in GitHub's form,
// and elements with an id.
func anchorsOf(text string) map[string]bool {
	found := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		title := dropped.ReplaceAllString(strings.ToLower(linked.ReplaceAllString(m[1], "$1")), "")
		found[strings.ReplaceAll(title, " ", "-")] = true
	}
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	return found
}

// A link within the repository leads to an existing file, and to an existing place on the page.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Chdir(docs)
	pages := make(map[string]string)
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 2 && d.Name()[0] == '.'):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			text, err := os.ReadFile(path)
			pages[filepath.Clean(path)] = string(text)
			return err
		}
		return nil
	}))
	links := 0
	for page, text := range pages {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			links++
			file, place, _ := strings.Cut(m[1], "#")
			to := page
			if file != "" {
				to = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
			}
			if _, err := os.Stat(to); !assert.NoError(t, err, "%s links to %s", page, m[1]) || place == "" {
				continue
			}
			if other, ok := pages[to]; ok {
				assert.True(t, anchorsOf(other)[place], "%s links to %s: no such place there", page, m[1])
			}
		}
	}
	assert.Greater(t, links, 400, "the test found too few")
}
