package bandwidth_test

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

const chunk = 16 << 10

// throttle limits the bytes of "file" to a rate per second.
func throttle(rate float64) flow.Rule {
	return flow.Rule{ID: "rate", Resource: "file", Unit: "bytes", Threshold: rate, Behavior: flow.Throttle}
}

func newGuard(t testing.TB, set ...flow.Rule) *api.Guard {
	t.Helper()
	g, err := api.New(api.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	books.Keep(t, g.Engine())
	require.NoError(t, g.LoadRules(api.RuleSet{Flow: set}))
	return g
}

// enter returns a call of "file", which exits when the test ends.
func enter(t testing.TB, g *api.Guard) api.Admitted {
	t.Helper()
	e, err := g.Entry(t.Context(), "file")
	require.NoError(t, err)
	t.Cleanup(e.Exit)
	return e
}

// charged returns the units that calls of "file" were granted.
func charged(g *api.Guard) (n int64) {
	for _, u := range g.UnitStats("file") {
		n += u.Total.Reserved
	}
	return n
}

// endless has bytes without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// counting counts the bytes of each second since it was made.
type counting struct {
	begin   time.Time
	seconds []int
}

func (c *counting) Write(p []byte) (int, error) {
	second := int(time.Since(c.begin) / time.Second)
	for len(c.seconds) <= second {
		c.seconds = append(c.seconds, 0)
	}
	c.seconds[second] += len(p)
	return len(p), nil
}

// script is a reader that returns pieces, and then err.
type script struct {
	pieces []string
	err    error
}

func (s *script) Read(p []byte) (int, error) {
	if len(s.pieces) == 0 {
		return 0, s.err
	}
	n := copy(p, s.pieces[0])
	if s.pieces[0] = s.pieces[0][n:]; s.pieces[0] == "" {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}

var _ io.Reader = (*script)(nil)
