package engine_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
)

// The log handler that hears of a settlement that did nothing may end the call, or take as long as it
// wants. // known bug 252
func TestLogOfASettlementMayEndTheCall(t *testing.T) {
	var call engine.Entry
	logged := make(chan struct{})
	e, _ := newEngine(t, engine.Config{Logger: slog.New(handler(func(slog.Record) {
		call.Exit()
		close(logged)
	}))}, flow.Rule{Resource: "chat", Unit: "tokens", Threshold: 1000})
	call, err := e.Enter(t.Context(), "chat", []engine.Option{engine.Cost("tokens", 10)})
	require.NoError(t, err)
	go func() {
		call.Settle("tokens", 5)
		call.Settle("tokens", 5)
	}()
	select {
	case <-logged:
	case <-time.After(10 * time.Second):
		t.Fatal("Exit waits for the log")
	}
}

// A settled unit is over: More says so at once, and neither asks the rules nor waits in a throttle.
// known bug 253
func TestMoreOfASettledUnit(t *testing.T) {
	e, clock := newEngine(t, engine.Config{},
		flow.Rule{Resource: "chat", Unit: "tokens", Threshold: 1000},
		flow.Rule{Resource: "chat", Unit: "bytes", Threshold: 10, Behavior: flow.Throttle})
	clock.SetSleep(clocks.SleepAdvance)
	call, err := e.Enter(t.Context(), "chat", []engine.Option{engine.Cost("tokens", 10), engine.Cost("bytes", 10)})
	require.NoError(t, err)
	for _, unit := range []string{"tokens", "bytes"} {
		call.Settle(unit, 5)
		require.ErrorIs(t, call.More(t.Context(), unit, 2000), core.ErrExited)
	}
	assert.Zero(t, since(clock))
	for _, u := range resource(t, e, "chat").UnitStats() {
		assert.Zero(t, u.Total.Refused, u.Unit)
	}
	call.Exit()
}

// A call may ask for more of units that no rule has, but not for ever more of them: their number fits
// into that of a reservation's cost. // known bug 254
func TestMoreOfManyUnits(t *testing.T) {
	e, clock := newEngine(t, engine.Config{}, flow.Rule{Resource: "chat", Unit: "tokens", Threshold: 1000})
	held := func() int64 { return resource(t, e, "chat").Meters().Windows()[0].Sum(clock.Now()) }
	for _, others := range []int{253, 254, 255, 256, 600} {
		call, err := e.Enter(t.Context(), "chat", []engine.Option{engine.Cost("x", 1)})
		require.NoError(t, err)
		for i := range others {
			if err := call.More(t.Context(), string([]byte{'u', 'a' + byte(i%26), 'a' + byte(i/26)}), 1); i < 254 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, core.ErrInvalid)
			}
		}
		if err := call.More(t.Context(), "tokens", 500); others < 254 {
			require.NoError(t, err)
			require.EqualValues(t, 500, held())
		} else {
			require.ErrorIs(t, err, core.ErrInvalid)
			require.Zero(t, held())
		}
		call.Settle("x", 0)
		call.Settle("tokens", 0)
		require.Zero(t, held())
		call.Exit()
	}
}

// The counts of a unit don't keep the request alive that its name is a part of. known bug 260
func TestNameOfAUnitIsACopy(t *testing.T) {
	e, _ := newEngine(t, engine.Config{}, flow.Rule{Resource: "chat", Unit: "tokens", Threshold: 1000})
	request := strings.Repeat("x", 1<<20) + "tokens"
	unit := request[1<<20:]
	call, err := e.Enter(t.Context(), "chat", []engine.Option{engine.Cost(unit, 1)})
	require.NoError(t, err)
	call.Exit()
	counted := resource(t, e, "chat").UnitStats()[0].Unit
	require.Equal(t, unit, counted)
	require.NotSame(t, unsafe.StringData(unit), unsafe.StringData(counted))
}

// A call counts as uncosted, once and when it has ended, for each unit of a rule that it names no cost
// in and asks for no more of: whether the rule has an estimate, is in shadow mode, or has no room for
// others. Refused calls and resources without such rules count none.
func TestUncostedCalls(t *testing.T) {
	e, _ := newEngine(t, engine.Config{},
		flow.Rule{ID: "a", Resource: "chat", Unit: "tokens", Threshold: 1000},
		flow.Rule{ID: "b", Resource: "chat", Unit: "tokens", Threshold: 1000, Mode: spec.Shadow},
		flow.Rule{ID: "c", Resource: "chat", Unit: "rows", Threshold: 1000, Estimate: 600},
		flow.Rule{ID: "d", Resource: "plain", Threshold: 10})
	uncosted := func() (tokens, rows int64) {
		for _, u := range resource(t, e, "chat").UnitStats() {
			if u.Unit == "tokens" {
				tokens = u.Total.Uncosted
			} else {
				rows = u.Total.Uncosted
			}
			assert.Equal(t, u.Total, u.Minute)
		}
		return tokens, rows
	}
	enter := func(more string, opts ...engine.Option) {
		t.Helper()
		before, earlier := uncosted()
		call, err := e.Enter(t.Context(), "chat", opts)
		require.NoError(t, err)
		if more != "" {
			require.NoError(t, call.More(t.Context(), more, 1))
		}
		call.Settle("rows", 0)
		during, soon := uncosted()
		assert.Equal(t, []int64{before, earlier}, []int64{during, soon})
		call.Exit()
		call.Exit()
	}
	check := func(tokens, rows int64) {
		t.Helper()
		gotTokens, gotRows := uncosted()
		assert.Equal(t, []int64{tokens, rows}, []int64{gotTokens, gotRows})
	}
	enter("")
	check(1, 1)
	enter("", engine.Cost("tokens", 5))
	check(1, 2)
	enter("", engine.Cost("tokens", 5), engine.Cost("rows", 0))
	check(1, 2)
	enter("tokens")
	check(1, 3)
	enter("", engine.Cost("bytes", 5))
	check(2, 4)
	full, err := e.Enter(t.Context(), "chat", []engine.Option{engine.Cost("rows", 500)})
	require.NoError(t, err)
	_, err = e.Enter(t.Context(), "chat", nil)
	require.ErrorIs(t, err, core.ErrBlocked)
	full.Exit()
	check(3, 4)
	plain, err := e.Enter(t.Context(), "plain", []engine.Option{engine.Cost("tokens", 1)})
	require.NoError(t, err)
	plain.Exit()
	assert.Empty(t, resource(t, e, "plain").UnitStats())
}
