package rules

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The first load waits for a file that is being written.
func TestFirstLoadWaitsForATornWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		firstRule, _, _ := bytes.Cut(rulesOfSize(2), []byte("\n  - {id: 2"))
		write(t, path, firstRule)
		_, err := Load(path)
		require.NoError(t, err)
		go func() {
			time.Sleep(30 * time.Millisecond)
			write(t, path, rulesOfSize(2))
		}()
		tune := defaultTuning
		tune.notify = newFake().open
		p := startProbe(t, path, tune)
		require.Equal(t, 2, whole(<-p.applied))
		p.Close()
	})
}

func TestFirstLoadGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		path := filepath.Join(t.TempDir(), "rules.yaml")
		write(t, path, rulesOfSize(1))
		var writer sync.WaitGroup
		writer.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				replace(t, path, fmt.Appendf(rulesOfSize(2), "# %d\n", i))
				time.Sleep(30 * time.Millisecond)
			}
		})
		tune := defaultTuning
		tune.notify = newFake().open
		_, err := watch(ctx, path, func(Set) error { return nil }, WatchConfig{}, tune)
		require.ErrorIs(t, err, errUnsettled)
		end()
		writer.Wait()
	})
}
