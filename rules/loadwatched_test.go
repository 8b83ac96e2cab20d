package rules

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Loading a watched file is an error if other rules of it are in force.
func TestLoadFileThatIsWatched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, path, rulesOfSize(1))
	l := NewLoader(func(Set) error { return nil }, slog.New(slog.DiscardHandler))
	m, err := l.join(t.Context(), []string{path})
	require.NoError(t, err)
	defer m.leave()
	data := rulesOfSize(1)
	parsed, at, err := parse(path, data, ParseOptions{})
	require.NoError(t, err)
	require.NoError(t, m.begin(news{pieceName: pieceName{0, path}, hash: hashOf(data), parsed: parsed, places: at}))

	_, err = l.LoadFile(path)
	require.NoError(t, err, "the same rules are in force")
	write(t, path, rulesOfSize(2))
	_, err = l.LoadFile(path)
	require.ErrorAs(t, err, new(*SourceError))
	require.Equal(t, 1, l.Status().Rules)
	m.end()
	_, err = l.LoadFile(path)
	require.NoError(t, err)
	require.Equal(t, 2, l.Status().Rules)
}

// LoadFile of a watched file removes the rules that code had loaded, even while another source's rules
// wait, and returns an error if the result can't be put into force.
func TestLoadFileOfAWatchedFileIsASwap(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		one := b.file("one.yaml", "a 1")
		b.declare(one)
		b.declare(b.file("two.yaml", "b 1"))
		require.NoError(t, b.Load(flowSet("k", 1)))
		b.refusing(os.ErrInvalid)
		_, err := b.LoadFile(one)
		require.ErrorIs(t, err, os.ErrInvalid)
		b.refusing(nil)
		b.has("a 1, b 1, k 1")
		require.Equal(t, codeName, b.Status().Sources[2].Source)

		b.file("two.yaml", "b 1, a 2")
		b.settle()
		_, err = b.LoadFile(one)
		require.NoError(t, err)
		b.has("a 1, b 1")
		require.Len(t, b.Status().Sources, 2)
	})
}
