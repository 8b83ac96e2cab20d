package api_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/slots"
)

// Every field of the engine's configuration comes from the Guard's, and Guard.Config has the
// defaults.
func TestConfigReachesTheEngine(t *testing.T) {
	cfg := api.Config{
		Clock: api.NewManualClock(time.Unix(1700000000, 0)), Interval: 2 * time.Second, Buckets: 4, OccupyTimeout: time.Second,
		ColdFactor: 5, Caps: api.Caps{Resources: 7}, LeakAfter: time.Minute, Logger: slog.New(slog.DiscardHandler),
		Failure: func(error) bool { return true }, Chain: slots.Default(), Host: busy{},
		Limits:   func(context.Context, string, argument.Value) (float64, time.Duration, error) { return 0, 0, nil },
		QuotaLog: filepath.Join(t.TempDir(), "quotas"),
	}
	g, err := api.New(cfg)
	require.NoError(t, err)
	defer g.Close()
	has, gets, shows := reflect.ValueOf(cfg), reflect.ValueOf(g.Engine().Config()), reflect.ValueOf(g.Config())
	for f := range gets.Type().Fields() {
		want := has.FieldByName(f.Name)
		require.True(t, want.IsValid() && !want.IsZero(), "%s is set above", f.Name)
		for _, is := range []reflect.Value{gets.FieldByName(f.Name), shows.FieldByName(f.Name)} {
			switch f.Type.Kind() {
			case reflect.Func:
				assert.False(t, is.IsZero(), f.Name)
			case reflect.Pointer:
				assert.Equal(t, want.Pointer(), is.Pointer(), f.Name)
			default:
				assert.Equal(t, want.Interface(), is.Interface(), f.Name)
			}
		}
	}

	plain, err := api.New(api.Config{})
	require.NoError(t, err)
	defer plain.Close()
	shown := plain.Config()
	assert.Equal(t, []any{time.Second, 2, 500 * time.Millisecond, 3}, []any{shown.Interval, shown.Buckets, shown.OccupyTimeout, shown.ColdFactor})
	assert.NotNil(t, shown.Clock)
	assert.Equal(t, slots.Default().Names(), shown.Chain.Names())
}
