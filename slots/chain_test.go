package slots_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// spy is a slot that records each phase and the state at that time.
type spy struct {
	name string
	out  *strings.Builder
}

func (s spy) Name() string { return s.name }
func (s spy) note(phase string, inv *engine.Invocation) {
	fmt.Fprintf(s.out, "%-22s %-10s nodes %d, counted %d, resource %s\n",
		s.name, phase, len(inv.Nodes()), len(inv.Counted()), figures(inv))
}
func (s spy) Prepare(inv *engine.Invocation)            { s.note("prepare", inv) }
func (s spy) Ask(inv *engine.Invocation) engine.Verdict { s.note("ask", inv); return engine.Verdict{} }
func (s spy) Take(inv *engine.Invocation) engine.Verdict {
	s.note("take", inv)
	return engine.Verdict{}
}
func (s spy) Recheck(inv *engine.Invocation) engine.Verdict {
	s.note("recheck", inv)
	return engine.Verdict{}
}
func (s spy) Passed(inv *engine.Invocation)                      { s.note("passed", inv) }
func (s spy) Blocked(inv *engine.Invocation, _ *core.BlockError) { s.note("blocked", inv) }
func (s spy) Completed(inv *engine.Invocation)                   { s.note("completed", inv) }

func figures(inv *engine.Invocation) string {
	t := inv.Resource().Totals()
	return fmt.Sprintf("pass %d, block %d, complete %d", t.Pass, t.Block, t.Complete)
}

// Spies between the slots of the standard chain record its order. To rewrite the transcripts:
// PENSTOCK_UPDATE=1 go test ./slots
func TestOrder(t *testing.T) {
	assert.Equal(t, []string{"nodeSelector", "clusterBuilder", "log", "statistic", "authority", "system", "hotspot", "flow", "isolation", "adaptive", "breaker", "upstream", "outlier"}, trial.Chain().Names())
	for _, tt := range []struct {
		name string
		rule flow.Rule
	}{
		{"passes", flow.Rule{Resource: "orders", Threshold: 5}},
		{"refused", flow.Rule{Resource: "orders", Threshold: 0}},
		{"waits", flow.Rule{Resource: "orders", Threshold: 5, Behavior: flow.Throttle}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			chain := trial.Chain()
			names := chain.Names()
			for _, name := range names {
				chain = chain.With(spy{"before " + name, &out}, engine.Before(name))
			}
			chain = chain.With(spy{"behind all", &out}, engine.After(names[len(names)-1]))
			clock := clocks.NewManual(start)
			clock.SetSleep(clocks.SleepAdvance)
			e, err := engine.NewEngine(engine.Config{Clock: clock, Chain: chain})
			require.NoError(t, err)
			books.Keep(t, e)
			require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error { return flow.Compile(b, []flow.Rule{tt.rule}) }))
			ctx := engine.WithOrigin(engine.WithContext(t.Context(), "web"), "app")
			if tt.name == "waits" {
				entry, err := e.Enter(ctx, "orders", nil)
				require.NoError(t, err)
				entry.Exit()
				out.Reset()
			}
			entry, _ := e.Enter(ctx, "orders", []engine.Option{engine.Inbound()})
			entry.Exit()

			file := filepath.Join("testdata", tt.name+".txt")
			if os.Getenv("PENSTOCK_UPDATE") != "" {
				require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), out.String())
		})
	}
}
