package inspect_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/observe/inspect"
	"github.com/penstock-go/penstock/rules"
)

func inForce() rules.Set {
	return rules.Set{Flow: []flow.Rule{{ID: "orders", Resource: "GET /orders", Threshold: 98}}}
}

// ask sends one request. Headers alternate names and values.
func ask(h http.Handler, method, path string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(data)
}

// shopText is the start of the shop's tree as text.
const shopText = "                            last second         last minute             in\nmachine-root  "

func TestHandler(t *testing.T) {
	const text, yaml, json = "text/plain; charset=utf-8", "application/yaml; charset=utf-8", "application/json; charset=utf-8"
	h := inspect.Handler(shop(t).Engine, inForce)
	for _, c := range []struct {
		method, path, accept string
		status               int
		contentType          string
		body                 string // its start
	}{
		{"GET", "/", "", 200, text, "penstock, read-only\n\n/tree "},
		{"GET", "/tree", "", 200, text, shopText},
		{"GET", "/tree", "text/html,*/*;q=0.8", 200, text, shopText},
		{"GET", "/tree?format=text", "application/json", 200, text, shopText},
		{"GET", "/tree?format=sentinel", "", 200, text, "EntranceNode: machine-root(t:1 pq:"},
		{"GET", "/tree?format=json", "", 200, json, `{"at":"2026-03-01T12:00:00.073Z","waiting":0,`},
		{"GET", "/tree", "text/plain, application/json;q=0.9", 200, json, `{"at":"2026-03-01T12:00:00.073Z","waiting":0,`},
		{"GET", "/tree?format=yaml", "", 400, text, `format is "yaml": use one of text, sentinel, json`},
		{"GET", "/nodes", "", 200, json, `[{"name":"GET /orders","kind":"resource",`},
		{"GET", "/nodes?id=sql", "", 200, json, `[{"name":"sql orders.select","kind":"resource",`},
		{"GET", "/nodes?id=none", "", 200, json, `[]`},
		{"GET", "/nodes?notZero=perhaps", "", 400, text, `notZero is "perhaps": use true or false`},
		{"GET", "/nodes?limit=many", "", 400, text, `limit is "many": use a whole number from 0`},
		{"GET", "/nodes?offset=-1", "", 400, text, `offset is "-1": use a whole number from 0`},
		{"GET", "/rules", "", 200, yaml, "flow:\n  - id: orders\n    resource: GET /orders\n"},
		{"GET", "/rules?format=json", "", 200, json, `{"flow":[{"id":"orders",`},
		{"GET", "/rules", "application/json", 200, json, `{"flow":[{"id":"orders",`},
		{"GET", "/rules?format=text", "", 400, text, `format is "text": use one of yaml, json`},
		{"GET", "/none", "", 404, text, "404"},
		{"GET", "/tree/", "", 404, text, "404"},
		{"GET", "/tree/http", "", 404, text, "404"},
		{"GET", "/rules.yaml", "", 404, text, "404"},
	} {
		name := c.method + " " + c.path
		r := ask(h, c.method, c.path, "Accept", c.accept)
		require.Equal(t, c.status, r.StatusCode, name)
		require.Equal(t, c.contentType, r.Header.Get("Content-Type"), name)
		require.Equal(t, "nosniff", r.Header.Get("X-Content-Type-Options"), name)
		require.Equal(t, "no-store", r.Header.Get("Cache-Control"), name)
		require.Regexp(t, "^"+regexp.QuoteMeta(c.body), body(t, r), name)
	}
}

// The compact copies for readers render like [inspect.Snapshot].
func TestRepliesAreTheTree(t *testing.T) {
	overflown := newLab(t, engine.Config{Caps: small, Interval: 3 * time.Second, Buckets: 6})
	for i := range 5 {
		overflown.call(from(fmt.Sprint("context", i), fmt.Sprint("origin", i)), 1+i, time.Millisecond, fmt.Sprint("r", i))
		overflown.clock.Advance(700 * time.Millisecond)
	}
	deep := newLab(t, engine.Config{})
	ctx := from("web", "")
	for i := range 300 {
		e := deep.enter(ctx, fmt.Sprintf("%03d", i), engine.Units(1+i))
		defer e.Exit()
		ctx = e.Context()
	}
	broken := newLab(t, engine.Config{Chain: withBroken()})
	broken.breakers([]breaker.Rule{
		{ID: "b", Resource: "o.*", Match: spec.MatchRegex, MinCalls: 2, Recovery: 5 * time.Second},
		{ID: "a", Resource: "orders", MinCalls: 1, Recovery: time.Second, Mode: spec.Shadow},
	})
	broken.call(anywhere, 1, 0, "orbit")
	broken.call(anywhere, 1, 0, "orders")
	broken.fail("orders")
	hostiles := newLab(t, engine.Config{})
	for name := range hostile {
		hostiles.call(from(name, name), 1, 0, name)
	}
	for name, l := range map[string]*lab{
		"new": newLab(t, engine.Config{}), "shop": shop(t), "overflown": overflown, "deep": deep, "broken": broken, "hostile": hostiles,
		"units": chat(t),
	} {
		t.Run(name, func(t *testing.T) {
			h := inspect.Handler(l.Engine, inForce)
			tree := l.tree()
			all, err := json.Marshal(tree)
			require.NoError(t, err)
			resources := []byte("[]")
			if len(tree.Resources) > 0 {
				resources, err = json.Marshal(tree.Resources)
				require.NoError(t, err)
			}
			for range 2 { // the second time in the memory of the first
				require.Equal(t, text(t, tree), body(t, ask(h, "GET", "/tree")))
				require.Equal(t, sentinel(t, tree), body(t, ask(h, "GET", "/tree?format=sentinel")))
				require.Equal(t, string(all), body(t, ask(h, "GET", "/tree?format=json")))
				require.Equal(t, string(resources), body(t, ask(h, "GET", "/nodes")))
			}
		})
	}
}

func TestHandlerOnlyReads(t *testing.T) {
	l := shop(t)
	h := inspect.Handler(l.Engine, inForce)
	before := text(t, l.tree())
	for _, path := range []string{"/", "/tree", "/nodes", "/rules"} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"} {
			r := ask(h, method, path)
			require.Equal(t, http.StatusMethodNotAllowed, r.StatusCode, "%s %s", method, path)
			require.Equal(t, "GET, HEAD", r.Header.Get("Allow"))
			require.Equal(t, "nosniff", r.Header.Get("X-Content-Type-Options"))
		}
		r := ask(h, "HEAD", path)
		require.Equal(t, http.StatusOK, r.StatusCode)
		require.NotEmpty(t, r.Header.Get("Content-Length"))
	}
	require.Equal(t, before, text(t, l.tree()))
}

func TestHandlerOverTheNetworkSendsNoBodyToHEAD(t *testing.T) {
	server := httptest.NewServer(inspect.Handler(shop(t).Engine, inForce))
	defer server.Close()
	r, err := http.Head(server.URL + "/tree")
	require.NoError(t, err)
	defer r.Body.Close()
	require.Equal(t, http.StatusOK, r.StatusCode)
	require.Positive(t, r.ContentLength)
}

func TestHandlerBelowAPrefix(t *testing.T) {
	h := http.StripPrefix("/debug/penstock", inspect.Handler(shop(t).Engine, inForce))
	require.Equal(t, 200, ask(h, "GET", "/debug/penstock/tree").StatusCode)
	require.Equal(t, 200, ask(h, "GET", "/debug/penstock/").StatusCode)
}

func TestHandlerSaysWhenRulesCannotBeWritten(t *testing.T) {
	h := inspect.Handler(newLab(t, engine.Config{}).Engine, func() rules.Set {
		return rules.Set{Flow: []flow.Rule{{Resource: "a", Threshold: math.Inf(1)}}}
	})
	for _, path := range []string{"/rules", "/rules?format=json"} {
		r := ask(h, "GET", path)
		require.Equal(t, http.StatusInternalServerError, r.StatusCode)
		require.Contains(t, body(t, r), "threshold")
	}
}

func TestHandlerWithHostileNames(t *testing.T) {
	l := newLab(t, engine.Config{})
	for name := range hostile {
		l.call(from(name, name), 1, 0, name)
	}
	l.call(anywhere, 1, 0, "<script>alert(1)</script>")
	h := inspect.Handler(l.Engine, func() rules.Set { return rules.Set{} })

	tree := body(t, ask(h, "GET", "/tree"))
	require.Equal(t, 2+2*(len(hostile)+1), strings.Count(tree, "\n"), "a context and a call each, the root, and the spans")
	require.NotContains(t, tree, "\x1b")
	require.NotContains(t, body(t, ask(h, "GET", "/nodes")), "<script>", "JSON is safe to embed")
	var nodes []jsonNode
	require.NoError(t, json.Unmarshal([]byte(body(t, ask(h, "GET", "/nodes"))), &nodes))
	require.Len(t, nodes, len(hostile)+1)
}

func TestHandlerAnswersManyAtOnceWithWhatHappenedBefore(t *testing.T) {
	l := newLab(t, engine.Config{})
	h := inspect.Handler(l.Engine, inForce)
	var readers sync.WaitGroup
	for i := range 8 {
		name := fmt.Sprint("reader", i)
		readers.Go(func() {
			for round := range 50 {
				e, err := l.Enter(anywhere, name, nil)
				if err != nil {
					t.Error(err)
					return
				}
				e.Exit()
				var nodes []jsonNode
				err = json.NewDecoder(ask(h, "GET", "/nodes?id="+name).Body).Decode(&nodes)
				if err != nil || len(nodes) != 1 || nodes[0].Lifetime.Exited != int64(round+1) {
					t.Errorf("round %d of %s: got %+v, error %v", round, name, nodes, err)
				}
			}
		})
	}
	readers.Wait()
}
