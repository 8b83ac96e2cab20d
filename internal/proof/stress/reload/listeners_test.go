package reload

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/patience"
	"github.com/penstock-go/penstock/rules"
)

func writeVersion(t testing.TB, name string, n int64) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, version(n), 0o600))
	return path
}

// finishes fails if f does not return.
func finishes(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(patience.Of(t)):
		t.Fatalf("%s hangs", what)
	}
}

// A listener may do anything except wait for itself: read the rules and the tree, make calls, try
// to load rules, end the watch that notifies it, and then load rules and watch another file. known
// bug 60, 75
func TestListenerReenters(t *testing.T) {
	first, second := writeVersion(t, "first.yaml", 1), writeVersion(t, "second.yaml", 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var g *api.Guard
	var notified atomic.Int64
	listen := func(r rules.Reload) {
		notified.Add(1)
		assert.NoError(t, r.Err)
		assert.NotEmpty(t, g.Rules().Flow)
		g.Tree()
		e, _ := g.Entry(ctx, "orders")
		e.Exit()
		if r.Source != first {
			return
		}
		byHand := rules.Set{Flow: []flow.Rule{{Resource: "orders"}}}
		assert.ErrorAs(t, g.WatchRules(t.Context(), first), new(*api.SourceError))
		assert.ErrorContains(t, g.WatchRules(t.Context(), second), "in "+first, "which has a rule of the same id")
		assert.NoError(t, g.LoadRules(byHand))
		assert.Greater(t, g.Rules().Len(), 1)
		cancel()
		assert.NoError(t, g.LoadRules(byHand))
		assert.Equal(t, 1, g.Rules().Len(), "a load should replace the rules of an ended watch")
		assert.NoError(t, g.LoadRulesFile(second))
		assert.NoError(t, g.WatchRules(t.Context(), second))
	}
	g, err := api.New(api.Config{Logger: silent})
	require.NoError(t, err)
	g.OnReload(listen)
	finishes(t, "a listener that watches another file", func() { assert.NoError(t, g.WatchRules(ctx, first)) })
	assert.Equal(t, int64(2), notified.Load())
	finishes(t, "Close", func() { assert.NoError(t, g.Close()) })
}

// Files are watched one after the other, while earlier watches may still be reporting. Nothing
// waits forever, no listener is notified after the end, and Close leaves nothing behind. known bug
// 75, 108
func TestWatchersComeAndGoWhileTheyTell(t *testing.T) {
	paths := []string{writeVersion(t, "a.yaml", 1), writeVersion(t, "b.yaml", 2), writeVersion(t, "c.yaml", 3)}
	var closed atomic.Bool
	g, err := api.New(api.Config{Logger: silent})
	require.NoError(t, err)
	g.OnReload(func(rules.Reload) {
		assert.False(t, closed.Load(), "notified after Close")
	})
	var running sync.WaitGroup
	for _, path := range paths {
		running.Go(func() {
			for i := range 3 {
				ctx, cancel := context.WithCancel(t.Context())
				err := g.WatchRules(ctx, path)
				for errors.As(err, new(*rules.FileError)) { // another watch has rules with the same ids
					runtime.Gosched()
					err = g.WatchRules(ctx, path)
				}
				assert.NoError(t, err)
				assert.NoError(t, rename(path, version(int64(i))))
				cancel()
			}
		})
	}
	finishes(t, "watching", running.Wait)
	require.NoError(t, g.WatchRules(t.Context(), paths[0]))
	require.NoError(t, rename(paths[0], version(9)))
	finishes(t, "Close", func() { assert.NoError(t, g.Close()) })
	closed.Store(true)
	finishes(t, "Close again", func() { assert.NoError(t, g.Close()) })
}

// Close during the first load of a file ends the load, and nothing of it stays. known bug 108
func TestCloseDuringTheFirstLoad(t *testing.T) {
	path := writeVersion(t, "rules.yaml", 1)
	telling, end := make(chan struct{}), make(chan struct{})
	g, err := api.New(api.Config{Logger: silent})
	require.NoError(t, err)
	g.OnReload(func(rules.Reload) {
		close(telling)
		<-end
	})
	var watching, closing sync.WaitGroup
	var over atomic.Bool
	watching.Go(func() { assert.Error(t, g.WatchRules(t.Context(), path)) })
	<-telling
	closing.Go(func() {
		assert.NoError(t, g.Close())
		assert.True(t, over.Load(), "Close has not waited for the listener")
	})
	finishes(t, "a look at a Guard that is being closed", func() {
		for {
			g.Rules()
			if err := g.WatchRules(t.Context(), path+".none"); strings.Contains(err.Error(), "closed") {
				return
			}
		}
	})
	for range 1000 {
		runtime.Gosched() // gives Close the time to return, if it doesn't wait
	}
	over.Store(true)
	close(end)
	finishes(t, "Close", closing.Wait)
	finishes(t, "WatchRules", watching.Wait)
}
