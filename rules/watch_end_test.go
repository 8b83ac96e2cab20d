package rules

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/patience"
)

func TestWatchFailsFirst(t *testing.T) {
	dir := t.TempDir()
	good, bad, missing := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml"), filepath.Join(dir, "missing.yaml")
	write(t, good, rulesOfSize(1))
	write(t, bad, []byte("flow: 1"))
	refusal := errors.New("refused")
	accept := func(Set) error { return nil }
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		ctx   context.Context
		path  string
		apply func(Set) error
		want  string
	}{
		{t.Context(), missing, accept, "stat " + missing + ": no such file or directory"},
		{t.Context(), dir, accept, dir + ": is a directory, not a file"},
		{t.Context(), bad, accept, bad + ":1:7: flow: must be a list of rules, not 1"},
		{t.Context(), good, func(Set) error { return refusal }, good + ": applying: refused"},
		{ended, good, func(Set) error { t.Error("applied after the end"); return nil }, "context canceled"},
	} {
		w, err := Watch(c.ctx, c.path, c.apply, WatchConfig{OnReload: func(Reload) { t.Error("told") }})
		require.EqualError(t, err, c.want)
		assert.Nil(t, w)
	}
	nothingRuns(t)
}

func TestCloseLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, path, rulesOfSize(1))
	ctx, end := context.WithCancel(t.Context())
	accept := func(Set) error { return nil }
	quiet := WatchConfig{Logger: slog.New(slog.DiscardHandler)}
	closed, err := Watch(t.Context(), path, accept, quiet)
	require.NoError(t, err)
	ended, err := Watch(ctx, path, accept, quiet)
	require.NoError(t, err)
	replace(t, path, rulesOfSize(2))
	closed.Close()
	closed.Close()
	end()
	nothingRuns(t)
	ended.Close()
}

// nothingRuns waits until the goroutines of all watchers have ended.
func nothingRuns(t *testing.T) {
	t.Helper()
	for late := time.Now().Add(patience.Of(t)); ; runtime.Gosched() {
		stacks := make([]byte, 1<<20)
		text := string(stacks[:runtime.Stack(stacks, true)])
		if !strings.Contains(text, "rules.(*fileWatch).run") && !strings.Contains(text, "fsnotify") && !strings.Contains(text, "rules.openDirs") {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("goroutines remain:\n%s", text)
		}
	}
}
