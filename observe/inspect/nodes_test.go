package inspect_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/observe/inspect"
)

func TestHandlerPagesNodes(t *testing.T) {
	l := newLab(t, engine.Config{})
	for i := range 1500 {
		l.call(anywhere, 1, 0, fmt.Sprintf("r%04d", i))
	}
	h := inspect.Handler(l.Engine, inForce)
	for _, c := range []struct {
		query, total string
		size         int
		first        string
	}{
		{"", "1500", 1000, "r0000"},
		{"limit=1", "1500", 1, "r0000"},
		{"limit=0", "1500", 0, ""},
		{"limit=99999", "1500", 1500, "r0000"},
		{"offset=1400", "1500", 100, "r1400"},
		{"offset=1500", "1500", 0, ""},
		{"offset=2147483647", "1500", 0, ""},
		{"id=42", "35", 35, "r0042"},
		{"id=42&limit=2&offset=1", "35", 2, "r0142"},
	} {
		r := ask(h, "GET", "/nodes?"+c.query)
		require.Equal(t, c.total, r.Header.Get("X-Total-Count"), c.query)
		var nodes []jsonNode
		require.NoError(t, json.Unmarshal([]byte(body(t, r)), &nodes))
		require.Len(t, nodes, c.size, c.query)
		if c.size > 0 {
			require.Equal(t, c.first, nodes[0].Name)
		}
	}
}

func TestHandlerLeavesOutNodesThatAreZero(t *testing.T) {
	l := newLab(t, engine.Config{})
	l.rules(flow.Rule{Resource: "blocked", Threshold: 0})
	l.call(anywhere, 1, 0, "old")
	l.clock.Advance(2 * 60e9)
	l.call(anywhere, 1, 0, "new")
	l.blocked(anywhere, 1, "blocked")
	h := inspect.Handler(l.Engine, inForce)
	for query, want := range map[string][]string{
		"":              {"blocked", "new", "old"},
		"notZero=false": {"blocked", "new", "old"},
		"notZero=true":  {"blocked", "new"},
	} {
		var nodes []jsonNode
		require.NoError(t, json.Unmarshal([]byte(body(t, ask(h, "GET", "/nodes?"+query))), &nodes))
		var names []string
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		require.Equal(t, want, names, query)
	}
}
