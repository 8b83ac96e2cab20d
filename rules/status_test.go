package rules

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStatus(t *testing.T) {
	onFakeTime(t, func(t *testing.T, path string, fake *fakeNotifier, p *probe) {
		start := time.Now()
		first := p.Status()
		assert.Len(t, first.Hash, 64)
		assert.Equal(t, Status{Path: path, Watching: true, OK: true, Hash: first.Hash, Rules: 1, LastSuccess: first.LastSuccess, Successes: 1}, first)

		write(t, path, []byte("flow: 1"))
		fake.touch()
		after(settled)
		want := first
		want.OK, want.Failures = false, 1
		want.LastFailure, want.LastError = start.Add(settled), (<-p.reloads).Err
		assert.Equal(t, want, p.Status())

		write(t, path, rulesOfSize(3))
		fake.touch()
		after(settled)
		r := <-p.reloads
		want.OK, want.Successes, want.Rules = true, 2, 3
		want.LastSuccess, want.Hash = r.Time, r.Hash
		assert.Equal(t, want, p.Status())
		assert.NotEqual(t, first.Hash, r.Hash)

		p.Close()
		want.Watching = false
		assert.Equal(t, want, p.Status(), "all else is as it was")
	})
}

func TestReloadLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		write(t, path, rulesOfSize(1))
		fake := newFake()
		tune := defaultTuning
		tune.notify = fake.open
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		w, err := watch(t.Context(), path, func(Set) error { return nil }, WatchConfig{Logger: logger}, tune)
		require.NoError(t, err)
		write(t, path, []byte("flow: 1\nfloww: 2"))
		fake.refuse(errNoSpace)
		fake.touch()
		after(time.Second)
		fake.refuse(nil)
		fake.errors <- fsnotify.ErrEventOverflow
		after(time.Second)
		w.Close()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		for i, want := range []string{
			`level=INFO msg="rule file loaded" path=` + path + ` change="+1 ~0 -0" rules=1 hash=`,
			`level=WARN msg="watching rule file: changes can't be told, polling instead" path=` + path + ` error="no space left on device"`,
			`level=ERROR msg="rule file not loaded, the last good rules stay" path=` + path + ` error="` + path + `:1:7: flow: must be a list of rules, not 1\n`,
			`level=WARN msg="watching rule file: changes may go untold" path=` + path + ` error="fsnotify: queue or buffer overflow"`,
			`level=INFO msg="watching rule file: changes are told again" path=` + path,
		} {
			require.Greater(t, len(lines), i)
			assert.Contains(t, lines[i], want)
		}
		assert.Len(t, lines, 5)
	})
}
