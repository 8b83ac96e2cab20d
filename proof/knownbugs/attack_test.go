package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What an attack says decides what became of a patch, and each is taken out again.
func TestAttackEach(t *testing.T) {
	dir := t.TempDir()
	const sound = "package a\n\nfunc two() int { return 2 }\n"
	code := filepath.Join(dir, "a.go")
	require.NoError(t, os.WriteFile(code, []byte(sound), 0o600))
	patch := filepath.Join(dir, "03-is-three.patch")
	diff := "--- a/a.go\n+++ b/a.go\n@@ -1,3 +1,3 @@\n package a\n \n-func two() int { return 2 }\n+func two() int { return 3 }\n"
	require.NoError(t, os.WriteFile(patch, []byte(diff), 0o600))

	for _, c := range []struct {
		output string
		failed bool
		want   verdict
		rounds string
	}{
		{"BROKEN: storms, in round 17: a promise\n", true, killed, "17, 17, 17"},
		{"Every promise held.\n", false, survived, "-"},
		{"./a.go:3: oh\n[build failed]", true, broken, "./a.go:3: oh"},
		{"attack: -only: no attack is named storms\n", true, unclear, "attack: -only: no attack is named storms"},
	} {
		var out bytes.Buffer
		by := func(l lab, name string, _ int) (string, bool) {
			assert.Equal(t, "storms", name)
			text, err := os.ReadFile(filepath.Join(l.dir, "a.go"))
			require.NoError(t, err)
			assert.Contains(t, string(text), "return 3", "the mistake is in")
			return c.output, c.failed
		}
		err := lab{dir, &out}.attackEach([]mutant{{name: "03-is-three", file: patch, attack: "storms"}}, by)
		assert.Equal(t, c.want == killed, err == nil)
		assert.Contains(t, out.String(), string(c.want))
		assert.Contains(t, out.String(), "after rounds "+c.rounds+"\n")
		text, err := os.ReadFile(code)
		require.NoError(t, err)
		assert.Equal(t, sound, string(text), "and out again")
		assert.Equal(t, strings.Count(out.String(), "\n"), 2)
	}
}
