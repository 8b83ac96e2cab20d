package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
)

// A rule that has its window or gauge to itself keeps it when it gets another ID, and a
// rule that gets the ID then has its own. museum 72
func TestRenamedBeyondTheCap(t *testing.T) {
	for _, metric := range []flow.Metric{flow.QPS, flow.Concurrency} {
		for _, mode := range []core.Mode{core.Enforce, core.Shadow} {
			rule := flow.Rule{ID: "api", Resource: "/api/.*", Regex: true, Metric: metric, Threshold: 2, Mode: mode}
			if metric == flow.QPS {
				rule.Interval = time.Minute
			}
			renamed, stranger := rule, rule
			renamed.ID, stranger.Threshold = "renamed", 3
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
			g.load(renamed)
			g.load(renamed, stranger)
			assert.Equal(t, mode == core.Shadow, enter("/api/c"), "%v, %v", metric, mode)
			for _, f := range g.Rules().RuleFigures() {
				if f.ID == "renamed" {
					assert.EqualValues(t, 1, f.Refused+f.Rehearsed, "%v, %v", metric, mode)
				} else {
					assert.Zero(t, f.Refused+f.Rehearsed, "%v, %v", metric, mode)
				}
			}
			for _, e := range in {
				e.Exit()
			}
		}
	}
}
