package flow_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
)

// Rules that share a window hold as if each were asked: the lowest limit applies whichever rule has
// it, and a refusal names the first rule without room.
func TestRulesOnOneWindow(t *testing.T) {
	rule := func(id string, threshold float64) flow.Rule {
		return flow.Rule{ID: id, Resource: "orders", Threshold: threshold}
	}
	for name, c := range map[string]struct {
		rules  []flow.Rule
		passes int
		then   []flow.Rule // after those have passed
		by     string
	}{
		"the last is the lowest":      {rules: []flow.Rule{rule("a", 9), rule("b", 7), rule("c", 5)}, passes: 5, by: "c"},
		"the first":                   {rules: []flow.Rule{rule("a", 5), rule("b", 7), rule("c", 9)}, passes: 5, by: "a"},
		"all alike":                   {rules: []flow.Rule{rule("a", 5), rule("b", 5)}, passes: 5, by: "a"},
		"one in shadow mode":          {rules: []flow.Rule{{ID: "s", Resource: "orders", Threshold: 2, Mode: spec.Shadow}, rule("b", 5)}, passes: 5, by: "b"},
		"one is off":                  {rules: []flow.Rule{{ID: "s", Resource: "orders", Threshold: 2, Mode: spec.Off}, rule("b", 5)}, passes: 5, by: "b"},
		"one has another window":      {rules: []flow.Rule{rule("a", 9), {ID: "m", Resource: "orders", Threshold: 4, Interval: time.Minute}, rule("b", 6)}, passes: 4, by: "m"},
		"one refuses all":             {rules: []flow.Rule{rule("a", 9), rule("z", 0)}, passes: 0, by: "z"},
		"one warms up":                {rules: []flow.Rule{{ID: "w", Resource: "orders", Threshold: 12, Behavior: flow.WarmUp}, rule("b", 9)}, passes: 4, by: "w"},
		"lowered, the first declared": {rules: []flow.Rule{rule("a", 9), rule("b", 9)}, passes: 9, then: []flow.Rule{rule("a", 6), rule("b", 5)}, by: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t, c.rules...)
			assert.Equal(t, c.passes, g.passes(20, "orders"))
			if c.then != nil {
				g.load(c.then...)
			}
			_, err := g.Enter(t.Context(), "orders", nil)
			var block *core.BlockError
			require.True(t, errors.As(err, &block))
			assert.Equal(t, c.by, block.Rule)
		})
	}
}
