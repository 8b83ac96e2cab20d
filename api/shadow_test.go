package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
)

// A shadow rule that looks at another resource sees what really passes there.
func TestShadowAssociatedRuleLooksAtTheRealTraffic(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	for name, metric := range map[string]flow.Metric{"qps": flow.QPS, "concurrency": flow.Concurrency} {
		g := newGuard(t, api.Config{Clock: clock}, flow.Rule{
			ID: "try", Resource: "read", Metric: metric, Threshold: 2,
			Relation: flow.Associated, Ref: "write", Mode: spec.Shadow,
		})
		for range 2 {
			e, err := g.Entry(t.Context(), "write")
			require.NoError(t, err)
			defer e.Exit()
		}
		e, err := g.Entry(t.Context(), "read")
		require.NoError(t, err, name)
		e.Exit()
		assert.EqualValues(t, 1, g.Tree().Rules[0].ShadowBlocked, name)
	}
}
