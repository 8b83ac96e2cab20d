package hotspot_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

func tenant(v any) engine.Option { return engine.Param("tenant", v) }

// ofApp makes n calls of a caller, and returns how many pass.
func (g *guard) ofApp(app string, n int, opts ...engine.Option) (passed int) {
	g.t.Helper()
	for range n {
		e, err := g.Enter(engine.WithOrigin(g.t.Context(), app), "orders", opts)
		if e.Exit(); err == nil {
			passed++
		}
	}
	return passed
}

func TestEachCombinationHasItsLimit(t *testing.T) {
	g := newGuard(t, hotspot.Rule{ID: "r", Keys: []string{"param tenant", "origin", "resource"}, Threshold: 2})
	for _, app := range []string{"mobile", "web"} {
		for _, v := range []any{"acme", "globex", 7, "7"} {
			assert.Equal(t, 2, g.ofApp(app, 3, tenant(v)), "%s of %v", app, v)
		}
	}
	assert.Equal(t, 3, g.ofApp("", 3, tenant("acme")), "without the caller the call has no key")
	assert.Equal(t, 3, g.ofApp("web", 3), "nor without the tenant")

	_, err := g.Enter(engine.WithOrigin(t.Context(), "mobile"), "orders", []engine.Option{tenant("acme")})
	var block *core.BlockError
	require.ErrorAs(t, err, &block)
	assert.Equal(t, `"acme", "mobile", "orders"`, block.Value.String())
	d := g.details("r")
	assert.Equal(t, 8, d.Values)
	assert.Equal(t, `"acme", "mobile", "orders"`, d.Top[0].Value)
	assert.Contains(t, d.Lines(start)[0], `8 values; hottest "acme", "mobile", "orders" (2 passed, 2 refused)`)
}

// Of several parts with several values, the first makes keys; of the other its first value counts.
func TestPartsWithSeveralValues(t *testing.T) {
	g := newGuard(t, hotspot.Rule{ID: "r", Keys: []string{"param tenant", "arg 0"}, Threshold: 1})
	many := []engine.Option{tenant([]string{"acme", "globex"}), engine.Args([]int{1, 2})}
	assert.Equal(t, "pass, block", g.outcomes(2, many...))
	for _, tt := range []struct {
		tenant any
		arg    int
		want   string
	}{{"acme", 1, "block"}, {"globex", 1, "block"}, {"acme", 2, "pass"}, {"globex", 2, "pass"}} {
		assert.Equal(t, tt.want, g.outcome(tenant(tt.tenant), engine.Args(tt.arg)), "%v", tt)
	}
	assert.Equal(t, "block", g.outcome(tenant([]string{"initech", "initech"}), engine.Args(1)), "it counts twice")
	assert.Equal(t, "pass", g.outcome(tenant([]string{"hooli"}), engine.Args([]int{1, 2})))
	assert.Equal(t, "block", g.outcome(tenant("hooli"), engine.Args(2)), "a list of one is that value")
}

// A missing part leaves the call without a value, which each treatment sees: shared puts "" in its place.
func TestMissingParts(t *testing.T) {
	for missing, want := range map[hotspot.Missing][3]int{
		hotspot.MissingNone: {3, 3, 3}, hotspot.MissingUnlimited: {3, 3, 3}, hotspot.MissingShared: {1, 1, 1}, hotspot.MissingRefuse: {0, 0, 0},
	} {
		g := newGuard(t, hotspot.Rule{ID: "r", Keys: []string{"param tenant", "origin"}, Threshold: 1, Missing: missing})
		got := [3]int{g.ofApp("", 3, tenant("acme")), g.ofApp("", 3, tenant("globex")), g.ofApp("web", 3)}
		assert.Equal(t, want, got, missing)
		x, err := g.Explain(engine.WithOrigin(t.Context(), "web"), "orders", nil)
		require.NoError(t, err)
		if missing != hotspot.MissingShared {
			assert.Contains(t, x.Rules[0].Why, `the call has no value for "tenant"`, missing)
		}
	}
	g := newGuard(t, hotspot.Rule{ID: "r", Keys: []string{"param tenant", "origin"}, Threshold: 1, Missing: hotspot.MissingShared,
		Exceptions: []hotspot.Exception{named(2, "acme", "")}})
	assert.Equal(t, 2, g.ofApp("", 3, tenant("acme")))
	assert.Equal(t, 1, g.ofApp("", 3, tenant("globex")))
	g = newGuard(t, hotspot.Rule{ID: "r", Keys: []string{"param tenant", "origin"}, Threshold: 1})
	assert.Equal(t, 1, g.ofApp("web", 3, tenant("")), "empty text is a value, unless missing is set")
	for range 100 {
		g.ofApp("", 1)
	}
	x, err := g.Explain(t.Context(), "orders", []engine.Option{tenant("acme")})
	require.NoError(t, err)
	assert.Equal(t, "the call has no origin", x.Rules[0].Why)
	none := newGuard(t, hotspot.Rule{ID: "r", Keys: []string{"param tenant", "origin"}, Threshold: 1})
	assert.Equal(t, "pass", none.outcome(tenant("acme")))
	assert.Equal(t, []string{"no values: no recent call had all of param tenant, origin"}, none.details("r").Lines(start))
}

// The exception with the fewest stars decides, and of two with as many the one that names the first
// part in which they differ, in whatever order they are listed.
func TestTheMostSpecificExceptionDecides(t *testing.T) {
	exceptions := []hotspot.Exception{
		named(1, "*", "*", "orders"), named(2, "*", "web", "*"), named(3, "acme", "*", "*"),
		named(4, "*", "web", "orders"), named(5, "acme", "*", "orders"), named(6, "acme", "web", "*"), named(7, "acme", "web", "orders"),
	}
	for n := len(exceptions); n > 0; n-- {
		for _, reversed := range []bool{false, true} {
			rule := hotspot.Rule{ID: "r", Keys: []string{"param tenant", "origin", "resource"}, Threshold: 9}
			for i := range n {
				if reversed {
					i = n - 1 - i
				}
				rule.Exceptions = append(rule.Exceptions, exceptions[i])
			}
			g := newGuard(t, rule)
			assert.Equal(t, n, g.ofApp("web", 10, tenant("acme")))
			assert.Equal(t, 1, g.ofApp("other", 10, tenant("globex")), "each key has the limit for itself")
			assert.Equal(t, 1, g.ofApp("other", 10, tenant("initech")))
		}
	}
}

// A rule with one key is one about an attachment or an argument: it goes on where that was.
func TestAKeyOfOnePart(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 2})
	assert.Equal(t, "pass", g.outcome(user("ann")))
	g.load(hotspot.Rule{Keys: []string{"param user"}, Threshold: 2, Exceptions: []hotspot.Exception{{Value: hotspot.ValueOf("bob"), Threshold: 3}}})
	assert.Equal(t, "pass, block", g.outcomes(2, user("ann")))
	assert.Equal(t, "pass x3, block", g.outcomes(4, user("bob")))
	g.load(hotspot.Rule{Keys: []string{"arg 0"}, Threshold: 2})
	assert.Equal(t, "pass x2, block", g.outcomes(3, engine.Args("ann")))
	g.load(hotspot.Rule{Keys: []string{"origin"}, Threshold: 2})
	assert.Equal(t, 2, g.ofApp("ann", 3))

	for keys, id := range map[string]string{
		"param user": "hotspot:a:param=user", "arg -1": "hotspot:a:index=-1", "origin": "hotspot:a:keys=origin",
		"param user|origin": "hotspot:a:keys=param user,origin", "param a,origin|resource": `hotspot:a:keys="param a,origin",resource`,
	} {
		r, err := hotspot.Rule{Resource: "a", Keys: strings.Split(keys, "|"), Threshold: 1}.Normalized()
		require.NoError(t, err)
		assert.Equal(t, id, r.ID)
	}
}

// Another order of the parts is another key.
func TestReorderedKeysStartAnew(t *testing.T) {
	rule := hotspot.Rule{ID: "r", Keys: []string{"param tenant", "param user"}, Threshold: 1}
	g := newGuard(t, rule)
	call := []engine.Option{tenant("a"), user("b")}
	assert.Equal(t, "pass, block", g.outcomes(2, call...))
	rule.Exceptions = []hotspot.Exception{named(2, "a", "*")}
	g.load(rule)
	assert.Equal(t, "pass, block", g.outcomes(2, call...), "units used still count")
	rule.Keys, rule.Exceptions = []string{"param user", "param tenant"}, nil
	g.load(rule)
	assert.Equal(t, "pass, block", g.outcomes(2, call...))
}

func TestKeysAllocateNothing(t *testing.T) {
	for _, rule := range []hotspot.Rule{
		{Threshold: 1e9},
		{Threshold: 0},
		{Threshold: 1e9, Metric: hotspot.Concurrency},
		{Threshold: 1e9, Behavior: hotspot.TokenBucket, Burst: 1e6},
		{Threshold: 1, Exceptions: []hotspot.Exception{named(1e9, "acme", "*", "*"), named(1, "acme", "none", "*")}},
	} {
		rule.Keys = []string{"param tenant", "arg 0", "resource"}
		g := newGuard(t, rule)
		opts := []engine.Option{tenant("acme"), engine.Args(1 << 40)}
		race.AllocatesNothing(t, 1000, func() {
			e, err := g.Enter(t.Context(), "orders", opts)
			if e.Exit(); (err != nil) != (rule.Threshold == 0) {
				t.Fatal(err)
			}
		})
	}
}

func TestKeysOfARefusalNameItsParts(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Keys: []string{"param tenant", "arg 0"}, Threshold: 0})
	_, err := g.enter(tenant("acme"), engine.Args(7))
	var block *core.BlockError
	require.ErrorAs(t, err, &block)
	require.Len(t, block.Value.Parts(), 2)
	assert.Equal(t, hotspot.ValueOf("acme"), block.Value.Parts()[0])
	assert.Equal(t, hotspot.ValueOf(7), block.Value.Parts()[1])
}

// Under any concurrency a key gets its limit, whether its text is found or made.
func TestKeysAreExactUnderConcurrency(t *testing.T) {
	for _, behavior := range []hotspot.Behavior{hotspot.Reject, hotspot.TokenBucket} {
		rule := hotspot.Rule{ID: "r", Keys: []string{"param tenant", "arg 0"}, Threshold: 100, Behavior: behavior}
		if rule.Exceptions = []hotspot.Exception{named(50, "a", "*")}; behavior == hotspot.TokenBucket {
			rule.Burst = 99
		}
		g := newGuard(t, rule)
		var passed [2][3]atomic.Int64
		trial.Together(8, func(i int) {
			for n := range 600 {
				one, two := (i+n)%2, n%3
				e, err := g.enter(tenant(string(rune('a'+one))), engine.Args(two))
				if e.Exit(); err == nil {
					passed[one][two].Add(1)
				}
			}
		})
		for two := range 3 {
			want := int64(50)
			if behavior == hotspot.TokenBucket {
				want = 100 // of the burst
			}
			assert.Equal(t, want, passed[0][two].Load())
			assert.Equal(t, int64(100), passed[1][two].Load())
		}
	}
}
