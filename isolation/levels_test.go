package isolation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
)

func at(l core.Level) engine.Option { return engine.Criticality(l) }

// Freed permits go to the highest level that waits, within a level in order, and with shares to its
// tenants in turn.
func TestHigherLevelsComeFirst(t *testing.T) {
	for _, share := range []spec.Share{{}, byTenant} {
		r := queued(1, 10, time.Second)
		r.Share, r.Shed = share, spec.ShedLevels
		g := newGuard(t, r)
		e := g.enter(by("a"))
		all := map[string]*call{
			"last":   g.waits("last", by("a"), at(core.Sheddable)),
			"third":  g.waits("third", by("a")), // critical
			"fourth": g.waits("fourth", by("b"), at(core.Critical)),
			"fifth":  g.waits("fifth", by("a"), at(core.SheddablePlus)),
			"first":  g.waits("first", by("a"), at(core.CriticalPlus)),
			"second": g.waits("second", by("a"), at(core.CriticalPlus)),
		}
		g.clock.Advance(ms)
		e.Exit()
		order := []string{"first", "second", "third", "fourth", "fifth", "last"}
		if share.By != "" {
			order[2], order[3] = "fourth", "third" // b has used less than a, which held the permit as they waited
		}
		for n, want := range order {
			require.Eventually(t, func() bool { return len(g.order()) > n }, time.Minute, time.Microsecond)
			require.Equal(t, want, g.order()[n])
			all[want].exit()
		}
	}
}

// A full queue loses the last call of the lowest level that waits, unless the new call is no higher.
func TestAFullQueueLosesTheLowestLevel(t *testing.T) {
	r := queued(1, 2, time.Second)
	r.Shed = spec.ShedLevels
	g := newGuard(t, r)
	e := g.enter()
	kept, lost := g.waits("kept", at(core.Sheddable)), g.waits("lost", at(core.Sheddable))
	g.refused(at(core.Sheddable))
	higher := g.displaces(lost, "higher", at(core.SheddablePlus))
	require.ErrorIs(t, lost.err, core.ErrBlocked)
	top := g.displaces(kept, "top", at(core.CriticalPlus))
	require.ErrorIs(t, kept.err, core.ErrBlocked)
	g.refused(at(core.SheddablePlus))
	stats, ok := g.figures("permits").Details.(core.Shares)
	require.True(t, ok)
	assert.Equal(t, []string{
		"share critical: holds 1 of 1, 0 queued, 1 served",
		"share sheddablePlus: holds 0, 1 queued, 0 served, 1 refused",
		"share criticalPlus: holds 0, 1 queued, 0 served",
		"1 more share",
	}, stats.Lines(start))
	g.clock.Advance(ms)
	e.Exit()
	top.exit()
	higher.exit()
	assert.Zero(t, g.queued())
}

// Of several rules with shares only the tightest has any to show. known bug 285
func TestSharesOfTheTightestRule(t *testing.T) {
	tight, loose := sharing(byTenant), sharing(byTenant)
	loose.ID, loose.Threshold = "loose", 2
	g := newGuard(t, tight, loose)
	g.enter(by("a")).Exit()
	for id, want := range map[string]int{"permits": 1, "loose": 0} {
		stats, ok := g.figures(id).Details.(core.Shares)
		require.True(t, ok)
		assert.Equal(t, want, stats.Shares, id)
	}
}

// An attachment may be named like the caller. known bug 286
func TestAttachmentNamedOrigin(t *testing.T) {
	g := newGuard(t, sharing(spec.Share{By: "param origin"}))
	g.enter(engine.Param("origin", "acme")).Exit()
	stats, ok := g.figures("permits").Details.(core.Shares)
	require.True(t, ok)
	assert.Equal(t, "acme", stats.Top[0].Share)
}
