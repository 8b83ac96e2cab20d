package rules

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The file must lie still between the end of one read and the begin of the next: a
// watcher that was held up while it read has not seen it lie.
func TestReadingTakesNoPartOfTheQuietPeriod(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, path, rulesOfSize(1))
	p := startProbe(t, path, defaultTuning)
	p.waitFor(1)
	p.Close() // what follows is its own goroutine's
	write(t, path, rulesOfSize(2))
	require.NoError(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
	p.dirs = openDirs(notifyBySystem)
	defer p.dirs.close()

	first := p.read()
	first.taken = first.taken.Add(-time.Hour) // it began to read, and came to it just now
	p.pending = first
	assert.True(t, p.look(t.Context()), "to be read again")
	assert.Empty(t, p.applied)
	first.done = first.taken
	p.pending = first
	assert.False(t, p.look(t.Context()))
	p.waitFor(2)
}
