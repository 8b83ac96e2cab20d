package api_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/patience"
	"github.com/penstock-go/penstock/rules"
)

// ruleFile writes a file of n rules whose threshold is n. It is old, so that no watch waits for it
// to settle.
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

// A watch that has ended leaves nothing behind but the rules.
// known bug 111
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
	for late := time.Now().Add(patience.Of(t)); ; runtime.Gosched() {
		after, now := heap(), runtime.NumGoroutine()
		if after < before+watches*most && now <= goroutines {
			break
		}
		require.True(t, time.Now().Before(late), "each watch leaves %d KiB; %d goroutines, then %d",
			(after-before)/watches>>10, goroutines, now)
	}
	assert.Len(t, g.Rules().Flow, 2000)
}

// The rules that code loads and the rules of every watch are in force together. A source can be
// declared only once at a time, and an id in two sources is an error of the later one, which names
// both. Once its context ends a watch has no effect, even if it has not noticed yet, and the next
// load leaves its rules out.
// known bug 112
func TestSourcesTogether(t *testing.T) {
	first, second := ruleFile(t, "first.yaml", 1), ruleFile(t, "second.yaml", 2)
	other := filepath.Join(t.TempDir(), "other.yaml")
	require.NoError(t, os.WriteFile(other, []byte("flow: [{resource: other, threshold: 1}]"), 0o600))
	g := newGuard(t, api.Config{})
	inForce := func(resources ...string) {
		t.Helper()
		var have []string
		for _, r := range g.Rules().Flow {
			have = append(have, r.Resource)
		}
		assert.Equal(t, resources, have)
	}
	declared := func(by string, err error) {
		t.Helper()
		var other *api.SourceError
		require.ErrorAs(t, err, &other)
		assert.Equal(t, by, other.Source)
		assert.ErrorContains(t, err, fmt.Sprintf("%q", by))
	}
	require.NoError(t, g.LoadRules(byHand(1)))
	ctx, end := context.WithCancel(t.Context())
	require.NoError(t, g.WatchRules(ctx, first, other))
	inForce("by hand", "resource number 0", "other")
	declared(first, g.WatchRules(t.Context(), first))
	declared(other, g.WatchRules(t.Context(), second, other))
	assert.EqualError(t, g.WatchRules(t.Context(), second), second+":2:5: flow[0]: the id \"flow:resource number 0\" is also that of flow[0] in "+
		first+":2:5: give each its own, remove one, or declare that the later source wins")
	assert.EqualError(t, g.LoadRulesFile(second), second+":2:5: flow[0]: the id \"flow:resource number 0\" is also that of flow[0] in "+
		first+":2:5: give each its own, remove one, or declare that the later source wins")
	inForce("by hand", "resource number 0", "other")
	require.NoError(t, g.LoadRules(byHand(2)))
	inForce("by hand", "resource number 0", "other")
	assert.Equal(t, 2.0, g.Rules().Flow[0].Threshold)

	end()
	inForce("by hand", "resource number 0", "other")
	require.Error(t, g.WatchRules(t.Context(), first+".missing"))
	inForce("by hand", "resource number 0", "other")
	require.NoError(t, g.LoadRules(byHand(2)), "a watch that never began")
	inForce("by hand")
	require.NoError(t, g.LoadRulesFile(first))
	inForce("resource number 0")
	require.NoError(t, g.WatchRules(t.Context(), first), "which is loaded from the same file")
	inForce("resource number 0")
	require.NoError(t, g.LoadRules(byHand(3)))
	inForce("by hand", "resource number 0")
	require.NoError(t, g.Close())
	require.NoError(t, g.LoadRules(byHand(4)))
	inForce("by hand")
}

// Goroutines load rules and watch files at once, each source in its own way. While a watch runs, its
// rules are in force, regardless of the others, and so are rules loaded by code.
// known bug 112
func TestSourcesAtOnce(t *testing.T) {
	g := newGuard(t, api.Config{})
	const times = 30
	has := func(resource string, threshold float64) bool {
		for _, r := range g.Rules().Flow {
			if r.Resource == resource && (threshold < 0 || r.Threshold == threshold) {
				return true
			}
		}
		return false
	}
	var running sync.WaitGroup
	for i := range 4 {
		resource := fmt.Sprint("watched ", i)
		path := ruleFile(t, "rules.yaml", 1)
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "flow: [{resource: %s, threshold: 1}]", resource), 0o600))
		long := time.Now().Add(-time.Hour)
		require.NoError(t, os.Chtimes(path, long, long))
		running.Go(func() {
			for range times {
				ctx, end := context.WithCancel(t.Context())
				assert.NoError(t, g.WatchRules(ctx, path))
				for range 3 {
					runtime.Gosched()
					assert.True(t, has(resource, 1))
				}
				assert.Contains(t, g.Status().Source, path)
				end()
			}
		})
	}
	running.Go(func() {
		for i := range 4 * times {
			assert.NoError(t, g.LoadRules(byHand(i)))
			assert.True(t, has("by hand", float64(i)))
		}
	})
	running.Wait()
	for i, r := range g.Revisions() {
		assert.Equal(t, g.Revisions()[0].Number+uint64(i), r.Number)
	}
}

// A Guard reports the state of a watch, even after it has ended.
func TestStatusOfAWatch(t *testing.T) {
	g := newGuard(t, api.Config{})
	assert.Zero(t, g.Status())
	require.Error(t, g.WatchRules(t.Context(), filepath.Join(t.TempDir(), "none.yaml")))
	assert.Zero(t, g.Status(), "a watch that never began")

	first, second := ruleFile(t, "first.yaml", 2), ruleFile(t, "second.yaml", 3)
	stands := func(path string, rules int, watching bool) {
		t.Helper()
		s := g.Status()
		assert.Equal(t, path, s.Source)
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

// A listener may end its watch in the first report, and begin another that fails: the first watch's
// rules stay in force.
func TestStatusOfAWatchThatEndsInItsFirstReport(t *testing.T) {
	g := newGuard(t, api.Config{})
	path := ruleFile(t, "first.yaml", 2)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	g.OnReload(func(r api.Reload) {
		if r.Source == path {
			end()
			assert.Error(t, g.WatchRules(t.Context(), filepath.Join(t.TempDir(), "none.yaml")))
		}
	})
	require.NoError(t, g.WatchRules(ctx, path))
	s := g.Status()
	assert.Equal(t, path, s.Source)
	assert.Equal(t, 2, s.Rules)
	assert.False(t, s.Watching)
}

func TestNothingToWatch(t *testing.T) {
	g := newGuard(t, api.Config{})
	assert.EqualError(t, g.WatchRules(t.Context()), `penstock: nothing to watch: give the path of a rule file or of a directory, as in WatchRules(ctx, "rules.yaml")`)
}
