package rules

import (
	"bufio"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/chance"
)

func replaceDir(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.Mkdir(dir, 0o700))
}

var errStopped = errors.New("the process was killed")

// crashDisk is a disk of one directory in memory, on which the process is killed, or the power fails,
// at a step. It models the possible losses: the data of files, and their names, until they are synced.
type crashDisk struct {
	steps   int // steps left
	files   map[string]*crashFile
	durable map[string]*crashFile // the names that survive a power failure
}

type crashFile struct {
	disk         *crashDisk
	data, synced []byte
}

// step reports whether the process lives for one more step.
func (d *crashDisk) step() bool { d.steps--; return d.steps >= 0 }

func (d *crashDisk) create(path string, _ os.FileMode) (diskFile, error) {
	if !d.step() {
		return nil, errStopped
	}
	f := &crashFile{disk: d}
	d.files[path] = f
	return f, nil
}

func (d *crashDisk) rename(from, to string) error {
	if !d.step() {
		return errStopped
	}
	d.files[to] = d.files[from]
	delete(d.files, from)
	return nil
}

func (d *crashDisk) remove(path string) error {
	if !d.step() {
		return errStopped
	}
	delete(d.files, path)
	return nil
}

func (d *crashDisk) syncDir(string) error {
	if !d.step() {
		return errStopped
	}
	d.durable = map[string]*crashFile{}
	maps.Copy(d.durable, d.files)
	return nil
}

// Write takes one step per byte, up to a few.
func (f *crashFile) Write(data []byte) (int, error) {
	const parts = 7
	for i := range parts {
		if !f.disk.step() {
			return 0, errStopped
		}
		f.data = data[:len(data)*(i+1)/parts]
	}
	return len(data), nil
}

func (f *crashFile) resemble(os.FileInfo) error { return nil }

func (f *crashFile) Sync() error {
	if !f.disk.step() {
		return errStopped
	}
	f.synced = f.data
	return nil
}

func (f *crashFile) Close() error {
	if !f.disk.step() {
		return errStopped
	}
	return nil
}

// A cache whose writer is stopped at any step, by kill -9 or by a power failure, reads back as the old
// or the new content.
// known bug 152
func TestCacheIsWholeAtEveryStep(t *testing.T) {
	old, fresh := rulesOfSize(3), rulesOfSize(7)
	dir := t.TempDir()
	reads := func(what string, f *crashFile, data []byte, steps int) []byte {
		t.Helper()
		require.NotNil(t, f, "%s after %d steps: no file", what, steps)
		on := &cache{path: filepath.Join(dir, "read"), source: "store"}
		write(t, on.path, data)
		kept, err := on.read()
		require.NoError(t, err, "%s after %d steps", what, steps)
		require.Contains(t, [][]byte{old, fresh}, kept.Data)
		return kept.Data
	}
	finished := false
	for steps := 0; !finished; steps++ {
		d := &crashDisk{steps: 1000, files: map[string]*crashFile{}}
		c := &cache{path: "dir/cache", source: "store", disk: d}
		require.NoError(t, c.write(cached{Document{old, "1"}, time.Now()}))
		d.steps = steps
		err := c.write(cached{Document{fresh, "2"}, time.Now()})
		finished = err == nil
		f := d.files[c.path]
		killed := reads("kill -9", f, f.data, steps)
		// The name may have reached the disk by itself, or not.
		reads("power failure", f, f.synced, steps)
		before := d.durable[c.path]
		lost := reads("power failure", before, before.synced, steps)
		if finished {
			assert.Equal(t, fresh, killed)
			assert.Equal(t, fresh, lost)
			assert.Greater(t, steps, 10)
			assert.Len(t, d.files, 1)
		}
	}
}

// An error at any step leaves the old content, or at the last step the new content, and no other file.
func TestReplaceFileFails(t *testing.T) {
	for _, c := range []struct {
		fail string
		kept string
	}{{"create", "old"}, {"write", "old"}, {"sync", "old"}, {"close", "old"}, {"rename", "old"}, {"syncDir", "new"}} {
		t.Run(c.fail, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			write(t, path, []byte("old"))
			require.ErrorIs(t, replaceFile(&failingDisk{fail: c.fail}, path, nil, 0o600, []byte("new")), errNoSpace)
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, c.kept, string(data))
			entries, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			assert.Len(t, entries, 1)
		})
	}
}

// failingDisk is the real disk except for one kind of step.
type failingDisk struct {
	realDisk
	fail string
}

type failingFile struct {
	diskFile
	fail string
}

func (d *failingDisk) create(path string, mode os.FileMode) (diskFile, error) {
	if d.fail == "create" {
		return nil, errNoSpace
	}
	f, err := d.realDisk.create(path, mode)
	return &failingFile{f, d.fail}, err
}

func (d *failingDisk) rename(from, to string) error {
	if d.fail == "rename" {
		return errNoSpace
	}
	return d.realDisk.rename(from, to)
}

func (d *failingDisk) syncDir(path string) error {
	if d.fail == "syncDir" {
		return errNoSpace
	}
	return d.realDisk.syncDir(path)
}

func (f *failingFile) Write(data []byte) (int, error) {
	if f.fail == "write" {
		n, _ := f.diskFile.Write(data[:1])
		return n, errNoSpace
	}
	return f.diskFile.Write(data)
}

func (f *failingFile) Sync() error {
	if f.fail == "sync" {
		return errNoSpace
	}
	return f.diskFile.Sync()
}

func (f *failingFile) Close() error {
	if err := f.diskFile.Close(); err != nil || f.fail != "close" {
		return err
	}
	return errNoSpace
}

const cacheToWrite = "PENSTOCK_TEST_CACHE" // names the file for TestCacheWriterProcess

// TestCacheWriterProcess is the process that TestCacheSurvivesKills kills.
func TestCacheWriterProcess(t *testing.T) {
	path := os.Getenv(cacheToWrite)
	if path == "" {
		t.Skip("this is the process that TestCacheSurvivesKills starts and kills; it needs a file from it")
	}
	c := &cache{path: path, source: "store", disk: realDisk{}}
	for n := 1; ; n = n%500 + 1 {
		if err := c.write(cached{Document{rulesOfSize(n), "1"}, time.Now()}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stdout.WriteString("written\n"); err != nil {
			return // nobody listens now
		}
	}
}

// A process that is killed at any moment while it writes its cache leaves a cache that reads back.
func TestCacheSurvivesKills(t *testing.T) {
	kills := 40
	if testing.Short() {
		kills = 10
	}
	dir := t.TempDir()
	c := &cache{path: filepath.Join(dir, "cache"), source: "store"}
	random := chance.Source(t)
	for range kills {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCacheWriterProcess$")
		child.Env = append(os.Environ(), cacheToWrite+"="+c.path)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewScanner(out)
		for range 1 + random.IntN(20) {
			require.True(t, lines.Scan(), "the process ended by itself")
		}
		for range random.IntN(2000) { // at any point of a write
			runtime.Gosched()
		}
		require.NoError(t, child.Process.Kill())
		_ = child.Wait() // it was killed
		kept, err := c.read()
		require.NoError(t, err)
		set, err := Parse("cache", kept.Data)
		require.NoError(t, err)
		require.Positive(t, whole(set))
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	t.Log(len(entries)-1, "of", kills, "kills left a file that was being written")

	// Leftovers are removed once no process can still be writing them.
	for i, e := range entries {
		if e.Name() != "cache" && i%2 == 0 {
			long := time.Now().Add(-2 * leftoverAfter)
			require.NoError(t, os.Chtimes(filepath.Join(dir, e.Name()), long, long))
		}
	}
	write(t, filepath.Join(dir, "another"), nil)
	removeLeftovers(c.path)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	var want []string
	for i, e := range entries {
		if e.Name() == "cache" || i%2 == 1 {
			want = append(want, e.Name())
		}
	}
	want = append(want, "another")
	slices.Sort(want)
	var got []string
	for _, e := range left {
		got = append(got, e.Name())
	}
	assert.Equal(t, want, got)
}
