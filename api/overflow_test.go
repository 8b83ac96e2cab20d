package api_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// Names beyond the cap are still counted, and still limited, together.
// known bug 107
func TestOverflowStillLimits(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	set := []flow.Rule{
		{ID: "each", Resource: "GET .*", Match: spec.MatchRegex, Threshold: 3},
		{ID: "posts", Resource: "POST .*", Match: spec.MatchRegex, Threshold: 1},
	}
	g := newGuard(t, api.Config{Clock: clock, Caps: node.Caps{Resources: 2}}, set...)
	admitted := func(name string, n int) (passed int) {
		for i := range n {
			e, err := g.Entry(t.Context(), fmt.Sprintf(name, i))
			if err == nil {
				passed++
			}
			e.Exit()
		}
		return passed
	}
	assert.Equal(t, 2, admitted("GET /%d", 2), "within the cap each name has its own limit")
	assert.Equal(t, 3, admitted("GET /x%d", 100), "beyond it, all of them have one")
	assert.Equal(t, 1, admitted("POST /%d", 100), "of the rule for their names")
	assert.Equal(t, 5, admitted("PUT /%d", 5), "if there is one")

	set[0].Threshold = 4
	require.NoError(t, g.LoadRules(rules.Set{Flow: set}))
	assert.Equal(t, 1, admitted("GET /y%d", 100), "a reload forgets nothing")

	overflow, ok := g.Tree().Resource(node.OverflowName)
	require.True(t, ok)
	assert.True(t, overflow.Overflow)
	assert.EqualValues(t, 3+1+5+1, overflow.Lifetime.Pass)
	assert.Positive(t, g.Tree().Caps.Resources.Overflows)
}
