package check

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Prometheus loads the alert rules.
func TestAlerts(t *testing.T) {
	groups, errs := rulefmt.ParseFile("../alerts.yaml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	names := make(map[string]bool)
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			assert.False(t, names[rule.Alert], rule.Alert)
			names[rule.Alert] = true
			assert.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			assert.Contains(t, []string{"warning", "critical"}, rule.Labels["severity"])
		}
	}
	assert.GreaterOrEqual(t, len(names), 5)
}

// Prometheus parses each query of the dashboard, with Grafana's variables filled in.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../dashboard.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	variables := strings.NewReplacer("$__rate_interval", "1m", "$job", ".*", "$instance", ".*", "$resource", ".*")
	queries := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			_, err := parser.NewParser(parser.Options{}).ParseExpr(variables.Replace(target.Expr))
			assert.NoError(t, err, panel.Title)
			queries++
		}
	}
	assert.Positive(t, queries)
}
