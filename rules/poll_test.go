package rules

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReloadOnlyByPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		write(t, path, rulesOfSize(1))
		tune := defaultTuning
		tune.notify = func() (*notifier, error) { return nil, errNoSpace }
		p := startProbe(t, path, tune)
		p.waitFor(1)
		require.True(t, p.Status().Polling)
		after(time.Hour)
		for n := 2; n < 5; n++ {
			replace(t, path, rulesOfSize(n))
			after(5*time.Second + quiet)
			require.Equal(t, n, whole(<-p.applied))
		}
		p.Close()
	})
}

// The system may run out of watches and later have some again.
func TestReloadPollsUntilDirectoriesCanBeWatched(t *testing.T) {
	onFakeTime(t, func(t *testing.T, path string, fake *fakeNotifier, p *probe) {
		fake.refuse(errNoSpace)
		after(30 * time.Second)
		require.True(t, p.Status().Polling)
		after(time.Minute)
		write(t, path, rulesOfSize(2))
		after(5*time.Second + quiet)
		require.Equal(t, 2, whole(<-p.applied))
		fake.refuse(nil)
		after(5 * time.Second)
		require.False(t, p.Status().Polling)
		require.NotEmpty(t, fake.WatchList())
	})
}
