// Package trial holds common parts of the rule families' tests: an engine under test, its stats,
// callers that begin together, and checks for the rules of every family.
package trial

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
)

// Start is the initial time of the clock of an engine under test.
var Start = time.Unix(1_700_000_000, 0)

// Engine returns an engine with the standard chain, a manual clock and no log, unless the
// configuration has others. When the test ends, nothing may be in flight and no slot may have
// panicked. The clock is nil if the configuration has another kind.
func Engine(t testing.TB, cfg engine.Config) (*engine.Engine, *clocks.Manual) {
	t.Helper()
	if cfg.Clock == nil {
		cfg.Clock = clocks.NewManual(Start)
	}
	if cfg.Chain == nil {
		cfg.Chain = Chain()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	e, err := engine.NewEngine(cfg)
	if err != nil {
		t.Fatal(err)
	}
	books.Keep(t, e)
	t.Cleanup(func() {
		if n := e.Failures(); n != 0 {
			t.Errorf("%d panics in slots", n)
		}
	})
	clock, _ := cfg.Clock.(*clocks.Manual)
	return e, clock
}

// Enter makes a call to "orders" that must run at once.
func Enter(t testing.TB, e *engine.Engine, opts ...engine.Option) engine.Entry {
	t.Helper()
	entry, err := e.Enter(t.Context(), "orders", opts)
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

// Refused makes a call to "orders" that a family of rules must refuse at once.
func Refused(t testing.TB, e *engine.Engine, by core.Kind, opts ...engine.Option) {
	t.Helper()
	entry, err := e.Enter(t.Context(), "orders", opts)
	entry.Exit()
	if !errors.Is(err, core.ErrBlocked) || core.KindOf(err) != by {
		t.Fatalf("the call ended with %v instead of a refusal by %v", err, by)
	}
}

// Figures returns the stats of the rule with the given ID.
func Figures(t testing.TB, e *engine.Engine, id string) core.RuleStats {
	t.Helper()
	for _, f := range e.Rules().RuleStats() {
		if f.ID == id {
			return f
		}
	}
	t.Fatalf("no rule %q", id)
	return core.RuleStats{}
}

// Details returns the details of the rule with the given ID, in the type of its family.
func Details[D core.Details](t testing.TB, e *engine.Engine, id string) (d D) {
	t.Helper()
	d, ok := Figures(t, e, id).Details.(D)
	if !ok {
		t.Fatalf("rule %q has no such details", id)
	}
	return d
}

// Runs writes "a, a, b" as "a x2, b".
func Runs(words []string) string {
	var b strings.Builder
	for i := 0; i < len(words); {
		n := 1
		for i+n < len(words) && words[i+n] == words[i] {
			n++
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(words[i])
		if n > 1 {
			fmt.Fprintf(&b, " x%d", n)
		}
		i += n
	}
	return b.String()
}
