package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

func TestBlockErrorIsWhatItIs(t *testing.T) {
	b := core.NewBlockError(core.KindBreaker, "orders", "slow", nil)
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
	for k := core.KindNone; k <= core.KindOutlier+1; k++ {
		names = append(names, k.String())
	}
	assert.Equal(t, []string{"none", "authority", "system", "hotspot", "flow", "isolation", "adaptive", "breaker", "outlier", "kind(9)"}, names)
}

type after time.Duration

func (d after) RetryAfter() time.Duration { return time.Duration(d) }

func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		retry core.Retrier
		want  time.Duration
	}{
		{nil, 0},
		{after(0), 0},
		{after(-time.Second), 0},
		{after(time.Second), time.Second},
		{after(math.MaxInt64), math.MaxInt64},
	} {
		assert.Equal(t, tt.want, core.NewBlockError(core.KindFlow, "orders", "r", tt.retry).RetryAfter())
	}
}

// hostile are names that would break a line, a terminal or a parser.
var hostile = []string{
	"a\nb", "a\r\nlevel=ERROR msg=forged", "\x1b[31mred", "a\u2028b", "a\u0085b", "nul\x00", "\x7f", `quote"quote`, `\`, "\xff\xfe", "a|b",
	strings.Repeat("long", 1000), " ", "%s%d%!", "\u202eright to left",
}

// museum 104
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
		b := core.NewBlockError(core.KindFlow, name, name, nil)
		oneLine(t, b.Error())
		assert.Equal(t, fmt.Sprintf("penstock: flow rule %q blocked %q", name, name), b.Error())

		var log lines
		e, _ := newEngine(t, core.Config{Logger: log.logger()}, flow.Rule{ID: name, Resource: name, Threshold: 0})
		_, err := e.Enter(t.Context(), name, nil)
		require.ErrorIs(t, err, core.ErrBlocked)
		oneLine(t, err.Error())
		require.Len(t, log.all(), 1)
		oneLine(t, log.all()[0])

		e, clock := newEngine(t, core.Config{}, flow.Rule{ID: name, Resource: name, Threshold: 1, Behavior: flow.Throttle})
		entry, err := e.Enter(t.Context(), name, nil)
		require.NoError(t, err)
		entry.Exit()
		load(t, e, flow.Rule{ID: name, Resource: name, Threshold: 1, Behavior: flow.Throttle, MaxWait: time.Hour})
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

// Every refusal is told exactly once, in one line or another.
func TestNoteConservesRefusals(t *testing.T) {
	b := refusal("r")
	const callers, each = 8, 2000
	var mu sync.Mutex
	told, lines := int64(0), 0
	var done sync.WaitGroup
	for c := range callers {
		done.Go(func() {
			for i := range each {
				if n, due := b.Note(uint32(c), int64(i)*int64(10*time.Millisecond)); due {
					mu.Lock()
					told += n
					lines++
					mu.Unlock()
				}
			}
		})
	}
	done.Wait()
	assert.LessOrEqual(t, lines, 20, "20 s, a line each")
	assert.Equal(t, int64(callers*each), told+b.Unlogged())
	assert.Equal(t, int64(callers*each), b.Refusals())
	assert.Zero(t, b.Unlogged())
}

// The first refusal is told at once, also where the clock stands before 1970.
func TestNoteIsDueAtFirst(t *testing.T) {
	for _, now := range []int64{0, 1, start.UnixNano(), -1, -int64(20 * 365 * 24 * time.Hour)} {
		b := refusal("r")
		n, due := b.Note(0, now)
		assert.True(t, due, "at %d", now)
		assert.Equal(t, int64(1), n)
		_, due = b.Note(0, now+int64(time.Second)-1)
		assert.False(t, due)
		n, due = b.Note(0, now+int64(time.Second))
		assert.True(t, due)
		assert.Equal(t, int64(2), n)
	}
}
