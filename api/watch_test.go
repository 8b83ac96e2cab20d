package api_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

const giveUp = 30 * time.Second

// ruleFile is a file of n rules whose threshold is n. It is old, so that nobody waits for
// it to lie still.
func ruleFile(t testing.TB, name string, n int) (path string) {
	t.Helper()
	text := []byte("flow:\n")
	for i := range n {
		text = fmt.Appendf(text, "  - {resource: resource number %d, threshold: %d}\n", i, n)
	}
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path, long, long))
	return path
}

func byHand(n int) rules.Set {
	return rules.Set{Flow: []flow.Rule{{Resource: "by hand", Threshold: float64(n)}}}
}

// A watch that has ended leaves nothing behind but the rules. known bug 111
func TestEndedWatchLeavesNothing(t *testing.T) {
	g := newGuard(t, api.Config{})
	path := ruleFile(t, "rules.yaml", 2000)
	watch := func(times int) {
		for range times {
			ctx, end := context.WithCancel(t.Context())
			require.NoError(t, g.WatchRules(ctx, path))
			end()
		}
	}
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	const watches, most = 8, 100 << 10 // bytes of heap for each; the rules alone are four times that
	watch(2)
	before, goroutines := heap(), runtime.NumGoroutine()
	watch(watches)
	for late := time.Now().Add(giveUp); ; runtime.Gosched() {
		after, now := heap(), runtime.NumGoroutine()
		if after < before+watches*most && now <= goroutines {
			break
		}
		require.True(t, time.Now().Before(late), "each watch leaves %d KiB; %d goroutines, then %d",
			(after-before)/watches>>10, goroutines, now)
	}
	assert.Len(t, g.Rules().Flow, 2000)
}

// As long as a file is watched nobody else says what the rules are: not another watch, not
// a load. Both fail with an error that names the file. Once its context ends the watch has
// no say any more, even if it has not noticed yet. known bug 112
func TestOneSourceOfRules(t *testing.T) {
	first, second := ruleFile(t, "first.yaml", 1), ruleFile(t, "second.yaml", 2)
	g := newGuard(t, api.Config{})
	refused := func(by string, err error) {
		t.Helper()
		var other *api.SourceError
		require.ErrorAs(t, err, &other)
		assert.Equal(t, by, other.Source)
		assert.ErrorContains(t, err, fmt.Sprintf("%q", by))
	}
	require.NoError(t, g.LoadRules(byHand(1)), "before a watch")
	ctx, end := context.WithCancel(t.Context())
	require.NoError(t, g.WatchRules(ctx, first))
	refused(first, g.WatchRules(t.Context(), second))
	refused(first, g.WatchRules(t.Context(), first))
	refused(first, g.LoadRules(byHand(2)))
	refused(first, g.LoadRulesFile(second))
	assert.Len(t, g.Rules().Flow, 1)
	assert.Equal(t, "resource number 0", g.Rules().Flow[0].Resource)

	end()
	require.NoError(t, g.LoadRules(byHand(2)))
	require.Error(t, g.WatchRules(t.Context(), first+".missing"))
	require.NoError(t, g.LoadRulesFile(first), "a watch that never began")
	require.NoError(t, g.WatchRules(t.Context(), second))
	refused(second, g.LoadRules(byHand(3)))
	assert.Len(t, g.Rules().Flow, 2)
	require.NoError(t, g.Close())
	require.NoError(t, g.LoadRules(byHand(4)))
}

// Goroutines load rules and watch files at once, each until it came through so often.
// While a watch that began has not ended, its rules are in force, whatever the others try.
func TestSourcesAtOnce(t *testing.T) {
	g := newGuard(t, api.Config{})
	const times = 30
	var refused atomic.Int64
	again := func(source func() error) {
		for range times {
			err := source()
			for ; errors.As(err, new(*api.SourceError)); err = source() {
				refused.Add(1)
				runtime.Gosched()
			}
			assert.NoError(t, err)
		}
	}
	var running sync.WaitGroup
	for i := range 4 {
		path := ruleFile(t, "rules.yaml", i+1)
		running.Go(func() {
			again(func() error {
				ctx, end := context.WithCancel(t.Context())
				defer end()
				err := g.WatchRules(ctx, path)
				for range 3 {
					runtime.Gosched()
					if err == nil {
						assert.Len(t, g.Rules().Flow, i+1)
					}
				}
				return err
			})
		})
		running.Go(func() { again(func() error { return g.LoadRules(byHand(i)) }) })
	}
	running.Wait()
	t.Log(refused.Load(), "refused")
}

// A Guard tells how watching stands, also when it is over.
func TestStatusOfAWatch(t *testing.T) {
	g := newGuard(t, api.Config{})
	assert.Zero(t, g.Status())
	require.Error(t, g.WatchRules(t.Context(), filepath.Join(t.TempDir(), "none.yaml")))
	assert.Zero(t, g.Status(), "a watch that never began")

	first, second := ruleFile(t, "first.yaml", 2), ruleFile(t, "second.yaml", 3)
	stands := func(path string, rules int, watching bool) {
		t.Helper()
		s := g.Status()
		assert.Equal(t, path, s.Path)
		assert.Equal(t, rules, s.Rules)
		assert.Equal(t, watching, s.Watching)
		assert.True(t, s.OK)
		assert.EqualValues(t, 1, s.Successes)
		assert.NotEmpty(t, s.Hash)
	}
	ctx, end := context.WithCancel(t.Context())
	require.NoError(t, g.WatchRules(ctx, first))
	stands(first, 2, true)
	end()
	stands(first, 2, false)
	require.Error(t, g.WatchRules(t.Context(), filepath.Join(t.TempDir(), "none.yaml")))
	stands(first, 2, false)
	require.NoError(t, g.WatchRules(t.Context(), second))
	stands(second, 3, true)
	require.NoError(t, g.Close())
	stands(second, 3, false)
}

// A listener may end its watch in the first report, and begin another that fails: the rules
// in force are still those of the first.
func TestStatusOfAWatchThatEndsInItsFirstReport(t *testing.T) {
	g := newGuard(t, api.Config{})
	path := ruleFile(t, "first.yaml", 2)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	g.OnReload(func(r api.Reload) {
		if r.Path == path {
			end()
			assert.Error(t, g.WatchRules(t.Context(), filepath.Join(t.TempDir(), "none.yaml")))
		}
	})
	require.NoError(t, g.WatchRules(ctx, path))
	s := g.Status()
	assert.Equal(t, path, s.Path)
	assert.Equal(t, 2, s.Rules)
	assert.False(t, s.Watching)
}

// One file is watched; more are refused before anything is loaded, and so is none.
func TestWatchedFilesAreOne(t *testing.T) {
	g := newGuard(t, api.Config{})
	assert.EqualError(t, g.WatchRules(t.Context()), `penstock: WatchRules needs the path of a rule file, as in WatchRules(ctx, "rules.yaml")`)
	first, second := ruleFile(t, "first.yaml", 1), ruleFile(t, "second.yaml", 1)
	err := g.WatchRules(t.Context(), first, second)
	require.ErrorContains(t, err, "WatchRules got 2 rule files")
	require.ErrorContains(t, err, second)
	assert.Zero(t, g.Rules().Len())
	require.NoError(t, g.LoadRules(byHand(1)), "nothing is watched")
}
