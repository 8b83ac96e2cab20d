package family_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

func TestMain(m *testing.M) { books.Main(m) }

// newEngine returns an engine with the standard chain, on a clock that stands still. At the end of
// the test it must hold nothing.
func newEngine(t *testing.T, cfg engine.Config) (*engine.Engine, *clocks.Manual) {
	t.Helper()
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	cfg.Clock, cfg.Chain, cfg.Logger = clock, trial.Chain(), slog.New(slog.DiscardHandler)
	e, err := engine.NewEngine(cfg)
	require.NoError(t, err)
	books.Keep(t, e)
	return e, clock
}

func resource(t *testing.T, e *engine.Engine, name string) *engine.Resource {
	t.Helper()
	r, ok := e.FindResource(name)
	require.True(t, ok, "no resource %q", name)
	return r
}
