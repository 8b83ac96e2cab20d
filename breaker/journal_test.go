package breaker_test

import (
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
)

// logged returns a guard, and a function for the breaker lines logged since its last call. Every
// line has the time of the change, which is left out.
func logged(t *testing.T, rules ...breaker.Rule) (g *guard, log func() []string) {
	out := new(strings.Builder)
	g = newGuardWith(t, engine.Config{Logger: slog.New(slog.NewTextHandler(out, nil))}, rules...)
	return g, func() (lines []string) {
		for line := range strings.Lines(out.String()) {
			if _, what, ok := strings.Cut(line, `msg="penstock: a breaker changed state" `); ok {
				_, level, _ := strings.Cut(line, "level=")
				at := changedAt.FindString(what)
				require.NotEmpty(t, at, what)
				lines = append(lines, level[:4]+" "+strings.TrimSpace(strings.Replace(what, at, "", 1)))
			}
		}
		out.Reset()
		return lines
	}
}

var changedAt = regexp.MustCompile(` at=\S+`)

// A line that is written later has the time of the change.
func TestLogHasTheTimeOfTheChange(t *testing.T) {
	out := new(strings.Builder)
	g := newGuardWith(t, engine.Config{Logger: slog.New(slog.NewTextHandler(out, nil))}, breaker.Rule{ID: "b", Resource: "orders", MinCalls: 1, Recovery: 10 * ms})
	g.calls("f")
	g.at(20 * ms)
	g.calls("g")
	out.Reset()
	g.at(time.Minute)
	assert.Contains(t, out.String(), "at="+start.Add(20*ms).UTC().Format("2006-01-02T15:04:05.000Z07:00"))
}

// An open breaker keeps the counts that opened it, through its probes, until it closes.
func TestStatusKeepsWhatOpenedIt(t *testing.T) {
	g := newGuard(t, breaker.Rule{ID: "b", Resource: "orders", Threshold: 0.5, MinCalls: 4, Interval: 10 * time.Second, Recovery: time.Second, Probes: 2})
	has := func() (string, breaker.Trip) {
		s := g.status("b", "orders")
		return s.State.String() + ": " + s.Why, s.Trip
	}
	g.calls("gff")
	why, trip := has()
	assert.Equal(t, "closed: ", why)
	assert.Zero(t, trip)
	g.calls("f")
	tripped := breaker.Trip{At: start.UTC(), Value: 0.75, Calls: 4, Bad: 3}
	why, trip = has()
	assert.Equal(t, "open: share of failed calls in 10s: 0.8, threshold 0.5", why)
	assert.Equal(t, tripped, trip)
	g.at(time.Second)
	g.calls("f")
	why, trip = has()
	assert.Equal(t, "open: a probe failed", why)
	assert.Equal(t, tripped, trip)
	g.at(2 * time.Second)
	g.calls("g")
	why, trip = has()
	assert.Equal(t, "halfOpen: recovery is over: a call runs as a probe", why)
	assert.Equal(t, tripped, trip)
	g.calls("g")
	why, trip = has()
	assert.Equal(t, "closed: 2 probes in a row succeeded", why)
	assert.Zero(t, trip)
	require.NoError(t, g.table().Force("b", "", breaker.ForceOpen))
	why, trip = has()
	assert.Equal(t, "forcedOpen: forced by hand", why)
	assert.Zero(t, trip)
}

// The log has a line for every change of a breaker: the old state, the new one, and why.
func TestLogOfChanges(t *testing.T) {
	g, log := logged(t, breaker.Rule{
		ID: "b", Resource: "orders", Threshold: 0.5, MinCalls: 4, Interval: 10 * time.Second, Recovery: 2 * time.Second, Probes: 2, Ramp: time.Second,
	})
	g.calls("gfff")
	assert.Equal(t, []string{`WARN resource=orders rule=b from=closed to=open why="share of failed calls in 10s: 0.8, threshold 0.5"`}, log())
	assert.Empty(t, log())
	g.at(2 * time.Second)
	g.calls("f")
	g.at(3 * time.Second)
	assert.Equal(t, []string{
		`INFO resource=orders rule=b from=open to=halfOpen why="recovery is over: a call runs as a probe"`,
		`WARN resource=orders rule=b from=halfOpen to=open why="a probe failed"`,
	}, log())
	g.at(4 * time.Second)
	g.calls("g")
	g.at(5 * time.Second)
	g.calls("g")
	g.at(8 * time.Second)
	g.calls("g")
	assert.Equal(t, []string{
		`INFO resource=orders rule=b from=open to=halfOpen why="recovery is over: a call runs as a probe"`,
		`INFO resource=orders rule=b from=halfOpen to=recovering why="2 probes in a row succeeded"`,
		`INFO resource=orders rule=b from=recovering to=closed why="the ramp is over"`,
	}, log())
	g.at(10 * time.Second)
	require.NoError(t, g.table().Force("b", "", breaker.ForceOpen))
	g.at(12 * time.Second)
	require.NoError(t, g.table().Force("b", "", breaker.NotForced))
	assert.Equal(t, []string{
		`WARN resource=orders rule=b from=closed to=forcedOpen why="forced by hand"`,
		`WARN resource=orders rule=b from=forcedOpen to=open why="released by hand"`,
	}, log())
}

func TestLogSaysWhatWasMeasured(t *testing.T) {
	for _, tt := range []struct {
		rule  breaker.Rule
		calls string
		why   string
	}{
		{breaker.Rule{Strategy: breaker.ErrorCount, Interval: 10 * time.Second, Threshold: 2, MinCalls: 1}, "fgf", "failed calls in 10s: 2, threshold 2"},
		{breaker.Rule{Strategy: breaker.ConsecutiveErrors, Threshold: 3}, "fff", "failed calls in a row: 3, threshold 3"},
		{breaker.Rule{Strategy: breaker.SlowRatio, Interval: 10 * time.Second, SlowRT: 100 * ms, Threshold: 0.5, MinCalls: 2}, "gs", "share of slow calls in 10s: 0.5, threshold 0.5"},
	} {
		tt.rule.ID, tt.rule.Resource, tt.rule.Mode = "b", "orders", spec.Shadow
		g, log := logged(t, tt.rule)
		g.calls(tt.calls)
		assert.Equal(t, []string{`WARN resource=orders rule=b from=closed to=open why="` + tt.why + `" mode=shadow`}, log())
	}
}

// A flapping breaker writes one line per second, and the last line has the final state.
func TestLogOfABreakerThatFlaps(t *testing.T) {
	g, log := logged(t, breaker.Rule{ID: "b", Resource: "orders", MinCalls: 1, Recovery: 10 * ms})
	for i := range 50 { // half a second of opening, in which each probe but the last fails
		g.at(time.Duration(i) * 10 * ms)
		g.calls("f")
	}
	g.at(500 * ms)
	g.calls("g")
	assert.Len(t, log(), 1)
	g.at(time.Minute)
	assert.Equal(t, []string{`INFO resource=orders rule=b from=open to=closed why="the probe succeeded" changes=100`}, log())
	g.calls("f")
	require.NoError(t, g.table().Force("b", "", breaker.ForceClosed))
	require.NoError(t, g.Close())
	assert.Equal(t, []string{
		`WARN resource=orders rule=b from=closed to=open why="share of failed calls in 10s: 1, threshold 0"`,
		`INFO resource=orders rule=b from=open to=forcedClosed why="forced by hand"`,
	}, log())
}

// The length limit of log lines applies to names, as for lines about refusals.
func TestLogOfABreakerWithAHostileName(t *testing.T) {
	g, log := logged(t, breaker.Rule{ID: "b", Resource: "*", MinCalls: 1})
	name := "a\u202e\n" + strings.Repeat("x", 900)
	g.call(name, 0, errOwn)
	line := log()
	require.Len(t, line, 1)
	assert.Less(t, len(line[0]), 450)
	assert.NotContains(t, line[0], "\u202e")
}

func TestExplainSaysWhyItIsOpen(t *testing.T) {
	g := newGuard(t, breaker.Rule{ID: "b", Resource: "orders", Threshold: 0.5, MinCalls: 2, Interval: 10 * time.Second, Recovery: time.Second})
	why := func() string {
		x, err := g.Explain(t.Context(), "orders", nil)
		require.NoError(t, err)
		return x.Rules[0].Why
	}
	g.calls("ff")
	assert.Equal(t, "the breaker is open: share of failed calls in 10s: 1, threshold 0.5", why())
	g.at(time.Second)
	assert.Equal(t, "the breaker is open, and recovery is over: the call is a probe", why())
	g.calls("f")
	assert.Equal(t, "the breaker is open: a probe failed", why())
}
