//go:build unix

package rules

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// None of these files may block the reader, or be read.
func TestLoadRefusesDevices(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{pipe, "/dev/null", "/dev/zero"} {
		_, err := Load(path)
		assert.EqualError(t, err, path+": is not a regular file")
	}
}

// A link is followed, and its target must meet the same conditions.
func TestLoadRefusesLinksToDevices(t *testing.T) {
	dir := t.TempDir()
	pipe, sparse, loop := filepath.Join(dir, "pipe"), filepath.Join(dir, "sparse"), filepath.Join(dir, "loop")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(sparse, nil, 0o600))
	require.NoError(t, os.Truncate(sparse, 10<<30))
	require.NoError(t, os.Symlink(loop, loop))
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	require.NoError(t, err)
	defer socket.Close()
	for target, want := range map[string]string{
		pipe:                         "is not a regular file",
		"/dev/zero":                  "is not a regular file",
		filepath.Join(dir, "socket"): "is not a regular file",
		dir:                          "is a directory, not a file",
		sparse:                       "has 10737418240 bytes or more, the maximum is 1048576",
	} {
		link := filepath.Join(dir, "rules.yaml")
		require.NoError(t, os.Symlink(target, link))
		_, err := Load(link)
		assert.EqualError(t, err, link+": "+want)
		require.NoError(t, os.Remove(link))
	}
	_, err = Load(loop)
	require.ErrorIs(t, err, syscall.ELOOP)
	_, err = Load("rules\x00.yaml")
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = Load(filepath.Join(sparse, "rules.yaml"))
	require.ErrorIs(t, err, syscall.ENOTDIR)
}

func TestLoadRefusesWhatAnyoneMayWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(path, []byte("flow: []"), 0o600))
	for mode, want := range map[os.FileMode]string{
		0o600: "",
		0o664: "",
		0o666: "every user can write it (mode 0666): run chmod o-w" + allowIt,
		0o602: "every user can write it (mode 0602): run chmod o-w" + allowIt,
	} {
		require.NoError(t, os.Chmod(path, mode))
		if _, err := Load(path); want == "" {
			assert.NoError(t, err, "%o", mode)
		} else {
			assert.EqualError(t, err, path+": "+want, "%o", mode)
		}
	}
}
