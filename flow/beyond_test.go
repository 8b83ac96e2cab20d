package flow_test

import (
	"testing"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// known bug 72
func TestReloadBeyondTheCap(t *testing.T) {
	trial.BeyondTheCap(t, func(b *engine.SnapshotBuilder, limits []trial.Limit) error {
		var rules []flow.Rule
		for _, l := range limits {
			rules = append(rules, flow.Rule{ID: l.ID, Resource: l.Resource, Match: spec.MatchRegex, Metric: flow.Concurrency, Threshold: float64(l.Units), Mode: l.Mode})
		}
		return flow.Compile(b, rules)
	})
}
