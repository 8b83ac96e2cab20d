package reload

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// endpoints lists everything that inspect serves.
var endpoints = []string{
	"/", "/tree", "/tree?format=text", "/tree?format=sentinel", "/tree?format=json",
	"/nodes", "/nodes?id=orders", "/nodes?notZero=true", "/nodes?limit=1&offset=1",
	"/rules", "/rules?format=yaml", "/rules?format=json",
}

// askAll requests every endpoint and fails unless each responds.
func askAll(t *testing.T, h http.Handler) {
	t.Helper()
	for _, path := range endpoints {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
			if w.Code != http.StatusOK || w.Body.Len() == 0 && method == http.MethodGet {
				t.Errorf("%s %s: %d, %d bytes", method, path, w.Code, w.Body.Len())
			}
		}
	}
}

// Everything is served before rules are loaded, during loads, after a failed load, without rules,
// and after Close. known bug 76
func TestEndpointsAtEveryTime(t *testing.T) {
	g := newGuardOn(t, nil)
	h := g.Handler()
	askAll(t, h)

	var loading sync.WaitGroup
	loading.Go(func() {
		for i := range 300 {
			set := rules.Set{Flow: []flow.Rule{
				{Resource: "orders", Threshold: float64(i)},
				{ID: fmt.Sprint(i), Resource: fmt.Sprint("r", i%10), Origin: "app", Threshold: 1},
			}}
			if err := g.LoadRules(set); err != nil {
				t.Error(err)
			}
			if e, err := g.Entry(t.Context(), fmt.Sprint("r", i%10)); err == nil {
				e.Exit()
			}
		}
	})
	for range 20 {
		askAll(t, h)
	}
	loading.Wait()

	require.Error(t, g.LoadRules(rules.Set{Flow: []flow.Rule{{Resource: "orders", Threshold: -1}}}))
	askAll(t, h)
	require.NoError(t, g.LoadRules(rules.Set{}))
	askAll(t, h)

	path := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(path, version(1), 0o600))
	require.NoError(t, g.WatchRules(t.Context(), path))
	askAll(t, h)
	require.NoError(t, g.Close())
	askAll(t, h)
	askAll(t, g.Handler())
	require.Error(t, g.WatchRules(t.Context(), path), "closed")
	e, err := g.Entry(t.Context(), "anything")
	require.NoError(t, err)
	e.Exit()
	assert.NotEmpty(t, g.Rules().Flow, "the rules stay in force")
}
