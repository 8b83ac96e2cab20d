package migrating_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	sentinel "github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	sentinelbreaker "github.com/alibaba/sentinel-golang/core/circuitbreaker"
	sentinelflow "github.com/alibaba/sentinel-golang/core/flow"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
)

var _ = before

// written is the code that docs/migrating.md shows for rules in Go.
func written(flowRules []*sentinelflow.Rule, breakerRules []*sentinelbreaker.Rule) ([]byte, error) {
	return json.MarshalIndent(map[string]any{
		"flowRules":           flowRules,
		"circuitBreakerRules": breakerRules,
	}, "", "  ")
}

// Rules in Go, written this way, equal those of the file.
func TestRulesInGo(t *testing.T) {
	text, err := written([]*sentinelflow.Rule{
		{Resource: "GET /orders", Threshold: 10, StatIntervalInMs: 1000},
		{Resource: "POST /reports", Threshold: 5, ControlBehavior: sentinelflow.Throttling, MaxQueueingTimeMs: 2000},
	}, []*sentinelbreaker.Rule{
		{Resource: "payments", Strategy: sentinelbreaker.ErrorCount, Threshold: 5, RetryTimeoutMs: 10_000, StatIntervalMs: 10_000},
	})
	require.NoError(t, err)
	of := filepath.Join(t.TempDir(), "rules.json")
	require.NoError(t, os.WriteFile(of, text, 0o600))
	want := guardOf(t, "sentinel.json", api.Config{}).Rules()
	assert.Equal(t, want, guardOf(t, of, api.Config{}).Rules())
}

// before is the sentinel-golang code that docs/migrating.md shows.
func before(work func() error) error {
	e, blocked := sentinel.Entry("GET /orders", sentinel.WithTrafficType(base.Inbound))
	if blocked != nil {
		return blocked
	}
	if err := work(); err != nil {
		sentinel.TraceError(e, err)
	}
	e.Exit()
	return nil
}
