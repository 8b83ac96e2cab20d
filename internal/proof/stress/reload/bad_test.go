package reload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/patience"
	"github.com/penstock-go/penstock/rules"
)

// keeps is a good file, whose rules must stay in effect throughout.
const keeps = `flow:
  - {id: none, resource: orders, threshold: 0}
  - {id: some, resource: carts, threshold: 3, interval: 1h}
`

// stands fails unless the rules of keeps are in effect, both the rules shown and the rules that
// decide.
func stands(t *testing.T, g guard, rs *engine.Snapshot, spent int) {
	t.Helper()
	want, err := rules.Parse("", []byte(keeps))
	require.NoError(t, err)
	want.Flow, err = spec.Normalize(core.KindFlow, want.Flow, func(r flow.Rule) (flow.Rule, error) { return r.Normalized(3) })
	require.NoError(t, err)
	assert.Equal(t, want, g.Rules())
	assert.Same(t, rs, g.Engine().Rules())
	_, err = g.Entry(t.Context(), "orders")
	require.ErrorIs(t, err, core.ErrBlocked)
	for range 5 {
		if e, err := g.Entry(t.Context(), "carts"); err == nil {
			spent++
			e.Exit()
		}
	}
	assert.Equal(t, 3, spent, "what has passed counts")
}

// Bad files of every kind, each loaded over a good set: the good one stays, and the error says
// where and what. The parser's errors are listed in package rules. known bug 36, 73
func TestBadFilesLeaveTheGoodSet(t *testing.T) {
	applied := 0
	for _, bad := range badFiles {
		t.Run(bad.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "rules.yaml")
			require.NoError(t, os.WriteFile(path, []byte(keeps), 0o600))
			g := newGuard(t)
			require.NoError(t, g.LoadRulesFile(path))
			e, err := g.Entry(t.Context(), "carts")
			require.NoError(t, err)
			e.Exit()
			rs := g.Engine().Rules()
			require.NoError(t, os.WriteFile(path, []byte(bad.data), 0o600))
			err = g.LoadRulesFile(path)
			reports(t, err, path, bad)
			if err == nil {
				applied++
			}
			stands(t, g, rs, 1)
		})
	}
	figure.Report(t, figure.Figure{Name: "bad rule files that were applied", Value: float64(applied), N: int64(len(badFiles))})
}

// reports fails unless an error is the expected one of a bad file.
func reports(t *testing.T, err error, path string, bad badFile) {
	t.Helper()
	first, ok := errors.AsType[*rules.FileError](err)
	if !assert.True(t, ok, "%s: %v", bad.name, err) {
		return
	}
	assert.Equal(t, path, first.File, bad.name)
	assert.Equal(t, bad.at, fmt.Sprintf("%d:%d", first.Line, first.Column), bad.name)
	problem := first.Problem
	if first.Path != "" {
		problem = first.Path + ": " + problem
	}
	assert.Contains(t, problem, bad.says, bad.name)
}

// The same with a watched file: each bad version is reported and counted once and shown in the
// status, and a good version that follows is applied.
// known bug 73
func TestWatchedBadFilesLeaveTheGoodSet(t *testing.T) {
	type watched struct {
		guard
		*rules.Watcher
		path    string
		reloads chan rules.Reload
		rs      *engine.Snapshot
	}
	all := make([]watched, len(badFiles))
	waitFor := func(i int) rules.Reload {
		select {
		case r := <-all[i].reloads:
			return r
		case <-time.After(patience.Of(t)):
			t.Fatalf("%s: no reload was reported: %+v", badFiles[i].name, all[i].Status())
			return rules.Reload{}
		}
	}
	started := make(chan error)
	for i := range all {
		w := &all[i]
		w.guard = newGuard(t)
		w.path = filepath.Join(t.TempDir(), "rules.yaml")
		require.NoError(t, os.WriteFile(w.path, []byte(keeps), 0o600))
		w.reloads = make(chan rules.Reload, 10)
		go func() {
			var err error
			w.Watcher, err = rules.Watch(t.Context(), w.path, w.LoadRules,
				rules.WatchConfig{Logger: silent, OnReload: func(r rules.Reload) { w.reloads <- r }})
			started <- err
		}()
	}
	for range all {
		require.NoError(t, <-started)
	}
	for i := range all {
		t.Cleanup(all[i].Watcher.Close)
		require.NoError(t, waitFor(i).Err)
		all[i].rs = all[i].Engine().Rules()
		require.NoError(t, os.WriteFile(all[i].path, []byte(badFiles[i].data), 0o600))
	}
	for i, bad := range badFiles {
		w := &all[i]
		r := waitFor(i)
		reports(t, r.Err, w.path, bad)
		assert.True(t, r.Change.Empty(), bad.name)
		stands(t, w.guard, w.rs, 0)
		s := w.Status()
		assert.False(t, s.OK, bad.name)
		assert.Equal(t, r.Err, s.LastError, bad.name)
		assert.Equal(t, []any{uint64(1), uint64(1), 2}, []any{s.Successes, s.Failures, s.Rules}, bad.name)
		require.NoError(t, os.WriteFile(w.path, []byte("flow: []\n"), 0o600))
	}
	for i, bad := range badFiles {
		require.NoError(t, waitFor(i).Err, bad.name)
		assert.Empty(t, all[i].Rules().Flow, bad.name)
		assert.True(t, all[i].Status().OK, bad.name)
	}
}

// Errors of a file itself rather than its contents.
func TestUnreadableFilesLeaveTheGoodSet(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"missing": os.Remove,
		"a directory": func(path string) error {
			return each(func() error { return os.Remove(path) }, func() error { return os.Mkdir(path, 0o700) })
		},
		"a broken link": func(path string) error {
			return each(func() error { return os.Remove(path) }, func() error { return os.Symlink("gone", path) })
		},
		"a link to itself": func(path string) error {
			return each(func() error { return os.Remove(path) }, func() error { return os.Symlink(path, path) })
		},
		"for every user to write":         func(path string) error { return os.Chmod(path, 0o666) },
		"in a directory that was removed": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "dir", "rules.yaml")
			require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, []byte(keeps), 0o600))
			g := newGuard(t)
			require.NoError(t, g.LoadRulesFile(path))
			rs := g.Engine().Rules()
			require.NoError(t, spoil(path))
			require.ErrorContains(t, g.LoadRulesFile(path), path)
			stands(t, g, rs, 0)
		})
	}
}
