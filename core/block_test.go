package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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
)

func TestBlockErrorIsWhatItIs(t *testing.T) {
	b := core.NewCounted(core.BlockError{Kind: core.KindBreaker, Resource: "orders", Rule: "slow"}, nil, nil, nil)
	for name, err := range map[string]error{
		"plain":   b,
		"wrapped": fmt.Errorf("handler: %w", b),
		"joined":  errors.Join(errors.New("x"), b),
	} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorIs(t, err, core.ErrBlocked)
			assert.NotErrorIs(t, err, core.ErrInvalid)
			assert.Equal(t, core.KindBreaker, core.KindOf(err))
			var as *core.BlockError
			require.ErrorAs(t, err, &as)
			assert.Same(t, b, as)
		})
	}
}

func TestKindOfOtherErrors(t *testing.T) {
	for _, err := range []error{nil, errors.New("x"), core.ErrBlocked, core.ErrInvalid, context.Canceled} {
		assert.Equal(t, core.KindNone, core.KindOf(err), "%v", err)
	}
}

func TestKindNames(t *testing.T) {
	var names []string
	for k := core.KindNone; k <= core.KindCustom+1; k++ {
		names = append(names, k.String())
	}
	assert.Equal(t, []string{"none", "authority", "system", "hotspot", "flow", "isolation", "adaptive", "breaker", "outlier", "custom", "kind(10)"}, names)
}

// ruling is a rule that knows when a call may come again, and its limit.
type ruling struct {
	wait    time.Duration
	unknown bool
}

func (r ruling) RetryAfter() (time.Duration, bool) { return r.wait, !r.unknown }
func (r ruling) Limit() (float64, bool)            { return 2.5, !r.unknown }

func TestRetryAfter(t *testing.T) {
	type answer struct {
		wait    time.Duration
		known   bool
		seconds int64
	}
	for _, tt := range []struct {
		rule core.Refuser
		want answer
	}{
		{nil, answer{}},
		{ruling{wait: time.Second, unknown: true}, answer{}},
		{ruling{wait: -time.Second}, answer{0, true, 1}},
		{ruling{wait: 0}, answer{0, true, 1}},
		{ruling{wait: 1}, answer{1, true, 1}},
		{ruling{wait: time.Second}, answer{time.Second, true, 1}},
		{ruling{wait: time.Second + 1}, answer{time.Second + 1, true, 2}},
		{ruling{wait: 90 * time.Minute}, answer{90 * time.Minute, true, 5400}},
		{ruling{wait: math.MaxInt64}, answer{math.MaxInt64, true, 9223372037}},
	} {
		b := core.NewCounted(core.BlockError{Kind: core.KindFlow, Resource: "orders", Rule: "r"}, tt.rule, nil, nil)
		wait, known := b.RetryAfter()
		seconds, also := b.RetryAfterIn(time.Second)
		assert.Equal(t, tt.want, answer{wait, known, seconds}, "%+v", tt.rule)
		assert.Equal(t, known, also)
		limit, known := b.Limit()
		assert.Equal(t, tt.want.known, known)
		assert.Equal(t, known, limit == 2.5)
	}
	b := core.NewCounted(core.BlockError{}, ruling{wait: 1500 * time.Microsecond}, nil, nil)
	millis, _ := b.RetryAfterIn(time.Millisecond)
	assert.EqualValues(t, 2, millis)
}

// An error that is made by hand, as for a test, is a refusal like any other.
func TestBlockErrorMadeByHand(t *testing.T) {
	b := &core.BlockError{Kind: core.KindFlow, Resource: "orders", Rule: "r"}
	require.ErrorIs(t, b, core.ErrBlocked)
	_, known := b.RetryAfter()
	assert.False(t, known)
	_, known = b.Limit()
	assert.False(t, known)
}

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
		b := core.NewCounted(core.BlockError{Kind: core.KindFlow, Resource: name, Rule: name}, nil, nil, nil)
		oneLine(t, b.Error())
		assert.Equal(t, fmt.Sprintf("penstock: flow rule %q blocked %q", name, name), b.Error())

		rule := flow.Rule{ID: name, Resource: name}
		if !utf8.ValidString(name) { // a call can have it, a rule can't
			rule = flow.Rule{Resource: ".*", Match: spec.MatchRegex}
		}
		var log lines
		e, _ := newEngine(t, core.Config{Logger: log.logger()}, rule)
		_, err := e.Enter(t.Context(), name, nil)
		require.ErrorIs(t, err, core.ErrBlocked)
		oneLine(t, err.Error())
		require.Len(t, log.all(), 1)
		oneLine(t, log.all()[0])

		rule.Threshold, rule.Behavior = 1, flow.Throttle
		e, clock := newEngine(t, core.Config{}, rule)
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
