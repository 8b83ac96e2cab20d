package api_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/system"
)

// logged returns a guard and a function for its log lines.
func logged(t *testing.T) (*api.Guard, func() []string) {
	var text bytes.Buffer
	plain := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	g, err := api.New(api.Config{Logger: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: plain}))})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g, func() []string {
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		text.Reset()
		return lines
	}
}

func TestForgottenThresholdsAreWarnedOf(t *testing.T) {
	g, lines := logged(t)
	set := api.RuleSet{
		System:    []system.Rule{{Metric: system.QPS}, {Metric: system.RT, MaxRT: 1}},
		Hotspot:   []hotspot.Rule{{Resource: "a", Param: "user"}},
		Flow:      []flow.Rule{{Resource: "fine", Threshold: 0.1}, {Resource: "a"}, {ID: "mine", Resource: "b"}},
		Isolation: []isolation.Rule{{Resource: "a"}},
		Adaptive:  []adaptive.Rule{{Resource: "a"}},
		Breaker:   []breaker.Rule{{Resource: "a"}},
		Outlier:   []outlier.Rule{{Resource: "a"}, {Resource: "b", Mode: api.Shadow}, {Resource: "c", Mode: api.Off}},
	}
	require.NoError(t, g.LoadRules(set))
	assert.Equal(t, []string{
		`system[0] \"\": threshold is 0, so the rule refuses every inbound call`,
		`hotspot[0] \"a\": threshold is 0, so the rule refuses every value without an exception`,
		`flow[1] \"a\": threshold is 0, so the rule refuses every call`,
		`flow[2] \"mine\": threshold is 0, so the rule refuses every call`,
		`isolation[0] \"a\": threshold is 0, so the rule refuses every call`,
		`breaker[0] \"a\": threshold is 0, so the rule opens at the first bad call`,
		`outlier[0] \"a\": threshold is 0, so the rule ejects an endpoint at its first bad call`,
	}, cut(lines(), `level=WARN msg="penstock: a rule has threshold 0 and refuses every call; set one if it was forgotten" rule="`, `"`))

	set.Flow = append(set.Flow, flow.Rule{Resource: "more"})
	require.NoError(t, g.LoadRules(set))
	assert.Len(t, lines(), 1, "warnings of the last load are not repeated")
	require.NoError(t, g.LoadRules(api.RuleSet{}))
	require.NoError(t, g.LoadRules(set))
	assert.Len(t, lines(), 8, "but when they are loaded again")
}

// cut returns the lines without their common beginning and end.
func cut(lines []string, before, after string) []string {
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(strings.TrimPrefix(line, before), after)
	}
	return lines
}

func TestManyForgottenThresholds(t *testing.T) {
	g, lines := logged(t)
	var set api.RuleSet
	for i := range 5_000 {
		set.Flow = append(set.Flow, flow.Rule{Resource: fmt.Sprint("r", i)})
	}
	require.NoError(t, g.LoadRules(set))
	all := lines()
	require.Len(t, all, 11)
	assert.Equal(t, `level=WARN msg="penstock: more rules have threshold 0" rules=4990`, all[10])
}

// A file must contain the 0, so it is meant.
func TestFilesMeanTheirThresholds(t *testing.T) {
	g, lines := logged(t)
	path := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(path, []byte("flow: [{resource: a, threshold: 0}]\n"), 0o600))
	require.NoError(t, g.LoadRulesFile(path))
	assert.Equal(t, []string{""}, lines())
}
