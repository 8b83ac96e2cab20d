package starvation

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/slots"
)

// between is a slot that does something after a call was asked and before it takes.
type between struct{ do func() }

func (*between) Name() string                              { return "between" }
func (*between) Ask(*engine.Invocation) (v engine.Verdict) { return v }
func (b *between) Take(*engine.Invocation) (v engine.Verdict) {
	if do := b.do; do != nil {
		b.do = nil
		do()
	}
	return v
}

// A call that was accepted when asked, but takes too late, is refused by the rule that applies to
// the fewest callers, and among equals by the scarcest. So it never held units of other rules. known
// bug 19
func TestNarrowAndScarceTakeFirst(t *testing.T) {
	for _, tt := range []struct {
		name          string
		ample, scarce flow.Rule
	}{
		{"narrow before broad", flow.Rule{Threshold: 2}, flow.Rule{Threshold: 2, Origin: "app"}},
		{"narrow before broad, though it has more to give", flow.Rule{Threshold: 2}, flow.Rule{Threshold: 2, Interval: 500 * time.Millisecond, Origin: "app"}},
		{"scarce before ample", flow.Rule{Threshold: 2, Origin: "app"}, flow.Rule{Threshold: 1, Relation: flow.Chain, Ref: "web"}},
		{"by what it gives a second", flow.Rule{Threshold: 2, Origin: "app"}, flow.Rule{Threshold: 2, Interval: 10 * time.Second, Relation: flow.Chain, Ref: "web"}},
		{"permits as well", flow.Rule{Threshold: 2, Metric: flow.Concurrency, Origin: "app"}, flow.Rule{Threshold: 1, Relation: flow.Chain, Ref: "web"}},
	} {
		for _, scarceFirst := range []bool{false, true} {
			var slot between
			g, err := api.New(api.Config{
				Clock: clocks.NewManual(time.Unix(1_700_000_000, 0)), Logger: slog.New(slog.DiscardHandler),
				Chain: (*slots.Chain)(trial.Chain().With(&slot, engine.Before("flow"))),
			})
			require.NoError(t, err)
			books.Keep(t, g.Engine())
			declared := []flow.Rule{tt.ample, tt.scarce}
			declared[0].ID, declared[1].ID = "ample", "scarce"
			for i := range declared {
				declared[i].Resource = "orders"
			}
			if scarceFirst {
				declared[0], declared[1] = declared[1], declared[0]
			}
			require.NoError(t, g.LoadRules(rules.Set{Flow: declared}))
			web := api.WithOrigin(api.WithContext(t.Context(), "web"), "app")
			var open []api.Admitted
			slot.do = func() { // nothing is left of either
				for range 2 {
					e, err := g.Entry(web, "orders")
					if err != nil { // of the scarce one already
						e, err = g.Entry(api.WithOrigin(api.WithContext(t.Context(), "else"), "app"), "orders")
					}
					require.NoError(t, err)
					open = append(open, e)
				}
			}
			_, err = g.Entry(web, "orders")
			block, ok := errors.AsType[*core.BlockError](err)
			require.True(t, ok, err)
			assert.Equal(t, "scarce", block.Rule, "%s, declared first: %v", tt.name, scarceFirst)
			for _, e := range open {
				e.Exit()
			}
		}
	}
}
