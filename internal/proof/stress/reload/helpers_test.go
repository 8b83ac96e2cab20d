package reload

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/rules"
)

var seed, random = chance.Seed, chance.Source

func TestMain(m *testing.M) { books.Main(m) }

var start = time.Unix(1_700_000_000, 0)

// silent discards log lines that tests check in other ways.
var silent = slog.New(slog.DiscardHandler)

// guard is a Guard under test, on a clock that stands still. Queued calls run at once and are
// recorded.
type guard struct {
	*api.Guard
	clock *clocks.Manual
}

func newGuard(t testing.TB, inForce ...flow.Rule) guard {
	t.Helper()
	clock := clocks.NewManual(start)
	clock.SetSleep(clocks.SleepRecord)
	g := guard{newGuardOn(t, clock), clock}
	g.load(t, inForce...)
	return g
}

// newGuardOn returns a Guard on the given clock; nil means the machine's. The Guard is closed at
// the end and must hold nothing then.
func newGuardOn(t testing.TB, clock clocks.Clock) *api.Guard {
	t.Helper()
	g, err := api.New(api.Config{Clock: clock, Logger: silent})
	require.NoError(t, err)
	books.Keep(t, g.Engine())
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

func (g guard) load(t testing.TB, inForce ...flow.Rule) {
	t.Helper()
	require.NoError(t, g.LoadRules(rules.Set{Flow: inForce}))
}

// from returns a context of the given name and origin.
func from(ctx context.Context, name, origin string) context.Context {
	return engine.WithOrigin(engine.WithContext(ctx, name), origin)
}

const ms = time.Millisecond
