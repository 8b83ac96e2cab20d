package lint_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/rules/lint"
)

// An event that the linter reports as impossible does not occur in the engine, under random rules and
// calls: removing a rule that never takes effect changes no decision, a rule reported to admit nothing
// admits nothing, and a breaker reported never to open doesn't open.
// known bug 298
func TestWhatNeverHappens(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 5))
	met := make(map[string]int)
	for range 4000 {
		set := rules.Set{Flow: []flow.Rule{drawn(rng), drawn(rng)}}
		if rng.IntN(3) == 0 {
			set.Flow = set.Flow[:1]
			set.Breaker = []breaker.Rule{{Resource: "a", Strategy: breaker.Strategy(rng.IntN(2)), Threshold: float64(rng.IntN(2)), MinCalls: 1 + rng.IntN(30),
				Interval: []time.Duration{time.Second, 3 * time.Second}[rng.IntN(2)]}}
		}
		var found []lint.Finding
		for _, f := range lint.CheckSet(set, lint.Options{}) {
			if slices.Contains([]string{"PN002", "PN009", "PN010"}, f.Code) {
				found = append(found, f)
			}
		}
		if len(found) == 0 {
			continue
		}
		seed := rng.Uint64()
		verdicts, ok := play(t, set, seed)
		if !ok {
			continue
		}
		for _, f := range found {
			met[f.Code]++
			switch f.Code {
			case "PN009":
				if set.Flow[f.Rule].Origin != "" {
					continue // it refuses all calls that it applies to
				}
				require.NotContains(t, verdicts, "+", "%v: %+v", f, set)
			case "PN010":
				require.NotContains(t, verdicts, "o", "%v: %+v", f, set)
			default:
				rest := set
				rest.Flow = slices.Delete(slices.Clone(set.Flow), f.Rule, f.Rule+1)
				without, ok := play(t, rest, seed)
				require.True(t, ok)
				require.Equal(t, without, verdicts, "%v: %+v", f, set)
			}
		}
	}
	for _, code := range []string{"PN002", "PN009", "PN010"} {
		require.Greater(t, met[code], 10, code)
	}
}

func drawn(rng *rand.Rand) flow.Rule {
	r := flow.Rule{
		Resource:  "a",
		Threshold: []float64{0.5, 1, 2.5, 4, 5, 6, 10, 40, 60}[rng.IntN(9)],
		Interval:  []time.Duration{0, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second}[rng.IntN(5)],
		Origin:    []string{"", "", "", "b", "other"}[rng.IntN(5)],
	}
	switch rng.IntN(9) {
	case 0:
		r.Behavior, r.Burst = flow.TokenBucket, rng.IntN(3)
	case 1:
		r.Behavior = flow.WarmUp
	case 2, 3:
		r.Window, r.Buckets = flow.Ring, []int{0, 1, 2, 5}[rng.IntN(4)]
	case 4:
		r.Behavior, r.Burst, r.MaxWait = flow.Throttle, rng.IntN(3), time.Nanosecond
	case 5:
		r.Buckets = []int{1, 2, 10}[rng.IntN(3)]
	}
	return r
}

// play returns for each call whether it passed (+), was refused by a flow rule (-) or by a breaker
// (o). ok is false if the rules can't be loaded.
func play(t *testing.T, set rules.Set, seed uint64) (verdicts string, ok bool) {
	t.Helper()
	clock := api.NewManualClock(time.Unix(1000, 0))
	g, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer g.Close()
	if g.LoadRules(set) != nil {
		return "", false
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	var b strings.Builder
	rate := []time.Duration{5, 50, 200, 500}[rng.IntN(4)] * time.Millisecond
	for range 300 {
		ctx := context.Background()
		if origin := []string{"", "b", "c"}[rng.IntN(3)]; origin != "" {
			ctx = api.WithOrigin(ctx, origin)
		}
		e, err := g.Entry(ctx, "a", api.Units(1+rng.IntN(8)/7))
		switch api.KindOf(err) {
		case api.KindNone:
			b.WriteByte('+')
			e.Fail(errFailed)
			e.Exit()
		case api.KindBreaker:
			b.WriteByte('o')
		default:
			b.WriteByte('-')
		}
		if rng.IntN(4) > 0 {
			clock.Advance(time.Duration(rng.Int64N(int64(2 * rate))))
		}
	}
	return b.String(), true
}

var errFailed = errors.New("failed")
