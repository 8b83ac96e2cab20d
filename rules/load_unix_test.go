//go:build unix

package rules

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// None of these may block, or be read.
func TestLoadRefusesDevices(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{pipe, "/dev/null", "/dev/zero"} {
		_, err := Load(path)
		assert.EqualError(t, err, path+": is not a regular file")
	}
}

func TestLoadRefusesWhatAnyoneMayWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(path, []byte("flow: []"), 0o600))
	for mode, want := range map[os.FileMode]string{
		0o600: "",
		0o664: "",
		0o666: "every user can write it (mode 0666): run chmod o-w",
		0o602: "every user can write it (mode 0602): run chmod o-w",
	} {
		require.NoError(t, os.Chmod(path, mode))
		if _, err := Load(path); want == "" {
			assert.NoError(t, err, "%o", mode)
		} else {
			assert.EqualError(t, err, path+": "+want, "%o", mode)
		}
	}
}
