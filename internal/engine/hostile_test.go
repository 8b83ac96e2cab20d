package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
)

// hostile are names that would break a line, a terminal or a parser.
var hostile = []string{
	"a\nb", "a\r\nlevel=ERROR msg=forged", "\x1b[31mred", "a\u2028b", "a\u0085b", "nul\x00", "\x7f", `quote"quote`, `\`, "\xff\xfe", "a|b",
	strings.Repeat("long", pattern.MaxName/4), " ", "%s%d%!", "\u202eright to left",
}

// known bug 104
func TestHostileNamesStayOnOneLine(t *testing.T) {
	oneLine := func(t *testing.T, text string) {
		t.Helper()
		for _, r := range text {
			if r != ' ' && (r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0x202e || r == 0xfffd) {
				t.Errorf("%q in %q", r, text)
			}
		}
	}
	for _, name := range hostile {
		b := engine.NewCounted(core.BlockError{Kind: core.KindFlow, Resource: name, Rule: name}, nil, nil, nil)
		oneLine(t, b.Error())
		assert.Equal(t, fmt.Sprintf("penstock: flow rule %q blocked %q", name, name), b.Error())

		rule := flow.Rule{ID: name, Resource: name}
		if !utf8.ValidString(name) { // a call can have it, a rule can't
			rule = flow.Rule{Resource: ".*", Match: spec.MatchRegex}
		}
		var log lines
		e, _ := newEngine(t, engine.Config{Logger: log.logger()}, rule)
		_, err := e.Enter(t.Context(), name, nil)
		require.ErrorIs(t, err, core.ErrBlocked)
		oneLine(t, err.Error())
		require.Len(t, log.all(), 1)
		oneLine(t, log.all()[0])

		rule.Threshold, rule.Behavior = 1, flow.Throttle
		e, clock := newEngine(t, engine.Config{}, rule)
		entry, err := e.Enter(t.Context(), name, nil)
		require.NoError(t, err)
		entry.Exit()
		rule.MaxWait = time.Hour
		load(t, e, rule)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := e.Enter(ctx, name, nil)
			done <- err
		}()
		clock.AwaitParked(1)
		cancel()
		err = <-done
		require.ErrorIs(t, err, context.Canceled)
		oneLine(t, err.Error())
	}
}
