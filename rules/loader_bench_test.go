package rules

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// The benchmark changes one rule of 10,000 in 20 files. It measures the time from the file's content to
// rules in force, and to the report.
func BenchmarkOneFileOfTwentyChanges(b *testing.B) {
	e, err := engine.NewEngine(engine.Config{Chain: trial.Chain()})
	require.NoError(b, err)
	var change Change
	l := NewLoader(func(set Set) error {
		return e.Update(func(builder *engine.SnapshotBuilder) error {
			_, err := set.Compile(builder)
			return err
		})
	}, slog.New(slog.DiscardHandler))
	l.OnReload(func(r Reload) { change = r.Change })
	dir := b.TempDir()
	paths := manyFiles(b, dir)
	tune := defaultTuning
	tune.notify = func() (*notifier, error) { return nil, errNoSpace }
	w, err := l.declare(b.Context(), paths, false, tune)
	require.NoError(b, err)
	defer w.member.leave()
	one, err := Load(paths[7])
	require.NoError(b, err)
	s := sight{pieceName: pieceName{7, paths[7]}, taken: time.Now()}
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		one.Flow[250].Threshold = float64(1 + i)
		s.data, err = one.YAML()
		s.hash = hashOf(s.data)
		require.NoError(b, err)
		b.StartTimer()
		require.NoError(b, w.member.take(w.believe(s)))
	}
	require.Len(b, change.Lines(), 1)
}
