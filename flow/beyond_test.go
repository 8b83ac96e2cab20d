package flow_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
)

// Who is in flight beyond the cap counts on when the rule gets another ID, or is switched
// off for a while, in force or rehearsed. Another rule that has the old ID then has nothing
// to do with it. museum 72
func TestReloadBeyondTheCap(t *testing.T) {
	for _, mode := range []core.Mode{core.Enforce, core.Shadow} {
		rule := flow.Rule{ID: "api", Resource: "/api/.*", Regex: true, Metric: flow.Concurrency, Threshold: 2, Mode: mode}
		renamed, stranger, off := rule, rule, rule
		renamed.ID, stranger.Threshold, off.Mode = "renamed", 3, core.Off
		for name, loads := range map[string][][]flow.Rule{
			"renamed":                      {{renamed}},
			"and back":                     {{renamed}, {rule}},
			"and another gets the ID":      {{renamed}, {renamed, stranger}},
			"off for a while":              {{off}, {rule}},
			"off for two loads":            {{off}, {off, {Resource: "other", Threshold: 100}}, {rule}},
			"renamed while it was off":     {{off}, {renamed}},
			"more, and off, and as it was": {{stranger}, {off}, {rule}},
		} {
			t.Run(mode.String()+"/"+name, func(t *testing.T) {
				g := newGuardWith(t, core.Config{Caps: node.Caps{Resources: 1}}, rule)
				var in []core.Entry
				enter := func(name string) bool {
					e, err := g.Enter(t.Context(), name, nil)
					in = append(in, e)
					return err == nil
				}
				for _, name := range []string{"other", "/api/a", "/api/b"} {
					require.True(t, enter(name))
				}
				for _, rules := range loads {
					g.load(rules...)
				}
				assert.Equal(t, mode == core.Shadow, enter("/api/c"))
				refused := int64(0)
				for _, f := range g.Rules().RuleFigures() {
					if f.ID == loads[len(loads)-1][0].ID {
						refused = f.Refused + f.Rehearsed
					}
				}
				assert.EqualValues(t, 1, refused)
				for _, e := range in {
					e.Exit()
				}
			})
		}
	}
}
