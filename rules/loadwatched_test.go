package rules

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Where a file is watched, loading it says nothing of rules that are not in force.
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
	require.NoError(t, err, "what is in force")
	write(t, path, rulesOfSize(2))
	_, err = l.LoadFile(path)
	require.ErrorAs(t, err, new(*SourceError))
	require.Equal(t, 1, l.Status().Rules)
	m.end()
	_, err = l.LoadFile(path)
	require.NoError(t, err)
	require.Equal(t, 2, l.Status().Rules)
}
