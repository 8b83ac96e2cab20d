package limits

import (
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/rules"
)

var seed = chance.Seed

func TestMain(m *testing.M) { books.Main(m) }

const callers = 64

// book records admissions under a rule, by the bucket of the decision.
type book struct {
	rule     flow.Rule
	width    int64
	span     int64 // how many buckets count
	admitted map[int64]int64
	round    atomic.Int64
}

func newBook(r flow.Rule) *book {
	b := &book{rule: r, width: int64(r.Interval) / int64(r.Buckets), span: int64(r.Buckets), admitted: make(map[int64]int64)}
	if r.Window == flow.Strict {
		b.span++
	}
	return b
}

// room returns the units that the rule has left at a time, according to the book.
func (b *book) room(now int64) int64 {
	room := int64(b.rule.Threshold)
	for i := range b.span {
		room -= b.admitted[now/b.width-i]
	}
	return room
}

// close enters a round into the book. It returns the units admitted beyond the room, and the units
// refused despite room.
func (b *book) close(now, asked int64) (over, under int64) {
	n, room := b.round.Swap(0), b.room(now)
	b.admitted[now/b.width] += n
	delete(b.admitted, now/b.width-b.span-1)
	return max(0, n-room), max(0, min(asked, room)-n)
}

// known bug 1, 20, 62: in each round all callers ask at one instant for more than there is. Exactly
// as many units are admitted as the book has room for, for every shape of the rule, and wherever in
// its buckets the clock stands. The guarded code counts the calls that another rule, for
// concurrency, admits at the same time.
func TestLimitsAgainstABook(t *testing.T) {
	entries := figure.Size(200_000, 3_000_000, 100_000_000, 1_000_000_000)
	if race.Enabled {
		entries /= 10
	}
	r := rand.New(rand.NewPCG(*seed, 0))
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	g, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	books.Keep(t, g.Engine())
	kept := []*book{
		newBook(flow.Rule{Resource: "second", Threshold: 100, Interval: time.Second, Buckets: 2}),
		newBook(flow.Rule{Resource: "one bucket", Threshold: 7, Interval: 100 * time.Millisecond, Buckets: 1}),
		newBook(flow.Rule{Resource: "strict", Threshold: 50, Interval: time.Second, Buckets: 10, Window: flow.Strict}),
		newBook(flow.Rule{Resource: "minute", Threshold: 1000, Interval: time.Minute, Buckets: 60}),
	}
	const atOnce = 5
	set := rules.Set{Flow: []flow.Rule{{Resource: "at once", Threshold: atOnce, Metric: flow.Concurrency}}}
	for _, b := range kept {
		set.Flow = append(set.Flow, b.rule)
	}
	require.NoError(t, g.LoadRules(set))

	var inside, most atomic.Int64
	ask := func(times int) {
		for range times {
			for _, b := range kept {
				if e, err := g.Entry(t.Context(), b.rule.Resource); err == nil {
					b.round.Add(1)
					e.Exit()
				}
			}
			if e, err := g.Entry(t.Context(), "at once"); err == nil {
				if n := inside.Add(1); n > most.Load() {
					most.Store(n)
				}
				inside.Add(-1)
				e.Exit()
			}
		}
	}
	var over, under, asked int64
	for asked < int64(entries) {
		times := []int{1, 1, 10, 500}[r.IntN(4)]
		trial.Together(callers, func(int) { ask(times) })
		asked += int64(callers * times * (len(kept) + 1))
		for _, b := range kept {
			o, u := b.close(clock.Now(), int64(callers*times))
			over, under = over+o, under+u
		}
		clock.Advance(time.Duration(r.Int64N(int64([]time.Duration{time.Millisecond, 300 * time.Millisecond, 3 * time.Second}[r.IntN(3)]))))
	}
	require.LessOrEqual(t, most.Load(), int64(atOnce))
	require.Positive(t, most.Load())
	figure.Report(t, figure.Figure{Name: "over-admissions, 64 callers", Value: float64(over), N: asked, Seed: *seed})
	figure.Report(t, figure.Figure{Name: "spurious refusals, 64 callers, one rule", Value: float64(under), N: asked, Seed: *seed})
}
