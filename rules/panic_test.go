package rules

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// badHandler is a log handler that panics.
type badHandler struct{ slog.Handler }

func (badHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (badHandler) Handle(context.Context, slog.Record) error { panic("disk full") }

// Any callback may panic: the watcher continues, and a panic of apply refuses the set.
// known bug 54
func TestWatcherOutlivesPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		write(t, path, rulesOfSize(1))
		tune := defaultTuning
		tune.notify = newFake().open
		var calls atomic.Int64
		var inForce atomic.Int64
		w, err := watch(t.Context(), path, func(set Set) error {
			if whole(set) == 2 {
				panic("two")
			}
			inForce.Store(int64(whole(set)))
			return nil
		}, WatchConfig{
			Logger:   slog.New(badHandler{slog.DiscardHandler}),
			OnReload: func(Reload) { calls.Add(1); panic("called") },
		}, tune)
		require.NoError(t, err)
		for n := 2; n <= 4; n++ {
			replace(t, path, rulesOfSize(n))
			time.Sleep(2 * tune.poll)
			synctest.Wait()
			assert.Equal(t, int64(n), calls.Load())
			if n == 2 {
				assert.Equal(t, int64(1), inForce.Load(), "the last good set stays")
				assert.ErrorContains(t, w.Status().LastError, "applying: panic: two")
			} else {
				assert.Equal(t, int64(n), inForce.Load())
			}
		}
		w.Close()
	})
}
