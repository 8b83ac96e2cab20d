package cluster_test

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/clocks"
)

// space has a member use a throttle of so many turns in an interval.
func space(t *testing.T, m *cluster.Member, turns float64, in time.Duration, on cluster.OnFailure) *cluster.Throttle {
	t.Helper()
	g, err := m.Throttle("turns", cluster.ThrottleConfig{Interval: in, Threshold: turns, Rule: cluster.Rule{Scope: cluster.Global, OnFailure: on}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// turn makes a call, and reports whether it has its turn.
func turn(t *testing.T, m *cluster.Member, g *cluster.Throttle, now, units int64, maxWait time.Duration) bool {
	t.Helper()
	switch a, _ := g.Ask(now, units, maxWait); a {
	case cluster.Fits:
		_, ok := g.TryTake(now, units, maxWait)
		return ok
	case cluster.Refuses:
		return false
	}
	need := []cluster.Need{{Limit: g, Units: units, MaxWait: maxWait}}
	if err := m.Fetch(t.Context(), g.Timeout(), need); err != nil {
		t.Fatal(err)
	}
	return need[0].Got
}

// Turns may be hours apart: no member has one before its time.
func TestTurnsThatAreFarApart(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	store := cluster.NewMemory(clock)
	ran := 0
	for range 3 {
		m := join(t, store, clock)
		g := space(t, m, 6, time.Hour, cluster.Closed)
		if turn(t, m, g, clock.Now(), 1, 0) {
			ran++
		}
		clock.Advance(time.Minute + time.Second)
	}
	if ran != 1 {
		t.Fatalf("%d calls ran in three minutes, at 6 an hour", ran)
	}
}
