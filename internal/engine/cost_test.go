package engine_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
