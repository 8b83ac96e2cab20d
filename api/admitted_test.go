package api_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
)

func TestExitOn(t *testing.T) {
	failure := errors.New("x")
	for _, tt := range []struct {
		name   string
		fn     func(api.Admitted) (err error)
		failed bool
		panics any
	}{
		{name: "nil", fn: func(e api.Admitted) (err error) {
			defer e.ExitOn(&err)
			return nil
		}},
		{name: "error", failed: true, fn: func(e api.Admitted) (err error) {
			defer e.ExitOn(&err)
			return failure
		}},
		{name: "no pointer", fn: func(e api.Admitted) (err error) {
			defer e.ExitOn(nil)
			return failure
		}},
		{name: "panic", failed: true, panics: failure, fn: func(e api.Admitted) (err error) {
			defer e.ExitOn(&err)
			panic(failure)
		}},
		{name: "panic without a pointer", failed: true, panics: "x", fn: func(e api.Admitted) (err error) {
			defer e.ExitOn(nil)
			panic("x")
		}},
		{name: "Goexit", fn: func(e api.Admitted) (err error) {
			var done sync.WaitGroup
			done.Go(func() {
				defer e.ExitOn(&err)
				runtime.Goexit()
			})
			done.Wait()
			return nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
			g := newGuard(t, api.Config{Clock: clock})
			func() {
				defer func() { assert.Equal(t, tt.panics, recover()) }()
				entry, err := g.Entry(t.Context(), "orders")
				require.NoError(t, err)
				clock.Advance(time.Second)
				_ = tt.fn(entry)
			}()
			want := int64(0)
			if tt.failed {
				want = 1
			}
			orders, ok := g.FindResource("orders")
			require.True(t, ok)
			totals := orders.Totals()
			assert.Equal(t, want, totals.Exception)
			assert.Equal(t, int64(1), totals.Exited)
			assert.Equal(t, time.Second, totals.RT)
		})
	}
}

// A panic that passes through ExitOn of a call that has exited, or was refused, continues.
func TestExitOnPassesPanicsOn(t *testing.T) {
	assert.PanicsWithValue(t, "x", func() {
		var refused api.Admitted
		defer refused.ExitOn(nil)
		panic("x")
	})
}
