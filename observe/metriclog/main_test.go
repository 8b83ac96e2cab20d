package metriclog

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

var start = time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)

// newLogged returns a guard that rejects calls of "closed", with its log.
func newLogged(t testing.TB, clock *clocks.Manual, config Config, rules ...flow.Rule) (*api.Guard, *Log) {
	t.Helper()
	clock.SetSleep(clocks.SleepAdvance)
	e, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler), Chain: Chain()})
	require.NoError(t, err)
	rules = append(rules, flow.Rule{ID: "shut", Resource: "closed", Threshold: 0})
	require.NoError(t, e.LoadRules(api.RuleSet{Flow: rules}))
	if config.Dir == "" {
		config.Dir = t.TempDir()
	}
	if config.App == "" {
		config.App = "shop"
	}
	if config.Location == nil {
		config.Location = time.UTC
	}
	l, err := Start(e, config)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		require.NoError(t, e.Close())
	})
	return e, l
}

// call makes n calls of a resource that take no time, and returns the last error.
func call(t testing.TB, e *api.Guard, resource string, n int, opts ...api.Option) (err error) {
	t.Helper()
	for range n {
		var entry api.Admitted
		entry, err = e.Entry(t.Context(), resource, opts...)
		entry.Exit()
	}
	return err
}

// lines returns the lines of a file.
func lines(t testing.TB, parts ...string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	require.NoError(t, err)
	if len(text) == 0 {
		return nil
	}
	require.True(t, strings.HasSuffix(string(text), "\n"))
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// names returns the names in a directory.
func names(t testing.TB, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
