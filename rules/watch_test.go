package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/patience"
)

// These tests watch real directories. Polling is off, so every change seen was reported by the
// system. Its speed doesn't matter: they wait for the expected outcome, until the limit of go test.

var byNotice = tuning{
	quiet:   10 * time.Millisecond,
	longest: 100 * time.Millisecond,
	poll:    time.Hour,
	retry:   time.Millisecond,
	retries: 10 * time.Millisecond,
	notify:  notifyBySystem,
}

// Each way to change a file is seen, and seen again the next time. A watch on the file itself would
// follow the old file.
func TestWatchSees(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string, data []byte){
		"write in place": write,
		"rename over":    replace,
		"write in pieces": func(t *testing.T, path string, data []byte) {
			f, err := os.Create(path)
			require.NoError(t, err)
			defer f.Close()
			for _, b := range data {
				_, err := f.Write([]byte{b})
				require.NoError(t, err)
			}
		},
		"move away, write anew, as vim does": func(t *testing.T, path string, data []byte) {
			require.NoError(t, os.Rename(path, path+"~"))
			write(t, path, data)
			require.NoError(t, os.Remove(path+"~"))
		},
		"delete and re-create": func(t *testing.T, path string, data []byte) {
			require.NoError(t, os.Remove(path))
			write(t, path, data)
		},
		"rename one from elsewhere, with an old time": func(t *testing.T, path string, data []byte) {
			other := filepath.Join(t.TempDir(), "other")
			write(t, other, data)
			require.NoError(t, os.Chtimes(other, time.Unix(1, 0), time.Unix(1, 0)))
			require.NoError(t, os.Rename(other, path))
		},
		"make it a link": func(t *testing.T, path string, data []byte) {
			target := filepath.Join(t.TempDir(), "target")
			write(t, target, data)
			_ = os.Remove(path + ".tmp")
			require.NoError(t, os.Symlink(target, path+".tmp"))
			require.NoError(t, os.Rename(path+".tmp", path))
		},
		"remove and re-create the directory": func(t *testing.T, path string, data []byte) {
			require.NoError(t, os.RemoveAll(filepath.Dir(path)))
			require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
			write(t, path, data)
		},
		"remove and re-create its parent": func(t *testing.T, path string, data []byte) {
			dir := filepath.Dir(path)
			require.NoError(t, os.RemoveAll(filepath.Dir(dir)))
			require.NoError(t, os.MkdirAll(dir, 0o700))
			write(t, path, data)
		},
		"swap the directory": func(t *testing.T, path string, data []byte) {
			dir := filepath.Dir(path)
			next, err := os.MkdirTemp(filepath.Dir(dir), "next") //nolint:usetesting // it must be next to dir
			require.NoError(t, err)
			write(t, filepath.Join(next, filepath.Base(path)), data)
			require.NoError(t, os.Rename(dir, next+".old"))
			require.NoError(t, os.Rename(next, dir))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "parent", "dir")
			require.NoError(t, os.MkdirAll(dir, 0o700))
			path := filepath.Join(dir, "rules.yaml")
			write(t, path, rulesOfSize(1))
			p := startProbe(t, path, byNotice)
			p.waitFor(1)
			for n := 2; n < 6; n++ {
				change(t, path, rulesOfSize(n))
				p.waitFor(n)
			}
		})
	}
}

// volume creates a directory as Kubernetes mounts a ConfigMap, and returns the path of the file in
// it and a function that publishes the next content.
func volume(t *testing.T, data []byte) (path string, publish func(data []byte)) {
	dir := t.TempDir()
	version := 0
	publish = func(data []byte) {
		version++
		next := fmt.Sprintf("..v%d", version)
		require.NoError(t, os.Mkdir(filepath.Join(dir, next), 0o700))
		write(t, filepath.Join(dir, next, "rules.yaml"), data)
		require.NoError(t, os.Symlink(next, filepath.Join(dir, "..data_tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		require.NoError(t, os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..v%d", version-1))))
	}
	publish(data)
	path = filepath.Join(dir, "rules.yaml")
	require.NoError(t, os.Symlink("..data/rules.yaml", path))
	return path, publish
}

// No event names the file here, only ..data (kubernetes#112677).
func TestWatchSeesSwappedVolume(t *testing.T) {
	path, publish := volume(t, rulesOfSize(1))
	p := startProbe(t, path, byNotice)
	p.waitFor(1)
	for n := 2; n < 8; n++ {
		publish(rulesOfSize(n))
		p.waitFor(n)
	}
}

// The link is in a directory above the file's.
func TestWatchSeesSwappedRelease(t *testing.T) {
	dir := t.TempDir()
	current := filepath.Join(dir, "current")
	release := func(n int) {
		conf := filepath.Join(dir, fmt.Sprint(n), "conf")
		require.NoError(t, os.MkdirAll(conf, 0o700))
		write(t, filepath.Join(conf, "rules.yaml"), rulesOfSize(n))
		require.NoError(t, os.Symlink(fmt.Sprint(n), current+".tmp"))
		require.NoError(t, os.Rename(current+".tmp", current))
	}
	release(1)
	p := startProbe(t, filepath.Join(current, "conf/rules.yaml"), byNotice)
	p.waitFor(1)
	for n := 2; n < 5; n++ {
		release(n)
		p.waitFor(n)
		write(t, filepath.Join(dir, fmt.Sprint(n), "conf/rules.yaml"), rulesOfSize(10*n))
		p.waitFor(10 * n)
	}
}

// If content can't be loaded, the last good rules stay and the error is reported. Later good rules are
// seen again.
func TestWatchKeepsTheLastGood(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string)
		want  string
	}{
		"delete":            {func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }, "no such file"},
		"truncate":          {func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) }, "holds no rules"},
		"bad content":       {func(t *testing.T, path string) { write(t, path, []byte("flow: [}")) }, "is not YAML"},
		"a directory":       {func(t *testing.T, path string) { _ = os.Remove(path); require.NoError(t, os.Mkdir(path, 0o700)) }, "is a directory"},
		"a broken link":     {func(t *testing.T, path string) { _ = os.Remove(path); require.NoError(t, os.Symlink("gone", path)) }, "no such file"},
		"remove the folder": {func(t *testing.T, path string) { require.NoError(t, os.RemoveAll(filepath.Dir(path))) }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			path := filepath.Join(dir, "rules.yaml")
			restore := func(n int) {
				_ = os.Remove(path) // left by spoil
				require.NoError(t, os.MkdirAll(dir, 0o700))
				write(t, path, rulesOfSize(n))
			}
			restore(1)
			p := startProbe(t, path, byNotice)
			p.waitFor(1)
			for n := 2; n < 4; n++ {
				c.spoil(t, path)
				// On a busy machine the watcher may also see the intermediate states of restore.
				for err := p.waitForError(); !strings.Contains(err.Error(), c.want); {
					err = p.waitForError()
				}
				restore(n)
				p.waitFor(n)
			}
		})
	}
}

// A change of only the mode is seen too.
func TestWatchSeesChmod(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no such modes")
	}
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, path, rulesOfSize(1))
	p := startProbe(t, path, byNotice)
	require.NoError(t, os.Chmod(path, 0o666))
	require.ErrorContains(t, p.waitForError(), "every user can write it")
	require.NoError(t, os.Chmod(path, 0o600))
	select {
	case r := <-p.reloads:
		require.NoError(t, r.Err)
		require.True(t, r.Change.Empty())
	case <-time.After(patience.Of(t)):
		t.Fatal("the way back wasn't told")
	}
	assert.Len(t, p.applied, 2, "told as loaded, and not applied again")
}

// If a file is rewritten in place as fast as possible, only whole files are applied, and finally the
// last. (sentinel-golang's watcher applied empty sets in between.)
func TestWatchStorm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, path, rulesOfSize(1))
	p := startProbe(t, path, defaultTuning)
	for i := range 500 {
		write(t, path, rulesOfSize(1+i%50))
	}
	write(t, path, rulesOfSize(60))
	p.waitFor(60) // apply checks that each is whole
}

func TestWatchFollowsNoWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "rules.yaml", rulesOfSize(1))
	path, err := filepath.Abs("rules.yaml")
	require.NoError(t, err)
	p := startProbe(t, "rules.yaml", byNotice)
	t.Chdir(t.TempDir())
	replace(t, path, rulesOfSize(2))
	p.waitFor(2)
	assert.Equal(t, "rules.yaml", p.Status().Source)
}
