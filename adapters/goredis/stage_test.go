package penstockgoredis_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	penstockgoredis "github.com/penstock-go/penstock/adapters/goredis"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/patience"
)

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	books.Main(m)
}

// quiet is a log of go-redis that discards everything.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// everywhere runs a test against a real Redis, and against one written in Go that knows the
// commands of this test. Without a real Redis it logs that and continues.
func everywhere(t *testing.T, test func(t *testing.T, s *stage)) {
	t.Run("redis-server", func(t *testing.T) {
		binary, err := exec.LookPath("redis-server")
		if err != nil {
			t.Skip("NOT TESTED AGAINST A REAL REDIS: redis-server is not installed (Debian: apt-get install redis-server)")
		}
		dir, err := os.MkdirTemp("", "redis") //nolint:usetesting // the path of a socket must be short
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
		socket := filepath.Join(dir, "s")
		server := exec.Command(binary, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir, "--maxmemory-policy", "noeviction")
		require.NoError(t, server.Start())
		t.Cleanup(func() {
			_ = server.Process.Kill()
			_ = server.Wait()
		})
		play(t, "unix", socket, test)
	})
	t.Run("miniredis", func(t *testing.T) {
		server := miniredis.RunT(t)
		play(t, "tcp", server.Addr(), test)
	})
}

// stage is a server, and the guard of its clients.
type stage struct {
	t     *testing.T
	guard *api.Guard
	bare  *redis.Client // unguarded
	dial  func(context.Context, string, string) (net.Conn, error)
}

func play(t *testing.T, network, addr string, test func(t *testing.T, s *stage)) {
	g, err := api.New(api.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	books.Keep(t, g.Engine())
	s := &stage{t: t, guard: g, dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, addr)
	}}
	s.bare = redis.NewClient(s.options())
	t.Cleanup(func() { _ = s.bare.Close() })
	require.Eventually(t, func() bool { return s.bare.Ping(t.Context()).Err() == nil }, patience.Of(t), time.Millisecond)
	test(t, s)
}

func (s *stage) options() *redis.Options {
	return &redis.Options{Dialer: s.dial, MaxRetries: 3, PoolSize: 4, ClientName: "penstock", MinRetryBackoff: time.Microsecond, MaxRetryBackoff: time.Microsecond}
}

// client returns a client with the hook.
func (s *stage) client(opts ...penstockgoredis.Option) *redis.Client {
	c := redis.NewClient(s.options())
	s.t.Cleanup(func() { _ = c.Close() })
	c.AddHook(penstockgoredis.Hook("cache", append(opts, penstockgoredis.On(s.guard))...))
	return c
}

func (s *stage) rules(set api.RuleSet) { require.NoError(s.t, s.guard.LoadRules(set)) }

// figures are a resource's counts.
type figures struct{ pass, block, failed, long, inFlight int64 }

func (s *stage) figures(resource string) figures {
	n, ok := s.guard.Tree().Resource(resource)
	if !ok {
		return figures{}
	}
	c := n.Lifetime
	return figures{c.Pass, c.Block, c.Exception, c.LongLived, n.InFlight}
}

// names returns the names of all resources.
func (s *stage) names() (names []string) {
	for _, n := range s.guard.Tree().Resources {
		names = append(names, n.Name)
	}
	return names
}

var errOwn = errors.New("an error of the program's own")
