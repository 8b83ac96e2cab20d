//go:build unix

package rules

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A replaced file keeps its mode and, if the process is root, its owner.
func TestFileKeepsModeAndOwner(t *testing.T) {
	f := File{Path: filepath.Join(t.TempDir(), "rules.yaml")}
	revision, err := f.Write(t.Context(), rulesOfSize(1), "")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(f.Path, 0o640))
	const uid, gid = 12345, 54321
	isRoot := os.Geteuid() == 0
	if isRoot {
		require.NoError(t, os.Chown(f.Path, uid, gid))
	}
	_, err = f.Write(t.Context(), rulesOfSize(2), revision)
	require.NoError(t, err)
	info, err := os.Stat(f.Path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode())
	if stat := info.Sys().(*syscall.Stat_t); isRoot {
		assert.EqualValues(t, uid, stat.Uid)
		assert.EqualValues(t, gid, stat.Gid)
	}
}

// A file is replaced only if it is regular and not everybody can write it: a link, a directory or a
// device is not.
func TestFileRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real.yaml")
	write(t, real, rulesOfSize(1))
	link, dangling, open := filepath.Join(dir, "link.yaml"), filepath.Join(dir, "dangling.yaml"), filepath.Join(dir, "open.yaml")
	require.NoError(t, os.Symlink(real, link))
	require.NoError(t, os.Symlink(filepath.Join(dir, "missing"), dangling))
	write(t, open, rulesOfSize(1))
	require.NoError(t, os.Chmod(open, 0o666))
	for path, why := range map[string]string{
		link:                        "is a symbolic link: write to the file that it points to",
		dangling:                    "is a symbolic link: write to the file that it points to",
		dir:                         "is a directory, not a file",
		"/dev/null":                 "is not a regular file",
		open:                        "every user can write it",
		filepath.Join(dir, "a/b/c"): "no such file or directory",
	} {
		for _, after := range []string{"", revisionOf(rulesOfSize(1))} {
			_, err := File{Path: path}.Write(t.Context(), rulesOfSize(2), after)
			assert.ErrorContains(t, err, why, path)
		}
	}
	doc, err := File{Path: link}.Next(t.Context(), "")
	require.NoError(t, err, "reading follows links")
	require.Equal(t, rulesOfSize(1), doc.Data)
	_, err = os.Readlink(link)
	require.NoError(t, err)
}

// A writer waits for another writer until the context ends.
func TestFileWaitsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := File{Path: filepath.Join(t.TempDir(), "rules.yaml")}
		unlock, err := lockDir(t.Context(), filepath.Dir(f.Path))
		require.NoError(t, err)
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		began := time.Now()
		_, err = f.Write(ctx, rulesOfSize(1), "")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(began))
		unlock()
		_, err = f.Write(t.Context(), rulesOfSize(1), "")
		require.NoError(t, err)
	})
}

// A cache that another user put there is ignored.
func TestCacheOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a file that belongs to another user")
	}
	c := &cache{path: filepath.Join(t.TempDir(), "cache"), source: "store", disk: realDisk{}}
	require.NoError(t, c.write(cached{Document{rulesOfSize(2), "1"}, time.Now()}))
	_, err := c.read()
	require.NoError(t, err)
	require.NoError(t, os.Chown(c.path, 12345, -1))
	_, err = c.read()
	require.EqualError(t, err, c.path+": belongs to another user")
}
