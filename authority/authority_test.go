package authority_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/node"
)

func TestMain(m *testing.M) { books.Main(m) }

type guard struct {
	*engine.Engine
	t testing.TB
}

func newGuard(t testing.TB, rules ...authority.Rule) *guard {
	t.Helper()
	return newGuardWith(t, node.Caps{}, rules...)
}

func newGuardWith(t testing.TB, caps node.Caps, rules ...authority.Rule) *guard {
	t.Helper()
	e, err := engine.NewEngine(engine.Config{
		Clock: clocks.NewManual(time.Unix(1_700_000_000, 0)), Chain: trial.Chain(), Caps: caps,
		Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	g := &guard{e, t}
	g.load(rules...)
	books.Keep(t, e)
	t.Cleanup(func() { assert.Zero(t, e.Failures(), "panics in slots") })
	return g
}

func (g *guard) load(rules ...authority.Rule) {
	g.t.Helper()
	require.NoError(g.t, g.Update(func(b *engine.SnapshotBuilder) error { return authority.Compile(b, rules) }))
}

// who returns the rule that refuses a caller, "" if none does.
func (g *guard) who(resource, origin string) string {
	g.t.Helper()
	e, err := g.Enter(engine.WithOrigin(g.t.Context(), origin), resource, nil)
	e.Exit()
	if err == nil {
		return ""
	}
	var block *core.BlockError
	require.ErrorAs(g.t, err, &block)
	assert.Equal(g.t, core.KindAuthority, block.Kind)
	assert.Contains(g.t, []string{resource, node.OverflowName}, block.Resource)
	_, known := block.RetryAfter()
	assert.False(g.t, known)
	_, known = block.Limit()
	assert.False(g.t, known)
	return block.Rule
}

func TestLists(t *testing.T) {
	g := newGuard(t,
		authority.Rule{ID: "white", Resource: "white", Origins: []string{"app-a", "\tapp b \n"}},
		authority.Rule{ID: "anonymous", Resource: "anonymous", Origins: []string{"app-a"}, AllowAnonymous: true},
		authority.Rule{ID: "black", Resource: "black", Origins: []string{"app-a", " app b"}, List: authority.Deny},
		authority.Rule{ID: "off", Resource: "off", Origins: []string{"app-a"}, Mode: spec.Off},
		authority.Rule{ID: "pattern", Resource: "GET /.*", Match: spec.MatchRegex, Origins: []string{"app-a"}},
		authority.Rule{ID: "one", Resource: "both", Origins: []string{"app-a", "app-b"}},
		authority.Rule{ID: "two", Resource: "both", Origins: []string{"app-b"}, List: authority.Deny})
	for _, tt := range []struct{ resource, origin, want string }{
		{"white", "app-a", ""}, {"white", "app b", ""}, {"white", "app-c", "white"}, {"white", "", "white"},
		{"white", "app", "white"}, {"white", "app-aa", "white"}, {"white", "APP-A", "white"},
		{"white", " app-a", "white"}, {"white", "app b ", "white"}, {"white", "app-a,app b", "white"}, {"white", "default", "white"},
		{"anonymous", "", ""}, {"anonymous", "app-a", ""}, {"anonymous", "app-b", "anonymous"},
		{"black", "app-a", "black"}, {"black", "app b", "black"}, {"black", "app-c", ""}, {"black", "", ""}, {"black", "app", ""},
		{"off", "app-c", ""}, {"off", "", ""},
		{"GET /orders", "app-a", ""}, {"GET /orders", "app-b", "pattern"}, {"POST /orders", "app-b", ""},
		{"both", "app-a", ""}, {"both", "app-b", "two"}, {"both", "app-c", "one"},
		{"another", "app-c", ""},
	} {
		assert.Equal(t, tt.want, g.who(tt.resource, tt.origin), "%+v", tt)
	}
}

// known bug 36, 47
func TestRuleRefuses(t *testing.T) {
	for _, tt := range []struct {
		rule authority.Rule
		want string
	}{
		{authority.Rule{Origins: []string{"a"}}, "resource: is required: name the resource that the callers may, or may not, call"},
		{authority.Rule{Resource: "r"}, "origins: is required: an empty allow list admits no caller; to block every call, use a flow rule with threshold 0"},
		{authority.Rule{Resource: "r", List: authority.Deny}, "origins: is required: an empty deny list never refuses a call"},
		{authority.Rule{Resource: "r", Origins: []string{"a", " \t"}}, "origins: entry 2 is empty: to admit callers without an origin, set allowAnonymous"},
		{authority.Rule{Resource: "r", Origins: []string{"a", "b", " a"}}, `origins: has "a" twice: remove one`},
		{authority.Rule{Resource: "r", Origins: []string{"a"}, List: 2}, "list: 2 is unknown: use authority.Allow or authority.Deny"},
		{authority.Rule{Resource: "r", Origins: []string{"a"}, Mode: 3}, "mode: 3 is unknown: use api.Enforce, api.Shadow or api.Off"},
		{authority.Rule{Resource: "r", Origins: []string{"a"}, List: authority.Deny, AllowAnonymous: true},
			"allowAnonymous: has no meaning for a deny list, which always admits callers without an origin: remove it"},
		{authority.Rule{Resource: "a(b", Match: spec.MatchRegex, Origins: []string{"a"}}, `resource: is not a valid regular expression: missing closing ): "a(b"`},
	} {
		_, err := tt.rule.Normalized()
		require.EqualError(t, err, tt.want)
		g := newGuard(t, authority.Rule{ID: "before", Resource: "r", Origins: []string{"x"}})
		err = g.Update(func(b *engine.SnapshotBuilder) error {
			return authority.Compile(b, []authority.Rule{{Resource: "r", Origins: []string{"y"}}, tt.rule})
		})
		require.EqualError(t, err, "authority[1]."+tt.want)
		assert.Equal(t, "before", g.who("r", "y"), "the rules stay")
	}
}

func TestNormalizedLeavesTheRuleAlone(t *testing.T) {
	given := authority.Rule{Resource: "r", Origins: []string{" a ", "b"}}
	got, err := given.Normalized()
	require.NoError(t, err)
	assert.Equal(t, authority.Rule{ID: "authority:r", Resource: "r", Origins: []string{"a", "b"}}, got)
	assert.Equal(t, []string{" a ", "b"}, given.Origins)
	again, err := got.Normalized()
	require.NoError(t, err)
	assert.Equal(t, got, again)

	unique, err := spec.Normalize(core.KindAuthority, []authority.Rule{given, {Resource: "r", Origins: []string{"c"}}, {Resource: "r", List: authority.Deny, Origins: []string{"c"}}}, authority.Rule.Normalized)
	require.NoError(t, err)
	assert.Equal(t, []string{"authority:r", "authority:r#2", "authority:r:deny"}, []string{unique[0].ID, unique[1].ID, unique[2].ID})
	_, err = spec.Normalize(core.KindAuthority, []authority.Rule{given, spec.WithID(got, ""), given}, authority.Rule.Normalized)
	require.EqualError(t, err, "authority: rules 0 and 1 are the same: remove one")
}

// known bug 71
func TestRuleEqualSeesEveryField(t *testing.T) {
	trial.EveryFieldCounts(t, authority.Rule{ID: "r", Resource: "r", Origins: []string{"a"}}, []string{"b"}, spec.Response{Status: 503})
}

func TestListAsText(t *testing.T) {
	for l, want := range map[authority.List]string{authority.Allow: `"allow"`, authority.Deny: `"deny"`} {
		text, err := json.Marshal(l)
		require.NoError(t, err)
		assert.JSONEq(t, want, string(text))
		var back authority.List
		require.NoError(t, json.Unmarshal(text, &back))
		assert.Equal(t, l, back)
	}
	assert.Equal(t, "list(7)", authority.List(7).String())
}

// A shadow rule refuses no call. The stats report both kinds of rules, and survive an edit of a
// list.
func TestShadowAndFigures(t *testing.T) {
	rule := authority.Rule{Resource: "r", Origins: []string{"a"}, Mode: spec.Shadow}
	g := newGuard(t, rule)
	for range 3 {
		assert.Empty(t, g.who("r", "b"))
	}
	assert.Empty(t, g.who("r", "a"))
	assert.Equal(t, []core.RuleStats{{Kind: core.KindAuthority, ID: "authority:r", Resource: "r", Mode: spec.Shadow, Asked: true, ShadowBlocked: 3}}, g.Rules().RuleStats())
	rule.Mode, rule.Origins = spec.Enforce, []string{"a", "c"}
	g.load(rule)
	assert.Equal(t, "authority:r", g.who("r", "b"))
	assert.Empty(t, g.who("r", "c"))
	assert.Equal(t, []core.RuleStats{{Kind: core.KindAuthority, ID: "authority:r", Resource: "r", Asked: true, Refused: 1, ShadowBlocked: 3}}, g.Rules().RuleStats())
	g.load()
	assert.Empty(t, g.who("r", "b"))
}

// Callers are refused beyond the caps as well, where names share a node; and callers named in rules
// have nodes outside the caps.
// known bug 107
func TestBeyondTheCaps(t *testing.T) {
	g := newGuardWith(t, node.Caps{Resources: 1, Origins: 1},
		authority.Rule{ID: "all", Resource: ".*", Match: spec.MatchRegex, Origins: []string{"good", "better"}},
		authority.Rule{ID: "named", Resource: "named", Origins: []string{"good"}})
	for i := range 20 {
		resource := strings.Repeat("x", i+1)
		assert.Equal(t, "all", g.who(resource, "bad"))
		assert.Empty(t, g.who(resource, "good"))
	}
	assert.Equal(t, "named", g.who("named", "better"))
	r, ok := g.FindResource("named")
	require.True(t, ok)
	_, ok = r.Origins().Find("good")
	assert.True(t, ok)
}

// Under reloads every decision is by one list or the other: a caller on both is always admitted,
// one on neither never.
// known bug 66, 69
func TestReloadUnderLoad(t *testing.T) {
	a := authority.Rule{Resource: "r", Origins: []string{"both", "a"}}
	b := authority.Rule{Resource: "r", Origins: []string{"both", "b"}}
	g := newGuard(t, a)
	var stop atomic.Bool
	var callers sync.WaitGroup
	var calls atomic.Int64
	for range 8 {
		callers.Go(func() {
			for !stop.Load() {
				if g.who("r", "both") != "" || g.who("r", "neither") == "" {
					t.Error("a decision by neither list")
					return
				}
				calls.Add(1)
			}
		})
	}
	for range 500 {
		g.load(b)
		g.load(a)
	}
	stop.Store(true)
	callers.Wait()
	t.Log(calls.Load(), "calls")
}
