package penstockredis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	penstockredis "github.com/penstock-go/penstock/cluster/redis"
	"github.com/penstock-go/penstock/cluster/redis/internal/server"
)

// patience is the maximum wait for an event that must happen; the timeout of go test ends it
// earlier.
const patience = time.Hour

// start starts a Redis that ends with the test. Without an installed Redis the test is skipped.
func start(t testing.TB, args ...string) *server.Server {
	t.Helper()
	return startWith(t, "", args...)
}

// startWith is like start, but with a configuration file.
func startWith(t testing.TB, file string, args ...string) *server.Server {
	t.Helper()
	s, err := server.StartWith(t.TempDir(), file, args...)
	if errors.Is(err, server.ErrNotInstalled) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(s.Kill)
	return s
}

// patient returns a client without a timeout.
func patient(t testing.TB, s *server.Server) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: s.Addr, MaxRetries: -1, ContextTimeoutEnabled: true, Protocol: 2, PipelinePoolSize: -1,
		ReadTimeout: patience, WriteTimeout: patience, DialTimeout: patience, PoolTimeout: patience,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// movable returns a store whose clock stands still, and a function that advances it.
func movable(t testing.TB, client *redis.Client) (*penstockredis.Store, func(time.Duration)) {
	require.NoError(t, client.Set(context.Background(), penstockredis.ClockKey, time.Now().UnixMicro(), 0).Err())
	return penstockredis.Movable(client), func(d time.Duration) {
		require.NoError(t, client.IncrBy(context.Background(), penstockredis.ClockKey, d.Microseconds()).Err())
	}
}
