//go:build unix

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Files that every user can write are rejected, as by a program, unless a flag allows them: then each
// gets one warning.
func TestWhatEveryUserCanWrite(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("d", 0o755))
	for _, name := range []string{"a.yaml", "d/b.yaml"} {
		require.NoError(t, os.WriteFile(name, []byte("flow: [{id: "+name+", resource: x, threshold: 1}]\n"), 0o600))
		require.NoError(t, os.Chmod(name, 0o666))
	}
	require.NoError(t, os.Chmod("d", 0o777))
	assert.Contains(t, penstock(t, "", "check", "d").err, "every user can add rule files (mode 0777): run chmod o-w")
	assert.Contains(t, penstock(t, "", "check", "a.yaml").out, "every user can write it (mode 0666): run chmod o-w")
	for _, args := range [][]string{{"check"}, {"check", "--strict"}} {
		out := penstock(t, "", append(args, "--allow-writable", "a.yaml", "d")...).out
		for _, path := range []string{"a.yaml", "d", "d/b.yaml"} {
			assert.Equal(t, 1, strings.Count(out, path+": warning: every user can write it"), "%s in\n%s", path, out)
		}
	}
	assert.Equal(t, exitOK, penstock(t, "", "convert", "--allow-writable", "a.yaml").code)
	assert.Equal(t, exitOK, penstock(t, "", "fmt", "--allow-writable", "d").code)
}
