package api_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/rules/lint"
)

// codes returns the codes of the findings, sorted.
func codes(found []lint.Finding) (all []string) {
	for _, f := range found {
		all = append(all, f.Code)
	}
	slices.Sort(all)
	return all
}

// A guard that has seen calls reports rules that applied to none of them.
func TestLintOfAGuardInUse(t *testing.T) {
	g, err := api.New(api.Config{Clock: api.NewManualClock(time.Unix(1000, 0))})
	require.NoError(t, err)
	defer g.Close()
	set, err := api.ParseRules("r.yaml", []byte(`
system: [{metric: concurrency, threshold: 100}]
hotspot:
  - {id: user, resource: GET /orders, param: user, threshold: 10}
  - {id: tenant, resource: GET /orders, param: tenant, threshold: 10}
flow:
  - {resource: GET /orders, threshold: 100}
  - {resource: GET /order, threshold: 50}
  - {resource: GET /orders, threshold: 10, relation: chain, ref: cron}
  - {resource: GET /orders, threshold: 10, relation: associated, ref: PUT /orders}
`))
	require.NoError(t, err)
	require.NoError(t, g.LoadRules(set))
	found := g.Lint(lint.Options{})
	assert.Equal(t, []string{"PN001", "PN001", "PN001", "PN001", "PN001", "PN001", "PN003", "PN003", "PN005"}, codes(found), "%v", found)

	ctx := api.WithContext(context.Background(), "http")
	e, err := g.Entry(ctx, "GET /orders", api.Param("tenant", "a"))
	require.NoError(t, err)
	e.Exit()
	found = g.Lint(lint.Options{})
	assert.Equal(t, []string{"PN001", "PN003", "PN003", "PN004", "PN005"}, codes(found), "%v", found)
	assert.Contains(t, fmt.Sprint(found), `hotspot[0]: calls don't pass the argument`)
	assert.Contains(t, fmt.Sprint(found), `flow[1]: no call has asked for "GET /order" yet`)

	e, err = g.Entry(api.WithContext(context.Background(), "cron"), "GET /orders", api.Param("user", 7), api.Inbound())
	require.NoError(t, err)
	e.Exit()
	for _, name := range []string{"GET /order", "PUT /orders"} {
		e, err = g.Entry(ctx, name)
		require.NoError(t, err)
		e.Exit()
	}
	assert.Empty(t, g.Lint(lint.Options{}))
}

// The findings in a file are logged once for each content, in at most a few lines.
func TestLintIsLogged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	var bad strings.Builder
	bad.WriteString("flow:\n")
	for i := range 20 {
		bad.WriteString(fmt.Sprintf("  - {id: r%d, resource: r%d, threshold: 0.5}\n", i, i))
	}
	require.NoError(t, os.WriteFile(path, []byte(bad.String()), 0o600))
	var log bytes.Buffer
	g, err := api.New(api.Config{Clock: api.NewManualClock(time.Unix(1000, 0)), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer g.Close()

	require.NoError(t, g.LoadRulesFile(path))
	check := func() {
		t.Helper()
		assert.Equal(t, 5, strings.Count(log.String(), "code=PN009"), log.String())
		assert.Contains(t, log.String(), `at="`+path+`:2:39: flow[0].threshold: a threshold of 0.5 admits nothing`)
		assert.Contains(t, log.String(), "rules=15")
		log.Reset()
	}
	check()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, g.WatchRules(ctx, path))
	check()
}
