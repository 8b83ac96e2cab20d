package rules

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The file must be unchanged between the end of one read and the beginning of the next: a watcher that
// was delayed while it read has not seen the file settle.
func TestReadingTakesNoPartOfTheQuietPeriod(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, path, rulesOfSize(1))
	p := newProbe(t)
	l := NewLoader(p.apply, slog.New(slog.DiscardHandler))
	w, err := l.declare(t.Context(), []string{path}, false, defaultTuning)
	require.NoError(t, err)
	defer w.member.leave()
	defer w.dirs.close()
	p.waitFor(1)
	write(t, path, rulesOfSize(2))
	require.NoError(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))

	first := w.read()[0]
	first.taken = first.taken.Add(-time.Hour) // it began to read, and was delayed until now
	w.pending[first.pieceName] = first
	assert.True(t, w.look(), "to be read again")
	assert.Empty(t, p.applied)
	first.done = first.taken
	w.pending[first.pieceName] = first
	assert.False(t, w.look())
	p.waitFor(2)
}
