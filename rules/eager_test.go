package rules

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/patience"
)

// eager reads a file within a millisecond of any change, so it catches nearly every half-written
// state. It accepts none before the file has settled.
var eager = tuning{
	quiet:   50 * time.Millisecond,
	longest: time.Millisecond,
	poll:    time.Hour,
	retry:   time.Millisecond,
	retries: 10 * time.Millisecond,
	notify:  notifyBySystem,
}

// A file is written in pieces, each also a valid rule file, while the watcher keeps reading: only
// whole files are applied, including the last one.
// known bug 67
func TestWatchBelievesNoHalfFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, path, rulesOfSize(1))
	n, slow := figure.Size(50, 1000, 10_000, 100_000), 0
	applied := make(chan Set, n+2)
	w, err := watch(t.Context(), path, func(set Set) error { applied <- set; return nil },
		WatchConfig{Logger: slog.New(slog.DiscardHandler)}, eager)
	require.NoError(t, err)
	defer w.Close()
	for i := range n {
		text := rulesOfSize(2 + i%7)
		begun := time.Now()
		f, err := os.Create(path)
		require.NoError(t, err)
		half := len(text) - len(fmt.Sprintf("  - {id: %d of %d, resource: a, threshold: %d}\n", 2+i%7, 2+i%7, 2+i%7))
		_, err = f.Write(text[:half])
		require.NoError(t, err)
		runtime.Gosched()
		_, err = f.Write(text[half:])
		require.NoError(t, err)
		require.NoError(t, f.Close())
		if time.Since(begun) >= eager.quiet {
			slow++ // half a file was unchanged for that long; nobody can tell
		}
	}
	write(t, path, rulesOfSize(60))
	late := time.After(patience.Of(t))
	torn := 0
	for size := 0; size != 60; {
		select {
		case set := <-applied:
			if size = whole(set); size < 0 {
				torn++
			}
		case <-late:
			t.Fatal("the last file did not come")
		}
	}
	assert.LessOrEqual(t, torn, slow)
	figure.Report(t, figure.Figure{Name: "half files believed", Value: float64(max(0, torn-slow)), N: int64(n - slow)})
}
