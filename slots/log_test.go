package slots_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// The log has at most one line per second for each rule and resource, with the number of rejections
// since the previous one. The end of a burst is reported without another rejection. known bug 178
func TestBlockLog(t *testing.T) {
	e, clock, log := newGuard(t,
		flow.Rule{ID: "app", Resource: "orders", Threshold: 0, Origin: "app"},
		flow.Rule{ID: "all", Resource: ".*", Match: spec.MatchRegex, Threshold: 1})
	call := func(name, origin string, times int) {
		for range times {
			entry, _ := e.Enter(engine.WithOrigin(t.Context(), origin), name, nil)
			entry.Exit()
		}
	}
	call("orders", "", 4) // one passes
	call("carts", "", 3)
	call("orders", "app", 5)
	clock.Advance(999 * time.Millisecond)
	call("orders", "", 2)
	clock.Advance(time.Millisecond)
	call("orders", "", 3)
	clock.Advance(2 * time.Second)
	clock.Advance(time.Second)
	call("orders", "", 1) // passes
	call("orders", "app", 1)
	var got []string
	for _, line := range log.all() {
		_, line, _ = strings.Cut(line, "level=")
		got = append(got, line)
	}
	const line = `WARN msg="penstock: blocked" kind=flow resource=%s rule=%s count=%d`
	assert.Equal(t, []string{
		fmt.Sprintf(line, "orders", "all", 1),
		fmt.Sprintf(line, "carts", "all", 1),
		fmt.Sprintf(line, "orders", "app origin=app", 1),
		fmt.Sprintf(line, "orders", "all", 4), // 2 of the first, and 2; a second has passed
		fmt.Sprintf(line, "carts", "all", 1),
		fmt.Sprintf(line, "orders", "app origin=app", 4),
		fmt.Sprintf(line, "orders", "all", 3),            // a second later
		fmt.Sprintf(line, "orders", "app origin=app", 1), // immediately, after a second without one
	}, got)
	call("orders", "app", 3)
	require.NoError(t, e.Close())
	require.Len(t, log.all(), 9)
	assert.Contains(t, log.all()[8], fmt.Sprintf(line, "orders", "app origin=app", 3), "which Close reports")
}

// The end of a burst is reported within two seconds on the machine's clock, too, and its timer
// stops by itself: the bubble could not end while it ran. known bug 178
func TestBlockLogTellsTheRestOfABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		e := newEngine(t, engine.Config{Clock: clocks.NewSystem(), Logger: slog.New(slog.NewTextHandler(&log, nil))}, flow.Rule{ID: "none", Resource: ".*", Match: spec.MatchRegex})
		began := time.Now()
		for _, name := range []string{"orders", "carts"} {
			for range 3 {
				_, err := e.Enter(t.Context(), name, nil)
				require.ErrorIs(t, err, core.ErrBlocked)
			}
			time.Sleep(700 * time.Millisecond)
		}
		time.Sleep(time.Until(began.Add(2 * time.Second)))
		synctest.Wait()
		require.Len(t, log.all(), 4)
		assert.Contains(t, log.all()[2], "resource=orders rule=none count=2")
		assert.Contains(t, log.all()[3], "resource=carts rule=none count=2")
		time.Sleep(time.Hour)
		assert.Len(t, log.all(), 4)
	})
}

// A handler that panics loses the lines passed to it, and no others.
func TestBlockLogOfAHandlerThatPanics(t *testing.T) {
	reported, calls := int64(0), 0
	clock := clocks.NewManual(start)
	e, err := engine.NewEngine(engine.Config{Clock: clock, Chain: trial.Chain(), Logger: slog.New(counting{slog.DiscardHandler, func(r slog.Record) {
		n := count(r)
		if n == 0 {
			return
		}
		if calls++; calls == 2 || calls == 5 {
			panic("disk is full")
		}
		reported += n
	}})})
	require.NoError(t, err)
	require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error {
		return flow.Compile(b, []flow.Rule{{Resource: ".*", Match: spec.MatchRegex}})
	}))
	for range 3 {
		for _, name := range []string{"a", "b", "c"} {
			_, err := e.Enter(t.Context(), name, nil)
			require.ErrorIs(t, err, core.ErrBlocked)
		}
	}
	assert.EqualValues(t, 2, reported, "except the line about b")
	for range 10 {
		clock.Advance(time.Second)
	}
	assert.EqualValues(t, 2+2+2, reported, "except another line about b")
	require.NoError(t, e.Close())
	assert.EqualValues(t, 2+2+2, reported)
	assert.EqualValues(t, 2, e.Failures())
}

// Any name, whatever it contains, produces one line of text and one JSON object with the right
// fields.
// known bug 104
func TestBlockLogOfHostileNames(t *testing.T) {
	for _, name := range []string{
		"a\nb", "a\r\nlevel=ERROR msg=forged", "\x1b[31mred", "a\u2028b", "nul\x00", `"}{"level":"ERROR"`, `\`, "\xff", "a b=c", "",
		strings.Repeat("x", pattern.MaxName),
	} {
		if name == "" {
			continue
		}
		rule := flow.Rule{ID: name, Resource: name, Threshold: 0}
		if !utf8.ValidString(name) { // a call can have it, a rule can't
			rule = flow.Rule{ID: "any", Resource: ".*", Match: spec.MatchRegex}
		}
		e, _, log := newGuard(t, rule)
		_, err := e.Enter(t.Context(), name, nil)
		require.ErrorIs(t, err, core.ErrBlocked)
		require.Len(t, log.all(), 1, "%.40q", name)
		for _, r := range log.all()[0] {
			if r < ' ' || r == 0x7f || r == 0x2028 || r == 0x85 {
				t.Errorf("%q in the line of %.40q", r, name)
			}
		}

		var out bytes.Buffer
		j := newEngine(t, engine.Config{Logger: slog.New(slog.NewJSONHandler(&out, nil))}, rule)
		_, err = j.Enter(t.Context(), name, nil)
		require.ErrorIs(t, err, core.ErrBlocked)
		var record map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &record))
		assert.Equal(t, 1, bytes.Count(out.Bytes(), []byte("\n")))
		assert.Equal(t, "WARN", record["level"])
		assert.Equal(t, "flow", record["kind"])
		assert.InDelta(t, 1, record["count"], 0)
		assert.Len(t, record, 7)
	}

	// No call and no rule can have a name of a megabyte.
	name := strings.Repeat("x", 1<<20)
	e, _, log := newGuard(t, flow.Rule{Resource: ".*", Match: spec.MatchRegex, Threshold: 0})
	_, err := e.Enter(t.Context(), name, nil)
	require.ErrorIs(t, err, core.ErrInvalid)
	assert.Less(t, len(err.Error()), 200)
	assert.Empty(t, log.all())
}

// Every rejection on any goroutine is reported exactly once.
func TestBlockLogCountsEveryRefusal(t *testing.T) {
	var mu sync.Mutex
	reported, records := int64(0), 0
	handler := counting{slog.DiscardHandler, func(r slog.Record) {
		mu.Lock()
		defer mu.Unlock()
		records++
		reported += count(r)
	}}
	clock := clocks.NewManual(start)
	e := newEngine(t, engine.Config{Clock: clock, Logger: slog.New(handler)}, flow.Rule{Resource: "orders", Threshold: 0})
	const callers, each = 8, 2000
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			for range each {
				_, _ = e.Enter(t.Context(), "orders", nil)
				clock.Advance(time.Millisecond)
			}
		})
	}
	done.Wait()
	require.NoError(t, e.Close())
	assert.Equal(t, int64(callers*each), reported)
	assert.LessOrEqual(t, records, 1+callers*each/1000+1, "16 s, and what Close tells")
}

// The log is written outside all locks: a handler may make guarded calls itself. known bug 60
func TestBlockLogHandlerMakesGuardedCalls(t *testing.T) {
	var e *engine.Engine
	depth := 0
	e = newEngine(t, engine.Config{Clock: clocks.NewManual(start), Logger: slog.New(counting{slog.DiscardHandler, func(slog.Record) {
		depth++
		if depth > 10 {
			t.Error("the handler calls itself again and again")
			return
		}
		entry, _ := e.Enter(t.Context(), "log", nil)
		entry.Exit()
		_, _ = e.Enter(t.Context(), "orders", nil)
		if depth == 1 {
			_ = e.Close() // reports the rejection above, and calls this handler again
		}
		assert.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error {
			return flow.Compile(b, []flow.Rule{{Resource: "orders", Threshold: 0}, {Resource: "log", Threshold: 0}})
		}))
	}})}, flow.Rule{Resource: "orders", Threshold: 0}, flow.Rule{Resource: "log", Threshold: 0})
	_, err := e.Enter(t.Context(), "orders", nil)
	require.ErrorIs(t, err, core.ErrBlocked)
}

// A rejection is reported even if counting it fails.
func TestBlockLogComesBeforeTheStatistic(t *testing.T) {
	names := trial.Chain().Names()
	assert.Less(t, strings.Index(strings.Join(names, " "), "log"), strings.Index(strings.Join(names, " "), "statistic"))
}

// count returns the number of rejections in a record.
func count(r slog.Record) (n int64) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "count" {
			n = a.Value.Int64()
		}
		return true
	})
	return n
}

type counting struct {
	slog.Handler
	handle func(slog.Record)
}

func (counting) Enabled(context.Context, slog.Level) bool { return true }
func (c counting) Handle(_ context.Context, r slog.Record) error {
	c.handle(r)
	return nil
}
