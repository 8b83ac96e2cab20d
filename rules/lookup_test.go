package rules

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLookups(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	at := func(name string) string { return filepath.Join(root, name) }
	for _, dir := range []string{"plain", "volume/..v1", "releases/1/conf", "elsewhere"} {
		require.NoError(t, os.MkdirAll(at(dir), 0o755))
	}
	for _, file := range []string{"plain/rules.yaml", "volume/..v1/rules.yaml", "releases/1/conf/rules.yaml"} {
		require.NoError(t, os.WriteFile(at(file), nil, 0o600))
	}
	for link, target := range map[string]string{
		"volume/..data":      "..v1",
		"volume/rules.yaml":  "..data/rules.yaml",
		"current":            "releases/1",
		"elsewhere/absolute": at("plain/rules.yaml"),
		"elsewhere/up":       "../plain/./rules.yaml",
		"elsewhere/broken":   "../plain/missing",
		"elsewhere/loop":     "loop",
	} {
		require.NoError(t, os.Symlink(target, at(link)))
	}
	for path, want := range map[string][]string{
		"plain/rules.yaml":         {"plain"},
		"plain/missing":            {"plain"},
		"gone/conf/rules.yaml":     {""},
		"plain/gone/rules.yaml":    {"plain"},
		"volume/rules.yaml":        {"volume", "volume/..v1"},
		"current/conf/rules.yaml":  {"", "releases/1/conf"},
		"elsewhere/absolute":       {"elsewhere", "plain"},
		"elsewhere/up":             {"elsewhere", "plain"},
		"elsewhere/broken":         {"elsewhere", "plain"},
		"elsewhere/loop":           {"elsewhere"},
		"plain/rules.yaml/no/such": {"plain/rules.yaml"},
	} {
		var got []string
		for _, dir := range lookups(at(path)) {
			rel, err := filepath.Rel(root, dir)
			require.NoError(t, err)
			if rel == "." {
				rel = ""
			}
			got = append(got, rel)
		}
		assert.Equal(t, want, got, path)
	}
}
