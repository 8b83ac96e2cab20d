package breaker

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/figure"
)

// twins are two equal breakers: calls that one counts without the lock, by its tally, the other
// counts with it.
type twins struct {
	t         *testing.T
	m, locked *machine
	rule      Rule
	now       int64
	calls     []uint64
	quick     int // calls that one of them counted without the lock
	problem   string
}

func (tw *twins) fail(problem string) {
	if tw.problem == "" {
		tw.problem = problem
	}
}

// same fails unless both gave the same result.
func (tw *twins) same(what string, a, b Change) {
	a.of, b.of = nil, nil // the terms have twins as well
	if a != b {
		tw.fail(what + " changes one and not the other")
	}
}

func (tw *twins) adopt(r Rule) {
	r.ID, r.Resource = "b", "orders"
	norm, err := r.Normalized()
	require.NoError(tw.t, err)
	tw.rule = norm
	if tw.m == nil {
		tw.m, tw.locked = newMachine(&terms{Rule: norm}), newMachine(&terms{Rule: norm})
		return
	}
	tw.m.adopt(&terms{Rule: norm}, tw.now)
	tw.locked.adopt(&terms{Rule: norm}, tw.now)
}

func (tw *twins) enter() {
	a, changeA := tw.m.admit(tw.now)
	b, changeB := tw.locked.admit(tw.now)
	tw.same("a call", changeA, changeB)
	if a != b {
		tw.fail("one lets in a call, the other doesn't")
	}
	if a.ok {
		tw.calls = append(tw.calls, a.number)
	}
}

func (tw *twins) exit(r *rand.Rand) {
	i := r.IntN(len(tw.calls))
	number := tw.calls[i]
	tw.calls = slices.Delete(tw.calls, i, i+1)
	end := End{Took: time.Duration(r.IntN(3)) * time.Second, Failed: r.IntN(3) == 0}
	end.Neutral = !end.Failed && r.IntN(4) == 0
	var change Change
	if tw.m.countGood(number, tw.now, end) {
		tw.quick++
	} else {
		change = tw.m.complete(number, tw.now, end)
	}
	tw.same("the end of a call", change, tw.locked.complete(number, tw.now, end))
}

// step does something at random to both.
func (tw *twins) step(r *rand.Rand) {
	switch n := r.IntN(16); {
	case n < 6:
		tw.enter()
	case n < 11 && len(tw.calls) > 0:
		tw.exit(r)
	case n == 11 && len(tw.calls) > 0: // a late one
		now := tw.now
		tw.now -= r.Int64N(int64(time.Second))
		tw.exit(r)
		tw.now = now
	case n < 14:
		pauses := []time.Duration{0, 1, 1, time.Millisecond, 100 * time.Millisecond, time.Second, 20 * time.Second, 30 * time.Minute}
		tw.now += int64(pauses[r.IntN(len(pauses))])
	case n == 14 && r.IntN(8) == 0:
		f := Force(r.IntN(3))
		tw.same("force", tw.m.force(f, tw.now), tw.locked.force(f, tw.now))
	case n == 15 && r.IntN(8) == 0:
		tw.adopt(twinRule(r))
	case r.IntN(2) == 0:
		tw.alike()
	}
}

// alike fails if the two differ in any state.
func (tw *twins) alike() {
	if a, b := tw.m.status(tw.now), tw.locked.status(tw.now); a != b {
		tw.fail("their stats differ")
	}
	if tw.m.latest != tw.locked.latest {
		tw.fail("one knows of a later time")
	}
	if tw.m.idle(tw.now) != tw.locked.idle(tw.now) {
		tw.fail("one could be forgotten")
	}
}

func twinRule(r *rand.Rand) Rule {
	rule := randomRule(r)
	rule.Strategy = Strategy(r.IntN(int(ConsecutiveErrors) + 1))
	if rule.Strategy == ConsecutiveErrors {
		rule.MinCalls, rule.Interval, rule.Buckets = 0, 0, 0
		return rule
	}
	rule.Interval = []time.Duration{time.Second, 10 * time.Second, time.Hour}[r.IntN(3)]
	if rule.Strategy != ErrorCount {
		rule.Threshold = []float64{0, 0.3, 0.5, 0.51, 1}[r.IntN(5)]
	}
	if rule.Strategy == SlowRatio {
		rule.SlowRT = time.Second
	}
	rule.MinCalls = 1 + r.IntN(10)
	return rule
}

// A breaker that counts good calls without the lock always behaves like one that counts all of them
// with it: it changes with the same call, at the same time, for the same reason, and reports the
// same stats.
func TestGoodTally(t *testing.T) {
	n := figure.Size(2_000, 20_000, 500_000, 5_000_000)
	other, quick, played := 0, 0, 0
	for i := range n {
		played++
		r := rand.New(rand.NewPCG(*seed, uint64(i)))
		tw := &twins{t: t, now: int64(time.Hour)}
		tw.adopt(twinRule(r))
		for range 10 + r.IntN(100) {
			tw.step(r)
		}
		tw.alike()
		quick += tw.quick
		if tw.problem != "" {
			other++
			t.Errorf("trace %d of -seed=%d: %s", i, *seed, tw.problem)
			break
		}
	}
	assert.Greater(t, quick, n, "without such calls nothing is shown")
	figure.Report(t, figure.Figure{Name: "breakers that do otherwise without the lock", Value: float64(other), N: int64(played), Seed: *seed})
}
