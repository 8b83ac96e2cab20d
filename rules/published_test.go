package rules

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updatePublished = flag.Bool("update-published", false, "write what the files of testdata/published mean, to be read before it is believed")

// Each file is of a kind published for Sentinel, its dashboard or its environments. testdata has its
// meaning, as native rules and warnings, or the error that tells the user what to do.
func TestPublishedKinds(t *testing.T) {
	const dir = "testdata/published"
	paths, err := filepath.Glob(filepath.Join(dir, "*.*"))
	require.NoError(t, err)
	seen := 0
	for _, path := range paths {
		if filepath.Ext(path) == ".txt" {
			continue
		}
		seen++
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		name := filepath.Base(path)
		var got strings.Builder
		switch p, err := ParseWith(name, data, ParseOptions{}); {
		case err != nil:
			got.WriteString("error: " + err.Error() + "\n")
		default:
			got.WriteString("read as " + p.Dialect.String() + "\n")
			for _, w := range p.Warnings {
				got.WriteString("warning: " + w.String() + "\n")
			}
			text, err := p.Set.YAML()
			require.NoError(t, err)
			got.Write(text)
			requireReadsBack(t, p.Set)
		}
		means := path + ".txt"
		if *updatePublished {
			require.NoError(t, os.WriteFile(means, []byte(got.String()), 0o644))
		}
		want, err := os.ReadFile(means)
		require.NoError(t, err)
		assert.Equal(t, string(want), got.String(), name)
	}
	assert.GreaterOrEqual(t, seen, 20)
}
