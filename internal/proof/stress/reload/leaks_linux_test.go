package reload

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/patience"
	"github.com/penstock-go/penstock/rules"
)

func openFiles(t testing.TB) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(files)
}

// Watchers that are closed, whose context ends, whose Guard is closed, or whose first load fails,
// release every file and goroutine. known bug 108
func TestWatchersGiveBackFilesAndGoroutines(t *testing.T) {
	path, missing := writeVersion(t, "rules.yaml", 1), "/nowhere/rules.yaml"
	accept := func(rules.Set) error { return nil }
	cfg := rules.WatchConfig{Logger: silent}
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	n := figure.Size(3, 10, 100, 100)
	errs := make(chan error, 4*n)
	for range n {
		go func() {
			w, err := rules.Watch(t.Context(), path, accept, cfg)
			if err == nil {
				w.Close()
			}
			errs <- err
		}()
		go func() {
			ctx, cancel := context.WithCancel(t.Context())
			_, err := rules.Watch(ctx, path, accept, cfg)
			cancel()
			errs <- err
		}()
		go func() {
			g, err := api.New(api.Config{Logger: silent})
			if err == nil {
				err = each(func() error { return g.WatchRules(t.Context(), path) }, g.Close)
			}
			errs <- err
		}()
		go func() {
			if _, err := rules.Watch(t.Context(), missing, accept, cfg); err == nil {
				t.Error("watches what is not there")
			}
			errs <- nil
		}()
	}
	for range 4 * n {
		require.NoError(t, <-errs)
	}
	for late := time.Now().Add(patience.Of(t)); openFiles(t) > files || runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		require.True(t, time.Now().Before(late), "files: %d, then %d; goroutines: %d, then %d",
			files, openFiles(t), goroutines, runtime.NumGoroutine())
	}
}
