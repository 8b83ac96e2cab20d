package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

func TestBlockErrorIsWhatItIs(t *testing.T) {
	b := core.NewBlockError(core.BlockError{Kind: core.KindBreaker, Resource: "orders", Rule: "slow"}, nil)
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
	assert.Equal(t, []string{"none", "authority", "system", "hotspot", "flow", "isolation", "adaptive", "breaker", "upstream", "outlier", "custom", "kind(11)"}, names)
}

// ruling is a rule with a known retry time and limit.
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
		b := core.NewBlockError(core.BlockError{Kind: core.KindFlow, Resource: "orders", Rule: "r"}, tt.rule)
		wait, known := b.RetryAfter()
		seconds, also := b.RetryAfterIn(time.Second)
		assert.Equal(t, tt.want, answer{wait, known, seconds}, "%+v", tt.rule)
		assert.Equal(t, known, also)
		limit, known := b.Limit()
		assert.Equal(t, tt.want.known, known)
		assert.Equal(t, known, limit == 2.5)
	}
	b := core.NewBlockError(core.BlockError{}, ruling{wait: 1500 * time.Microsecond})
	millis, _ := b.RetryAfterIn(time.Millisecond)
	assert.EqualValues(t, 2, millis)
}

// An error made by hand, as in a test, is a rejection like any other.
func TestBlockErrorMadeByHand(t *testing.T) {
	b := &core.BlockError{Kind: core.KindFlow, Resource: "orders", Rule: "r"}
	require.ErrorIs(t, b, core.ErrBlocked)
	_, known := b.RetryAfter()
	assert.False(t, known)
	_, known = b.Limit()
	assert.False(t, known)
}
