package penstockredis_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	penstockredis "github.com/penstock-go/penstock/cluster/redis"
	"github.com/penstock-go/penstock/cluster/redis/internal/server"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/stat"
)

// lasting is a window whose bucket is current for a day.
var lasting = store.Ring{Shape: stat.Shape{Interval: 24 * time.Hour, Buckets: 1}}

var seqs atomic.Int64

// take returns a command of a new member.
func take(key string, need int64) *store.Take {
	return &store.Take{
		Outcome: store.Outcome{Key: "{" + key + "}"}, Caller: store.Caller{Member: 1, Seq: seqs.Add(1)}, Ring: lasting,
		Limit: 1000, Need: need, Want: need, NewEpoch: 1,
	}
}

func do(s store.Store, c store.Command) error {
	s.Do(context.Background(), []store.Command{c})
	return c.Result().Err
}

// If a server can't serve a command, the error names the reason, and the next command works as soon
// as the server can serve it.
func TestNamedAnswers(t *testing.T) {
	s := start(t)
	client := patient(t, s)
	st := penstockredis.Patient(client)
	set := func(args ...any) func() {
		return func() { require.NoError(t, client.Do(t.Context(), args...).Err()) }
	}
	require.NoError(t, do(st, take("k", 1)))
	for _, c := range []struct {
		name       string
		break_, ok func()
		want       error
		says       string
	}{
		{"full", set("config", "set", "maxmemory", 1), set("config", "set", "maxmemory", 0), store.ErrNotExecuted, "no memory left"},
		{"a replica", set("replicaof", "127.0.0.1", 1), set("replicaof", "no", "one"), store.ErrNotExecuted, "replica"},
		{"a stale replica", func() {
			set("config", "set", "replica-serve-stale-data", "no")()
			set("replicaof", "127.0.0.1", 1)()
		}, set("replicaof", "no", "one"), store.ErrNotExecuted, "lost its master"},
		{"too few replicas", set("config", "set", "min-replicas-to-write", 1), set("config", "set", "min-replicas-to-write", 0),
			store.ErrNotExecuted, "too few replicas"},
		{"scripts flushed", set("script", "flush"), func() {}, nil, ""},
		{"flushed", set("flushall"), func() {}, nil, ""},
		{"a string", set("set", "{k}", "theirs"), set("del", "{k}"), store.ErrForeign, "Penstock did not write"},
		{"a hash", func() {
			set("del", "{k}")()
			set("hset", "{k}", "name", "theirs")()
		}, set("del", "{k}"), store.ErrForeign, "Penstock did not write"},
		{"a hash with our names", func() {
			set("del", "{k}")()
			set("hset", "{k}", "w", "theirs")()
		}, set("del", "{k}"), store.ErrForeign, "Penstock did not write"},
		{"a hash with the name of a member", func() {
			require.NoError(t, do(st, take("k", 1)))
			set("hset", "{k}", "s1", "theirs")()
		}, set("del", "{k}"), store.ErrForeign, "Penstock did not write"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.break_()
			err := do(st, take("k", 1))
			if c.want == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, c.want)
				require.ErrorContains(t, err, c.says)
			}
			c.ok()
			require.NoError(t, do(st, take("k", 1)))
		})
	}
}

// In a batch each command has its own error or reply.
func TestErrorsAreOfOneCommand(t *testing.T) {
	client := patient(t, start(t))
	st := penstockredis.Patient(client)
	require.NoError(t, client.Set(t.Context(), "{b}", "theirs", 0).Err())
	a, b, c := take("a", 1), take("b", 1), take("c", 2)
	st.Do(t.Context(), []store.Command{a, b, &stranger{}, c})
	require.NoError(t, a.Err)
	require.ErrorIs(t, b.Err, store.ErrForeign)
	require.NoError(t, c.Err)
	assert.EqualValues(t, 2, c.Reply.Granted)
	assert.ErrorIs(t, do(st, &stranger{}), store.ErrNotExecuted)
	odd := take("odd", 1)
	odd.Shape.Interval = time.Second + 1
	assert.ErrorIs(t, do(st, odd), store.ErrNotExecuted, "a script counts microseconds")
}

// stranger is a command that the store doesn't know.
type stranger struct{ store.Outcome }

// If no server listens, the command was certainly not executed.
func TestServerAway(t *testing.T) {
	s := start(t)
	st, err := penstockredis.Open("redis://" + s.Addr + "?timeout=1s")
	require.NoError(t, err)
	defer st.Close()
	s.Kill()
	for range 3 {
		require.Error(t, do(st, take("k", 1)))
	}
	require.NoError(t, s.Revive())
	require.Eventually(t, func() bool { return do(st, take("k", 1)) == nil }, patience, 10*time.Millisecond)
}

// If a server doesn't reply, the store waits no longer than the timeout, and the error leaves open
// whether the command was executed.
func TestServerStopped(t *testing.T) {
	s := start(t)
	st, err := penstockredis.Open("redis://" + s.Addr)
	require.NoError(t, err)
	defer st.Close()
	require.Eventually(t, func() bool { return do(st, take("k", 1)) == nil }, patience, time.Millisecond)
	require.NoError(t, s.Stop())
	err = do(st, take("k", 1))
	require.NoError(t, s.Continue())
	require.Error(t, err)
	require.NotErrorIs(t, err, store.ErrNotExecuted)
}

// If a reply is lost after the script was executed, the command isn't sent again: returned units
// would count twice.
func TestNothingIsSentAgain(t *testing.T) {
	var sent atomic.Int64
	var lose atomic.Bool
	p, err := server.NewProxy(start(t).Addr, func(command []byte) server.Fate {
		if !bytes.Contains(command, []byte("evalsha")) {
			return server.Pass
		}
		sent.Add(1)
		if lose.Load() {
			return server.Lose
		}
		return server.Pass
	})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	st, err := penstockredis.Open("redis://" + p.Addr + "?timeout=1s")
	require.NoError(t, err)
	defer st.Close()
	require.Eventually(t, func() bool { return do(st, take("k", 100)) == nil }, patience, time.Millisecond)
	first := take("k", 1)
	require.Eventually(t, func() bool { return do(st, first) == nil }, patience, time.Millisecond)

	before := sent.Load()
	lose.Store(true)
	back := take("k", 0)
	back.Want, back.Epoch = 0, first.Reply.Epoch
	back.Backs = []store.Units{{Bucket: first.Reply.Current, Units: 40}}
	err = do(st, back)
	require.Error(t, err)
	require.NotErrorIs(t, err, store.ErrNotExecuted)
	require.EqualValues(t, before+1, sent.Load())
}

// commands are the permissions a user needs, as docs/cluster.md lists them.
const commands = "+evalsha +eval +script|load +time +hmget +hgetall +hget +hkeys +hset +hdel +pexpire +pttl " +
	"+zadd +zrem +zscore +zcard +zrange +zrangebyscore +zremrangebyscore +info"

// A suitable server passes. Each problem is reported in a sentence.
func TestProbe(t *testing.T) {
	s := start(t)
	client := patient(t, s)
	require.NoError(t, client.Do(t.Context(), append([]any{"acl", "setuser", "shop", "on", ">secret", "resetkeys", "~{penstock:*"}, words(commands)...)...).Err())
	probe := func() error {
		st, err := penstockredis.Open("redis://shop:secret@" + s.Addr + "?timeout=1s")
		require.NoError(t, err)
		defer st.Close()
		for {
			err := st.Probe(t.Context())
			if !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
				return err
			}
		}
	}
	require.NoError(t, probe())

	require.NoError(t, client.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	require.EqualError(t, probe(), `maxmemory-policy is "allkeys-lru", which evicts counters early and so lifts limits: set noeviction`)
	require.NoError(t, client.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err())

	for command := range strings.FieldsSeq(commands) {
		require.NoError(t, client.Do(t.Context(), "acl", "setuser", "shop", "-"+command[1:]).Err())
		require.ErrorContains(t, probe(), "see the list in docs/cluster.md", command)
		require.NoError(t, client.Do(t.Context(), "acl", "setuser", "shop", command).Err())
	}
	require.NoError(t, client.Do(t.Context(), "replicaof", "127.0.0.1", "1").Err())
	require.ErrorContains(t, probe(), "the server is a replica: limits are kept by masters")
}

func words(s string) (all []any) {
	for word := range strings.FieldsSeq(s) {
		all = append(all, word)
	}
	return all
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// A server that refuses the user, the password or the database has executed nothing, and the error
// has the reason. go-redis leaves no error on the commands of a pipeline whose connection could not
// be set up. known bug 197
func TestConnectionsThatAreRefused(t *testing.T) {
	s := start(t)
	require.NoError(t, patient(t, s).Do(t.Context(), "acl", "setuser", "shop", "on", ">secret", "resetkeys", "~*", "+@all").Err())
	commands := func(url string) (error, error) {
		st, err := penstockredis.Open(url)
		require.NoError(t, err)
		defer st.Close()
		c := &store.Presence{Outcome: store.Outcome{Key: "{penstock:x}"}, Caller: store.Caller{Member: 1, Seq: 1}, Expiry: time.Second}
		st.Do(t.Context(), []store.Command{c})
		return c.Err, st.Probe(t.Context())
	}
	for url, says := range map[string]string{
		"redis://shop:wrong@" + s.Addr:           "the server rejects the user or the password",
		"redis://nobody:secret@" + s.Addr:        "the server rejects the user or the password",
		"redis://shop:secret@" + s.Addr + "/999": "DB index is out of range",
	} {
		err, probed := commands(url)
		require.ErrorIs(t, err, store.ErrNotExecuted, url)
		require.ErrorContains(t, err, says, url)
		require.ErrorContains(t, probed, says, url)
		require.NotContains(t, probed.Error(), "\n", "%s: one sentence will do", url)
	}
	require.NoError(t, patient(t, s).ConfigSet(t.Context(), "requirepass", "secret").Err())
	err, probed := commands("redis://" + s.Addr)
	require.ErrorIs(t, err, store.ErrNotExecuted)
	require.ErrorContains(t, err, "the server requires a password")
	require.ErrorContains(t, probed, "the server requires a password")
}
