package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
)

// The same twenty rules in three dialects are equal, and convert to the same text, formatted as by
// fmt.
func TestTwentyRulesInThreeDialects(t *testing.T) {
	want := read(t, filepath.Join("testdata", "twenty.yaml"))
	set := parse(t, want)
	require.Equal(t, 20, set.Len())
	for file, dialect := range map[string]rules.Dialect{
		"twenty.java.json": rules.SentinelJava, "twenty.go.json": rules.SentinelGo, "twenty.native.yaml": rules.Native,
	} {
		path := filepath.Join("testdata", file)
		parsed, err := rules.LoadWith(path, rules.ParseOptions{})
		require.NoError(t, err)
		assert.Equal(t, dialect, parsed.Dialect, file)
		assert.Equal(t, set, parsed.Set, file)
		assert.Empty(t, parsed.Warnings, file)
		assert.Equal(t, result{exitOK, want, ""}, penstock(t, "", "convert", path), file)
		for _, flag := range []string{"--from", "--dialect"} {
			assert.Equal(t, result{exitOK, want, ""}, penstock(t, "", "convert", flag, dialect.String(), path), file)
		}
		assert.Equal(t, result{exitOK, want, ""}, penstock(t, read(t, path), "convert"), "%s by standard input", file)
		assert.Equal(t, result{}, penstock(t, "", "diff", path, filepath.Join("testdata", "twenty.yaml")), file)

		r := penstock(t, "", "convert", "--json", path)
		assert.Equal(t, exitOK, r.code)
		assert.Equal(t, set, parse(t, r.out), file)
	}
	assert.Equal(t, result{exitOK, want, ""}, penstock(t, want, "fmt"))
}

// Lists of each family in separate files, as users of Java have them, become one file.
func TestConvertSeveralFiles(t *testing.T) {
	flows := write(t, "flow.json", `[{"resource": "GET /orders", "grade": 1, "count": 100}]`)
	breakers := write(t, "degrade.json", `[{"resource": "POST /payments", "grade": 2, "count": 9, "timeWindow": 10}]`)
	r := penstock(t, "", "convert", flows, breakers)
	require.Equal(t, exitOK, r.code, r.err)
	set := parse(t, r.out)
	assert.Len(t, set.Flow, 1)
	assert.Len(t, set.Breaker, 1)
}

// A field without a meaning here is reported on standard error, so that the output stays a rule
// file.
func TestConvertTells(t *testing.T) {
	r := penstock(t, `[{"resource": "POST /payments", "grade": 1, "count": 1, "timeWindow": 10}]`, "convert", "--from", "sentinel-java")
	assert.Equal(t, exitOK, r.code)
	assert.Equal(t, 1, parse(t, r.out).Len())
	assert.Contains(t, r.err, "stdin:1:54: warning: [0].count: is 1, and Sentinel opens only above it")

	r = penstock(t, `[{"resource": "GET /orders", "count": 5, "clusterMode": true}]`, "convert")
	assert.Equal(t, exitErrors, r.code)
	assert.Empty(t, r.out)
	assert.Contains(t, r.err, "[0].clusterConfig: needs flowId")

	r = penstock(t, "flow:\n  - {resource: GET /orders, threshold: 1}\n", "convert", "--from", "sentinel-java")
	assert.Equal(t, exitErrors, r.code)
}

func TestDiff(t *testing.T) {
	old := write(t, "old.yaml", "flow:\n  - {id: orders, resource: GET /orders, threshold: 100}\n  - {id: gone, resource: GET /gone, threshold: 1}\n")
	new := write(t, "new.yaml", "flow:\n  - {id: come, resource: GET /come, threshold: 1}\n  - {id: orders, resource: GET /orders, threshold: 200, interval: 2s}\n")
	r := penstock(t, "", "diff", old, new)
	assert.Equal(t, exitDifferent, r.code)
	assert.Contains(t, r.out, "+ flow come\n")
	assert.Contains(t, r.out, "~ flow orders: threshold 100 -> 200, interval 1s -> 2s")
	assert.Contains(t, r.out, "- flow gone\n")
	assert.Empty(t, r.err)
	assert.Equal(t, result{}, penstock(t, read(t, old), "diff", "-", old), "the same")

	r = penstock(t, "", "diff", "--json", old, new)
	assert.Equal(t, exitDifferent, r.code)
	assert.JSONEq(t, `{
		"added": [{"family": "flow", "id": "come"}],
		"changed": [{"family": "flow", "id": "orders", "fields": [{"field": "threshold", "old": "100", "new": "200"},
			{"field": "interval", "old": "1s", "new": "2s"}]}],
		"removed": [{"family": "flow", "id": "gone"}]}`, r.out)

	bad := write(t, "bad.yaml", "flow: 1")
	r = penstock(t, "", "diff", old, bad)
	assert.Equal(t, exitTrouble, r.code)
	assert.Contains(t, r.err, "bad.yaml:1:7: error: flow: must be a list of rules")
	assert.Equal(t, exitTrouble, penstock(t, "", "diff", old, filepath.Join(t.TempDir(), "missing")).code)

	// Directories are compared by the rules in all of their files.
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("flow:\n  - {id: gone, resource: GET /gone, threshold: 1}\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.yaml"), []byte("flow:\n  - {id: orders, resource: GET /orders, threshold: 100}\n"), 0o644))
	assert.Equal(t, result{}, penstock(t, "", "diff", old, dir))
}
