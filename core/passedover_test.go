package core_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
)

// ofFamily is a slot of a family of rules.
type ofFamily struct{ *fake }

func (ofFamily) Kind() core.Kind { return core.KindFlow }

// forSome records the completion of some calls only.
type forSome struct {
	*fake
	calls core.Calls
}

func (r forSome) Concerns() core.Calls { return r.calls }

// A slot of a family without rules is passed over, and so is a recorder that has
// nothing to do with the call. All others hear of every call.
func TestSlotsArePassedOver(t *testing.T) {
	var heard []string
	say := func(what string) func(*core.Invocation) {
		return func(*core.Invocation) { heard = append(heard, what) }
	}
	ask := func(what string) func(*core.Invocation) core.Verdict {
		return func(*core.Invocation) core.Verdict { heard = append(heard, what); return core.Verdict{} }
	}
	owner := new(int)
	marks := false
	e, err := core.NewEngine(core.Config{Chain: core.NewChain(
		ofFamily{&fake{name: "family", ask: ask("family"), take: ask("family")}},
		&fake{name: "other", ask: ask("ask"), take: func(inv *core.Invocation) core.Verdict {
			if marks {
				inv.Mark(owner, 1)
			}
			return ask("take")(inv)
		}},
		forSome{&fake{name: "all", completed: say("all")}, core.AllCalls},
		forSome{&fake{name: "inbound", completed: say("inbound")}, core.InboundCalls},
		forSome{&fake{name: "marked", completed: say("marked")}, core.MarkedCalls},
	)})
	require.NoError(t, err)
	for _, tt := range []struct {
		marks bool
		opts  []core.Option
		want  []string
	}{
		{want: []string{"ask", "take", "all"}},
		{opts: []core.Option{core.Inbound()}, want: []string{"ask", "take", "all", "inbound"}},
		{marks: true, want: []string{"ask", "take", "all", "marked"}},
		{marks: true, opts: []core.Option{core.Inbound()}, want: []string{"ask", "take", "all", "inbound", "marked"}},
		{want: []string{"ask", "take", "all"}},
	} {
		heard, marks = nil, tt.marks
		entry, err := e.Enter(t.Context(), "orders", tt.opts)
		require.NoError(t, err)
		entry.Exit()
		assert.Equal(t, tt.want, heard)
	}
}
