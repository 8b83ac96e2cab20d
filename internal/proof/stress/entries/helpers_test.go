package entries

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/slots"
)

func TestMain(m *testing.M) { books.Main(m) }

var seed, random = chance.Seed, chance.Stream

var (
	start  = time.Unix(1_700_000_000, 0)
	silent = slog.New(slog.DiscardHandler)
)

// newEngine returns an engine that holds nothing when its test ends.
func newEngine(t testing.TB, cfg engine.Config, rules ...flow.Rule) *engine.Engine {
	t.Helper()
	if cfg.Chain == nil {
		cfg.Chain = (*engine.Chain)(slots.Default())
	}
	if cfg.Logger == nil {
		cfg.Logger = silent
	}
	e, err := engine.NewEngine(cfg)
	require.NoError(t, err)
	require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error { return flow.Compile(b, rules) }))
	books.Keep(t, e)
	return e
}

// apart runs f on a separate goroutine, which f may end, and returns the value of its panic.
func apart(f func()) (reason any) {
	var done sync.WaitGroup
	done.Go(func() {
		defer func() { reason = recover() }()
		f()
	})
	done.Wait()
	return reason
}
