//go:build unix

package rules

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mounted creates a directory as the kubelet does for a ConfigMap, and returns its path.
func mounted(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "rules.d")
	data := filepath.Join(dir, "..2026_11_29_01_02_03.456")
	require.NoError(t, os.MkdirAll(data, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(data, "a.yaml"), []byte("flow: [{id: a, resource: a, threshold: 1}]"), 0o644))
	require.NoError(t, os.Symlink(filepath.Base(data), filepath.Join(dir, "..data")))
	require.NoError(t, os.Symlink("..data/a.yaml", filepath.Join(dir, "a.yaml")))
	require.NoError(t, os.Chmod(dir, 0o777|fs.ModeSetgid))
	return dir
}

// Every user can write to a directory that the kubelet created, so it is read only if no other user has
// put rules there.
func TestDirectoryThatTheKubeletMade(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(dir string) error
		ok    bool
	}{
		"as it is":            {func(string) error { return nil }, true},
		"with something else": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "readme.txt"), nil, 0o644) }, true},
		"another file in the directory": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "b.yaml"), []byte("flow: []"), 0o644)
		}, false},
		"a link elsewhere": {func(dir string) error { return os.Symlink("/etc/b.yaml", filepath.Join(dir, "b.yaml")) }, false},
		"a link to another name": {func(dir string) error {
			return os.Symlink("..data/a.yaml", filepath.Join(dir, "b.yaml"))
		}, false},
		"a link below it": {func(dir string) error {
			return os.Symlink("..data/../b.yaml", filepath.Join(dir, "b.yaml"))
		}, false},
		"no ..data": {func(dir string) error { return os.Remove(filepath.Join(dir, "..data")) }, false},
		"a ..data that is no link": {func(dir string) error {
			data := filepath.Join(dir, "..data")
			if err := os.Remove(data); err != nil {
				return err
			}
			return os.Mkdir(data, 0o755)
		}, false},
		"a ..data that leads elsewhere": {func(dir string) error {
			data := filepath.Join(dir, "..data")
			if err := os.Remove(data); err != nil {
				return err
			}
			return os.Symlink(t.TempDir(), data)
		}, false},
		"a ..data that leads up": {func(dir string) error {
			data := filepath.Join(dir, "..data")
			if err := os.Remove(data); err != nil {
				return err
			}
			return os.Symlink("..", data)
		}, false},
		"data for all to write": {func(dir string) error {
			all, err := filepath.Glob(filepath.Join(dir, "..2026*"))
			if err != nil {
				return err
			}
			return os.Chmod(all[0], 0o777)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := mounted(t)
			require.NoError(t, c.spoil(dir))
			_, err := Files(dir, ParseOptions{})
			if c.ok {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "every user can add rule files (mode 0777): run chmod o-w")
			_, err = Files(dir, ParseOptions{AllowWritable: true})
			require.NoError(t, err)
		})
	}
	if os.Geteuid() == 0 { // only root can give a file to another user
		dir := mounted(t)
		require.NoError(t, os.Lchown(filepath.Join(dir, "..data"), 65534, 65534))
		_, err := Files(dir, ParseOptions{})
		require.ErrorContains(t, err, "every user can add rule files", "another user made ..data")
	}
}

// A Loader reads files that every user can write only after AllowWritable, and warns of each once.
func TestAllowWritable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "r.yaml")
	require.NoError(t, os.WriteFile(path, []byte("flow: [{id: a, resource: a, threshold: 1}]"), 0o600))
	require.NoError(t, os.Chmod(path, 0o666))
	require.NoError(t, os.Chmod(dir, 0o777))
	var log strings.Builder
	l := NewLoader(func(Set) error { return nil }, slog.New(slog.NewTextHandler(&log, nil)))
	defer l.Close()
	_, err := l.LoadFile(path)
	require.ErrorContains(t, err, "every user can write it (mode 0666)")
	require.Error(t, l.Watch(t.Context(), dir))
	l.AllowWritable()
	for range 2 {
		_, err = l.LoadFile(path)
		require.NoError(t, err)
	}
	require.NoError(t, l.Watch(t.Context(), dir))
	assert.Equal(t, 1, strings.Count(log.String(), "source="+path+" mode=0666"), log.String())
	assert.Equal(t, 1, strings.Count(log.String(), "source="+dir+" mode=0777"), log.String())
	_, err = LoadWith(path, ParseOptions{})
	require.Error(t, err)
	_, err = LoadWith(path, ParseOptions{AllowWritable: true})
	require.NoError(t, err)
}

// Nobody can write to a file system that is mounted read-only, regardless of the modes.
func TestReadOnlyFileSystem(t *testing.T) {
	assert.False(t, readOnly(t.TempDir()))
	for _, dir := range []string{"/sys/firmware", "/proc/sys", "/sys"} { // which containers, at least, have mounted read-only
		if readOnly(dir) {
			info, err := os.Stat(dir)
			require.NoError(t, err)
			assert.NoError(t, trust{}.check(dir, writableInfo{info}, "write it"))
			return
		}
	}
	t.Log("there is no file system here that is mounted read-only")
}

type writableInfo struct{ fs.FileInfo }

func (w writableInfo) Mode() fs.FileMode { return w.FileInfo.Mode() | 0o002 }
