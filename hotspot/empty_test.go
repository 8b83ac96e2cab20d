package hotspot_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/hotspot"
)

// Empty text is a value, which all calls that have it share, unless the rule ignores it:
// then it is none, alone and among others, however it is given, and nothing of it is known.
func TestEmptyText(t *testing.T) {
	type name string
	param := func(v any) core.Option { return core.Param("user", v) }
	arg := func(v any) core.Option { return core.Args(v) }
	for _, tt := range []struct {
		name string
		rule hotspot.Rule
		call func(v any) core.Option
	}{
		{"an attachment", hotspot.Rule{Param: "user"}, param},
		{"an argument", hotspot.Rule{Index: hotspot.At(0)}, arg},
		{"turns", hotspot.Rule{Param: "user", Behavior: hotspot.Throttle, MaxWait: 1}, param},
		{"in flight", hotspot.Rule{Param: "user", Metric: hotspot.Concurrency}, param},
	} {
		for _, nothing := range []any{"", name(""), []byte{}, []string{""}, new(string)} {
			for _, mode := range []spec.Mode{spec.Enforce, spec.Shadow} {
				t.Run(fmt.Sprintf("%s, %T, %v", tt.name, nothing, mode), func(t *testing.T) {
					rule := tt.rule
					rule.ID, rule.Threshold, rule.Mode = "r", 1, mode
					refused := func(g *guard) int64 {
						f := g.figures("r")
						return f.Refused + f.ShadowBlocked
					}
					counted := newGuard(t, rule)
					for range 3 { // those that stay are there for concurrency
						e, _ := counted.enter(tt.call(nothing))
						defer e.Exit()
					}
					assert.Positive(t, refused(counted))
					assert.Equal(t, 1, counted.details("r").Values)

					rule.IgnoreEmpty = true
					g := newGuard(t, rule)
					for range 3 {
						e, err := g.enter(tt.call(nothing))
						assert.NoError(t, err)
						defer e.Exit()
					}
					assert.Zero(t, refused(g))
					assert.Zero(t, g.details("r").Values)
					e, err := g.enter(tt.call([]string{"", "ann", ""})) // once
					assert.NoError(t, err)
					defer e.Exit()
					assert.Equal(t, 1, g.details("r").Values)
					e, _ = g.enter(tt.call("ann"))
					defer e.Exit()
					assert.Equal(t, int64(1), refused(g))
				})
			}
		}
	}
}

// A rule that comes to ignore empty text forgets no other value.
func TestEmptyTextAfterAReload(t *testing.T) {
	rule := hotspot.Rule{ID: "r", Param: "user", Threshold: 1}
	g := newGuard(t, rule)
	assert.Equal(t, "pass, block", g.outcomes(2, user("")))
	assert.Equal(t, "pass, block", g.outcomes(2, user("ann")))
	rule.IgnoreEmpty = true
	g.load(rule)
	assert.Equal(t, "pass x2", g.outcomes(2, user("")))
	assert.Equal(t, "block", g.outcomes(1, user("ann")))
	rule.IgnoreEmpty = false
	g.load(rule)
	assert.Equal(t, "block", g.outcomes(1, user("")), "it was not filled up meanwhile")
}
