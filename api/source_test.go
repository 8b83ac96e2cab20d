package api_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/rules"
)

// inMemory is a source in memory, which is unreachable if it has no document.
type inMemory struct {
	mu  sync.Mutex
	doc rules.Document
}

func (s *inMemory) put(revision, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doc = rules.Document{Data: []byte(text), Revision: revision}
}

func (s *inMemory) Name() string { return "store" }

func (s *inMemory) Next(ctx context.Context, after string) (rules.Document, error) {
	if after != "" {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.doc.Revision {
	case "":
		return rules.Document{}, errors.New("away")
	case after:
		return rules.Document{}, rules.ErrUnchanged
	}
	return s.doc, nil
}

// The rules of a store are in force together with others, even if the store fails; a Guard that
// starts while it is unreachable uses the cache, and the store's first reply replaces the cached
// rules.
func TestWatchSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "cache")
		s := &inMemory{}
		limit := func(g *api.Guard) (limits []float64) {
			for _, r := range g.Rules().Flow {
				limits = append(limits, r.Threshold)
			}
			return limits
		}
		start := func() *api.Guard {
			g := newGuard(t, api.Config{Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, g.LoadRules(byHand(1)))
			began := time.Now()
			require.NoError(t, g.WatchSource(t.Context(), s, api.SourceOptions{Cache: path}))
			require.Less(t, time.Since(began), 6*time.Second)
			return g
		}
		require.Error(t, newGuard(t, api.Config{}).WatchSource(t.Context(), s, api.SourceOptions{}))

		s.put("1", "flow: [{resource: a, threshold: 5}]")
		g := start()
		require.Equal(t, []float64{1, 5}, limit(g))
		s.put("2", "flow: [{resource: a, threshold: 7}]")
		time.Sleep(time.Minute)
		require.Equal(t, []float64{1, 7}, limit(g))
		s.put("", "")
		time.Sleep(time.Hour)
		require.Equal(t, []float64{1, 7}, limit(g))
		assert.False(t, g.Status().OK)
		require.NoError(t, g.Close())

		g = start()
		require.Equal(t, []float64{1, 7}, limit(g))
		assert.NotZero(t, g.Status().Sources[1].Cached)
		s.put("3", "flow: []")
		time.Sleep(time.Minute)
		require.Equal(t, []float64{1}, limit(g), "only an empty list removes rules")
		assert.True(t, g.Status().OK)
		require.NoError(t, g.Close())
	})
}
