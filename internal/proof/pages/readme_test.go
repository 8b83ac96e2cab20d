package pages_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/flow"
)

// Code on pages is also here, and so compiles.
var (
	_ = serve
	_ = load
	_ = run
	_ = told
	_ = perUser
	_ = vip
	_ = after
	_ = name
	_ = param
	_ = args
	_ = again
	_ = important
	_ = endpoint
	_ = pick
	_ = failures
	_ = explained
	_ = together
	_ = back
	_ = overridden
	_ = limited
	_ = onNotice
)

func orders(w http.ResponseWriter, r *http.Request) {
	e, err := api.Entry(r.Context(), "GET /orders", api.Inbound())
	if err != nil { // a *api.BlockError names the rule
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
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{
		{ID: "orders", Resource: "GET /orders", Threshold: 100},
	}})
	return err
}

func run(ctx context.Context, db *sql.DB, query, id string) (order string, _ error) {
	err := api.Do(ctx, "sql orders", func(ctx context.Context) error {
		return db.QueryRowContext(ctx, query, id).Scan(&order)
	})
	return order, err
}

func told(ctx context.Context, order string, charge func(context.Context, string) error) {
	err := api.Do(ctx, "payments", func(ctx context.Context) error {
		return charge(ctx, order)
	})
	switch {
	case errors.Is(err, api.ErrBlocked): // a rule refused: charge was not called
	case err != nil: // charge failed, and breakers know
	}
}

func after(ctx context.Context, work func() error) error {
	e, err := api.Entry(ctx, "GET /orders", api.Inbound())
	if err != nil {
		return err
	}
	defer e.Exit()
	if err := work(); err != nil {
		e.Fail(err)
	}
	return nil
}

func name(ctx context.Context) context.Context {
	ctx = api.WithContext(ctx, "http")  // its calls come in through the context http
	ctx = api.WithOrigin(ctx, "mobile") // and are made by mobile
	return ctx
}

func param(ctx context.Context, userID string) (api.Admitted, error) {
	e, err := api.Entry(ctx, "GET /orders", api.Param("user", userID))
	return e, err
}

func onNotice(guard *api.Guard) {
	guard.OnNotice(func(n api.Notice) {
		fmt.Printf("%s: %d of %d units in %v (%d%%)\n", n.Rule, n.Used, n.Limit, n.Interval, n.Percent)
	})
}

func limited(limitOf func(context.Context, string) (float64, error)) (*api.Guard, error) {
	guard, err := api.New(api.Config{
		Limits: func(ctx context.Context, rule string, key argument.Value) (float64, time.Duration, error) {
			user, _ := key.Scalar().(string)
			limit, err := limitOf(ctx, user)
			return limit, time.Minute, err // for a minute; then it is asked again
		},
	})
	return guard, err
}

func onPlan(ctx context.Context, userID string) (api.Admitted, error) {
	e, err := api.Entry(ctx, "GET /orders", api.Param("user", userID), api.Plan("pro"))
	return e, err
}

func args(ctx context.Context, reportName string, from, to time.Time) (api.Admitted, error) {
	e, err := api.Entry(ctx, "GET /report", api.Args(reportName, from, to))
	return e, err
}

func perUser(mux *http.ServeMux, userOf nethttp.Value) http.Handler {
	handler := nethttp.Handler(mux, nethttp.Param("user", userOf)) // userOf is func(*http.Request) string
	return handler
}

func vip(ctx context.Context, mux *http.ServeMux, isVIP func(*http.Request) bool) (http.Handler, api.Admitted, error) {
	handler := nethttp.Handler(mux, nethttp.WithOptions(func(r *http.Request) []api.Option {
		if isVIP(r) {
			return []api.Option{api.Prioritized()}
		}
		return nil
	}))
	e, err := api.Entry(ctx, "POST /reports", api.Prioritized())
	return handler, e, err
}

func again(w http.ResponseWriter, err error) {
	if blocked, ok := errors.AsType[*api.BlockError](err); ok {
		if seconds, known := blocked.RetryAfterIn(time.Second); known {
			w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
		}
	}
}

func important(ctx context.Context) (api.Admitted, error) {
	e, err := api.Entry(ctx, "POST /orders", api.Prioritized()) // the others' go without
	return e, err
}

func endpoint(ctx context.Context) (api.Admitted, error) {
	e, err := api.Entry(ctx, "payments", api.Endpoint("10.0.0.7:8080"))
	return e, err
}

func pick(ctx context.Context, inTurn []string) (api.Admitted, error) {
	for _, addr := range inTurn {
		if slices.Contains(api.Ejected("payments"), addr) {
			continue
		}
		e, err := api.Entry(ctx, "payments", api.Endpoint(addr))
		if api.KindOf(err) == api.KindOutlier {
			continue
		}
		return e, err
	}
	return api.Admitted{}, api.ErrBlocked
}

func failures() {
	api.FailWhen("GET /orders", func(err error) bool {
		return !errors.Is(err, sql.ErrNoRows) && !errors.Is(err, context.Canceled)
	})
}

func explained(ctx context.Context) error {
	x, err := api.Explain(api.WithOrigin(ctx, "acme"), "GET /orders", api.Param("user", "u-17"))
	fmt.Print(x)
	return err
}

func together(ctx context.Context) error {
	err := api.WatchRules(ctx, "base.yaml", "orders.yaml", "rules.d")
	return err
}

func overridden(ctx context.Context) error {
	api.AllowOverrides()
	err := api.WatchRules(ctx, "base.yaml", "orders.yaml")
	return err
}

func back() {
	guard := api.Default() // of api.WatchRules and the like; or your own, of api.New
	for _, r := range guard.Revisions() {
		fmt.Println(r) // 7 6b3d0f9a51c2 +0 ~1 -0 orders.yaml
		fmt.Print(r.Change.Text())
	}
}

var (
	imports = regexp.MustCompile(`(?s)^import (?:\(.*?\n\)|[^\n]*)\n+`)
	dots    = regexp.MustCompile(`(?m)^(?:// )?\.\.\.\n`)
)

// Code on a page is also in a Go file, which is compiled: each part between dots in one piece;
// imports may be elsewhere.
func TestCodeShown(t *testing.T) {
	t.Chdir(docs)
	sources := goFiles(t)
	for _, page := range pagesWithCommands(t) {
		for _, b := range blocks(t, page) {
			if b.info != "go" {
				continue
			}
			text := b.text
			if !strings.HasPrefix(text, "package ") {
				text = imports.ReplaceAllString(text, "")
			}
			for _, part := range dots.Split(unindented(text), -1) {
				assert.True(t, slices.ContainsFunc(sources, func(source string) bool { return strings.Contains(source, part) }),
					"%s: no Go file contains this:\n%s", page, part)
			}
		}
	}
}

// goFiles returns the texts of all Go files in the repository.
func goFiles(t *testing.T) (texts []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 2 && d.Name()[0] == '.'):
			return filepath.SkipDir
		case filepath.Ext(path) == ".go":
			text, err := os.ReadFile(path)
			texts = append(texts, unindented(string(text)))
			return err
		}
		return nil
	}))
	return texts
}

func unindented(code string) string {
	var lines []string
	for line := range strings.Lines(code) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

// The slots in slots.md match the example, which runs.
func TestSlotsShownAreTheExample(t *testing.T) {
	t.Chdir(docs)
	example, err := os.ReadFile("../examples/customslot/main.go")
	require.NoError(t, err)
	shown := 0
	for _, b := range blocks(t, "slots.md") {
		if strings.HasPrefix(b.text, "type ") {
			assert.Contains(t, string(example), b.text)
			shown++
		}
	}
	assert.Equal(t, 1, shown)
}
