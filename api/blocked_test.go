package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/node"
)

func newRefusing(t *testing.T, log *bytes.Buffer) (*api.Guard, *api.ManualClock) {
	t.Helper()
	clock := api.NewManualClock(time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC))
	g, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	require.NoError(t, g.LoadRules(api.RuleSet{
		Flow:    []flow.Rule{{ID: "acme", Resource: "orders", Origin: "acme", Threshold: 0}, {ID: "none", Resource: "closed", Threshold: 0}},
		Hotspot: []hotspot.Rule{{ID: "users", Resource: "search", Param: "user", Threshold: 0}},
	}))
	return g, clock
}

func refuse(t *testing.T, g *api.Guard, origin, resource string, opts ...api.Option) {
	t.Helper()
	_, err := g.Entry(api.WithOrigin(t.Context(), origin), resource, opts...)
	require.ErrorIs(t, err, api.ErrBlocked)
}

// A line of the block log names the caller and the value of the first refusal that it counts,
// escaped and truncated.
func TestTheBlockLogNamesCallerAndValue(t *testing.T) {
	var log bytes.Buffer
	g, clock := newRefusing(t, &log)
	lines := func() string {
		defer log.Reset()
		var lines []string
		for line := range strings.Lines(log.String()) {
			_, line, _ = strings.Cut(line, `msg="penstock: blocked" `)
			lines = append(lines, line)
		}
		return strings.Join(lines, "")
	}
	log.Reset()
	refuse(t, g, "", "closed")
	assert.Equal(t, "kind=flow resource=closed rule=none count=1\n", lines())
	refuse(t, g, "acme", "orders")
	assert.Equal(t, "kind=flow resource=orders rule=acme origin=acme count=1\n", lines())
	refuse(t, g, "a\nb\x1b[31m"+strings.Repeat("c", 900), "search", api.Param("user", "\x1b[2J"+strings.Repeat("u", 900)))
	line := lines()
	assert.Contains(t, line, `rule=users origin=a\nb\x1b[31mccc`)
	assert.Contains(t, line, `value="\"\\`)
	assert.NotContains(t, line, "\x1b")
	assert.Less(t, len(line), 700)

	refuse(t, g, "globex", "closed")
	refuse(t, g, "initech", "closed")
	refuse(t, g, "initech", "search", api.Param("user", 7))
	refuse(t, g, "initech", "search", api.Param("user", "ann"))
	assert.Empty(t, lines())
	clock.Advance(3 * time.Second)
	assert.Equal(t, "kind=flow resource=closed rule=none origin=globex count=2\nkind=hotspot resource=search rule=users origin=initech value=7 count=2\n", lines())
}

// Even if many callers are refused, each by its own window, their rule writes the same few lines.
func TestOtherCallersShareTheirRulesLine(t *testing.T) {
	var log bytes.Buffer
	g, clock := newRefusing(t, &log)
	require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{{ID: "each", Resource: "orders", Origin: "other", Threshold: 1, Interval: time.Minute}}}))
	for _, origin := range []string{"acme", "globex", "initech"} {
		e, err := g.Entry(api.WithOrigin(t.Context(), origin), "orders")
		require.NoError(t, err)
		e.Exit()
		refuse(t, g, origin, "orders")
	}
	assert.Equal(t, 1, strings.Count(log.String(), "penstock: blocked"), log.String())
	clock.Advance(3 * time.Second)
	assert.Contains(t, log.String(), "resource=orders rule=each origin=globex count=2\n")
}

func TestOnBlocked(t *testing.T) {
	var log bytes.Buffer
	g, clock := newRefusing(t, &log)
	begin := time.Unix(0, clock.Now()).UTC()
	var seen []string
	note := func(r api.Refusal) {
		who := ""
		if !r.Block.Value.IsNone() {
			who = " " + r.Block.Value.String()
		}
		seen = append(seen, fmt.Sprintf("%v-%v %s %s%s from %q in %q ×%d", r.First.Sub(begin), r.Last.Sub(begin), r.Block.Resource, r.Block.Rule, who, r.Origin, r.Context, r.Count))
	}
	refuse(t, g, "early", "closed")
	bad := g.OnBlocked(func(api.Refusal) { panic("boom") })
	remove := g.OnBlocked(note)
	for range 100 {
		refuse(t, g, "acme", "orders")
	}
	clock.Advance(100 * time.Millisecond)
	refuse(t, g, "acme", "orders")
	refuse(t, g, "", "search", api.Param("user", "ann"))
	refuse(t, g, "", "search", api.Param("user", "bob"))
	assert.Empty(t, seen, "no call waits for it")
	clock.Advance(time.Second)
	assert.ElementsMatch(t, []string{
		`0s-100ms orders acme from "acme" in "default" ×101`,
		`100ms-100ms search users "ann" from "" in "default" ×1`,
		`100ms-100ms search users "bob" from "" in "default" ×1`,
	}, seen)
	assert.EqualValues(t, 3, g.Engine().Failures(), "of the other listener")
	bad()
	bad()

	// Values are reported one by one up to the limit, and counted beyond it.
	var calls, beyond int64
	count := g.OnBlocked(func(r api.Refusal) {
		if calls += r.Count; r.Block.Resource == node.OverflowName {
			beyond += r.Count
		}
	})
	for i := range 20_000 {
		refuse(t, g, "", "search", api.Param("user", i))
	}
	clock.Advance(time.Second)
	assert.EqualValues(t, 20_000, calls)
	assert.Positive(t, beyond)
	count()

	seen = nil
	refuse(t, g, "last", "closed")
	require.NoError(t, g.Close())
	assert.Equal(t, []string{`2.1s-2.1s closed none from "last" in "default" ×1`}, seen)
	refuse(t, g, "later", "closed")
	clock.Advance(time.Minute)
	remove()
	assert.Len(t, seen, 1)
	g.OnBlocked(note)()
}

func TestNobodyListensAnyMore(t *testing.T) {
	g, clock := newRefusing(t, new(bytes.Buffer))
	remove := g.OnBlocked(func(api.Refusal) { t.Error("removed") })
	refuse(t, g, "", "closed")
	remove()
	clock.Advance(time.Minute)
	seen := 0
	defer g.OnBlocked(func(api.Refusal) { seen++ })()
	clock.Advance(time.Minute)
	assert.Zero(t, seen, "nothing of the time before")
	refuse(t, g, "", "closed")
	clock.Advance(time.Minute)
	assert.Equal(t, 1, seen)
}

// An audit log writes the caller, resource and rule of refusals to a separate file.
func ExampleGuard_OnBlocked() {
	clock := api.NewManualClock(time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC))
	guard, _ := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	defer guard.Close() // flushes the last second
	_ = guard.LoadRules(api.RuleSet{Hotspot: []hotspot.Rule{{ID: "per-user", Resource: "POST /orders", Param: "user", Threshold: 1}}})

	audit := json.NewEncoder(os.Stdout) // or a file rotated by logrotate
	defer guard.OnBlocked(func(r api.Refusal) {
		_ = audit.Encode(map[string]any{
			"first": r.First, "calls": r.Count, "resource": r.Block.Resource, "kind": r.Block.Kind, "rule": r.Block.Rule,
			"caller": r.Origin, "value": r.Block.Value.String(),
		})
	})()

	for range 3 {
		e, _ := guard.Entry(api.WithOrigin(context.Background(), "shop"), "POST /orders", api.Param("user", "ann"))
		e.Exit()
	}
	clock.Advance(time.Second)
	// Output:
	// {"caller":"shop","calls":2,"first":"2026-01-02T15:00:00Z","kind":"hotspot","resource":"POST /orders","rule":"per-user","value":"\"ann\""}
}
