package docs_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// The code that the pages show stands here too, and so compiles.
var (
	_ = serve
	_ = load
	_ = name
	_ = param
	_ = args
	_ = again
	_ = callee
	_ = pick
)

func orders(w http.ResponseWriter, r *http.Request) {
	e, err := api.Entry(r.Context(), "GET /orders", api.Inbound())
	if err != nil { // a *core.BlockError says which rule
		http.Error(w, err.Error(), http.StatusTooManyRequests)
		return
	}
	defer e.Exit()
	fmt.Fprintln(w, "your orders")
}

func serve(ctx context.Context) error {
	if err := api.WatchRules(ctx, "rules.yaml"); err != nil {
		return err
	}
	http.HandleFunc("GET /orders", orders)
	return http.ListenAndServe("localhost:8080", nil)
}

func load() error {
	err := api.LoadRules(rules.Set{Flow: []flow.Rule{
		{ID: "orders", Resource: "GET /orders", Threshold: 100},
	}})
	return err
}

func name(ctx context.Context) context.Context {
	ctx = api.WithContext(ctx, "http", "mobile") // context http, caller mobile
	return ctx
}

func param(ctx context.Context, userID string) (core.Entry, error) {
	e, err := api.Entry(ctx, "GET /orders", api.Param("user", userID))
	return e, err
}

func args(ctx context.Context, reportName string, from, to time.Time) (core.Entry, error) {
	e, err := api.Entry(ctx, "GET /report", api.Args(reportName, from, to))
	return e, err
}

func again(w http.ResponseWriter, err error) {
	if blocked, ok := errors.AsType[*core.BlockError](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(blocked.RetryAfter().Seconds()))))
	}
}

func callee(ctx context.Context) (core.Entry, error) {
	e, err := api.Entry(ctx, "payments", api.Callee("10.0.0.7:8080"))
	return e, err
}

func pick(ctx context.Context, inTurn []string) (core.Entry, error) {
	for _, addr := range inTurn {
		if slices.Contains(api.Ejected("payments"), addr) {
			continue
		}
		e, err := api.Entry(ctx, "payments", api.Callee(addr))
		if core.KindOf(err) == core.KindOutlier {
			continue
		}
		return e, err
	}
	return core.Entry{}, core.ErrBlocked
}

func TestCodeShown(t *testing.T) {
	source, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	for _, page := range []string{"rules.md", "../README.md"} {
		for _, b := range blocks(t, page) {
			if b.info == "go" {
				assert.Contains(t, unindented(string(source)), unindented(b.text), "%s: this code isn't tested", page)
			}
		}
	}
}

func unindented(code string) string {
	var lines []string
	for line := range strings.Lines(code) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}
