package sharing_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/stat"
)

// A call makes a few requests at most, even with odd numbers, and even if the store replies at once
// and no time passes: the store's reply decides.
func TestFewRequestsACall(t *testing.T) {
	games := 1000
	if testing.Short() {
		games = 30
	}
	for i := range uint64(games) {
		seed := *chance.Seed + i
		if most := mostRequests(t, rand.New(rand.NewPCG(seed, 7))); most > 8 {
			t.Fatalf("seed %d: %d requests for one call", seed, most)
		}
	}
}

// mostRequests makes calls of several members and limits, and returns the most requests that one
// call made.
func mostRequests(t *testing.T, r *rand.Rand) (most int64) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, r.Int64N(int64(time.Second))))
	store := cluster.NewMemory(clock)
	rule := cluster.Rule{Scope: cluster.Global, OnFailure: cluster.OnFailure(r.IntN(3))}
	threshold := float64([]int{1, 3, 10, 100, 3000}[r.IntN(5)])
	interval := []time.Duration{time.Second, 800 * time.Millisecond, 10 * time.Second}[r.IntN(3)]
	shape := stat.Shape{Interval: interval, Buckets: []int{1, 2, 8}[r.IntN(3)], Strict: r.IntN(2) == 0}
	type limit struct {
		m *sharing.Member
		sharing.Limit
		stats func() sharing.Stats
	}
	var limits []limit
	var held []*sharing.Semaphore
	for range 1 + r.IntN(3) {
		m := join(t, store, clock)
		w, err := m.Window("a", sharing.WindowConfig{Shape: shape, Threshold: threshold, Rule: rule})
		if err != nil {
			t.Fatal(err)
		}
		g, err := m.Throttle("a", sharing.ThrottleConfig{Interval: interval, Threshold: threshold, Rule: rule})
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Semaphore("a", sharing.SemaphoreConfig{Threshold: threshold, Rule: rule})
		if err != nil {
			t.Fatal(err)
		}
		limits = append(limits, limit{m, w, w.Stats}, limit{m, g, g.Stats}, limit{m, s, s.Stats})
	}
	for range 300 {
		x := limits[r.IntN(len(limits))]
		before := x.stats().Requests
		n := 1 + r.Int64N(max(1, int64(threshold)))/(1+r.Int64N(8))
		need := []sharing.Need{{Limit: x.Limit, Units: n, MaxWait: time.Duration(r.Int64N(2)) * time.Duration(r.Int64N(int64(interval)))}}
		if err := x.m.Fetch(t.Context(), 0, need); err != nil {
			t.Fatal(err)
		}
		most = max(most, x.stats().Requests-before)
		if s, ok := x.Limit.(*sharing.Semaphore); ok && need[0].Got {
			for range n {
				held = append(held, s)
			}
		}
		for len(held) > 0 && r.IntN(3) > 0 {
			i := r.IntN(len(held))
			held[i].Release(0, 1)
			held[i] = held[len(held)-1]
			held = held[:len(held)-1]
		}
		switch r.IntN(4) {
		case 0:
			clock.Advance(time.Duration(r.Int64N(int64(interval) / 4)))
		case 1:
			clock.Advance(time.Duration(r.Int64N(int64(time.Millisecond))))
		}
	}
	return most
}
