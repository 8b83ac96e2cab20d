package clocks

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// Idle nodes are swept while the clock is set at random, and calls with more names than the cap
// evict idle nodes themselves. A name with a call in flight keeps its node, and no name or caller
// exceeds its limit by losing its node and getting a new one. known bug 27, 107
func TestSweepOnASteppedClock(t *testing.T) {
	rnd := random(t)
	const names, each = 12, 3
	calls, problems := 0, 0
	for range figure.Size(2, 10, 150, 2000) {
		s := newSource()
		g, err := api.New(api.Config{Clock: s, Logger: slog.New(slog.DiscardHandler),
			Caps: node.Caps{Resources: 8, Calls: 9, Contexts: 2}})
		require.NoError(t, err)
		require.NoError(t, g.LoadRules(rules.Set{Flow: []flow.Rule{
			{ID: "each", Resource: "key.*", Match: spec.MatchRegex, Threshold: each, Interval: 5 * time.Minute, Window: flow.Strict},
			{ID: "pinned", Resource: "pinned", Threshold: each, Origin: flow.OriginOther, Interval: 5 * time.Minute, Window: flow.Strict},
			{ID: "others", Resource: node.OverflowName, Threshold: each, Interval: 5 * time.Minute, Window: flow.Strict},
		}}))
		type held struct {
			api.Admitted
			resource *engine.Resource
		}
		var open []held
		admitted := make(map[string][]int64)
		for range 400 {
			calls++
			name, from := fmt.Sprint("key", rnd.IntN(names)), fmt.Sprint("o", rnd.IntN(4))
			if rnd.IntN(4) == 0 {
				name = "pinned" // stays, but its callers are evicted
			}
			e, err := g.Entry(api.WithOrigin(api.WithContext(t.Context(), fmt.Sprint("c", rnd.IntN(4))), from), name)
			if err == nil {
				r, ok := g.Engine().FindResource(name)
				if !ok {
					r, _ = g.Engine().FindResource(node.OverflowName)
				}
				limited := r.Name()
				if limited == "pinned" {
					limited += from
				}
				admitted[limited] = append(admitted[limited], g.Engine().Now())
				open = append(open, held{e, r})
			}
			switch rnd.IntN(6) {
			case 0:
				s.set += time.Duration(1-2*rnd.IntN(2)) * sizes[rnd.IntN(len(sizes))]
			case 1:
				g.Engine().Tree().Evict(g.Engine().Now())
			case 2:
				s.real += time.Duration(rnd.Int64N(int64(2 * time.Minute)))
			}
			if len(open) > 4 {
				open[0].Exit()
				open = open[1:]
			}
			for _, h := range open {
				if r, ok := g.Engine().FindResource(h.resource.Name()); !ok || r != h.resource || r.InFlight() == 0 {
					problems++
				}
			}
		}
		for _, h := range open {
			h.Exit()
		}
		for _, times := range admitted {
			if _, n := busiest(times, 5*time.Minute, nil); n > each {
				problems++
			}
		}
		assert.Empty(t, books.Unsettled(g.Engine()))
	}
	figure.Report(t, figure.Figure{Name: "live nodes lost to a sweep on a stepped clock", Value: float64(problems), N: int64(calls), Seed: *seed})
}
