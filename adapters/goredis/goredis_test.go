package penstockgoredis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	penstockgoredis "github.com/penstock-go/penstock/adapters/goredis"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/patience"
	"github.com/penstock-go/penstock/isolation"
)

const every = ".*"

var (
	none = api.RuleSet{Flow: []flow.Rule{{Resource: every, Match: api.MatchRegex, Threshold: 0}}}
	once = api.RuleSet{Flow: []flow.Rule{{Resource: every, Match: api.MatchRegex, Threshold: 1, Interval: time.Hour}}}
)

// A command is a call of the client's resource. Commands that set up a connection are not guarded.
func TestCommands(t *testing.T) {
	everywhere(t, func(t *testing.T, s *stage) {
		s.rules(api.RuleSet{Isolation: []isolation.Rule{{Resource: every, Match: api.MatchRegex, Threshold: 1}}})
		c := s.client()
		require.NoError(t, c.Set(t.Context(), "a", "1", 0).Err())
		assert.Equal(t, "1", c.Get(t.Context(), "a").Val())
		assert.Equal(t, figures{pass: 2}, s.figures("redis cache"))
		assert.Equal(t, []string{"redis cache"}, s.names())
	})
}

// A refused command returns an error that go-redis does not retry, and nothing is sent.
func TestRefusals(t *testing.T) {
	everywhere(t, func(t *testing.T, s *stage) {
		s.rules(once)
		c := s.client()
		require.NoError(t, c.Incr(t.Context(), "n").Err())
		err := c.Incr(t.Context(), "n").Err()
		require.ErrorIs(t, err, api.ErrBlocked)
		assert.Equal(t, api.KindFlow, api.KindOf(err))
		assert.Equal(t, figures{pass: 1, block: 1}, s.figures("redis cache"))
		assert.Equal(t, "1", s.bare.Get(t.Context(), "n").Val())
	})
}

// Every command of a refused pipeline has the error, so checking any one finds it. The same goes
// for a transaction, and nothing of it is sent.
func TestRefusedPipelines(t *testing.T) {
	everywhere(t, func(t *testing.T, s *stage) {
		s.rules(none)
		c := s.client()
		for name, pipe := range map[string]redis.Pipeliner{"pipeline": c.Pipeline(), "transaction": c.TxPipeline()} {
			a, b := pipe.Incr(t.Context(), "a"), pipe.Get(t.Context(), "b")
			_, err := pipe.Exec(t.Context())
			for _, err := range []error{err, a.Err(), b.Err()} {
				assert.ErrorIs(t, err, api.ErrBlocked, name)
			}
		}
		assert.Equal(t, figures{block: 2}, s.figures("redis cache"))
		assert.EqualValues(t, 0, s.bare.Exists(t.Context(), "a").Val())
	})
}

// A pipeline is one call of one unit by default.
func TestUnitsOfPipelines(t *testing.T) {
	everywhere(t, func(t *testing.T, s *stage) {
		s.rules(once)
		three := func(c *redis.Client) error {
			_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
				for range 3 {
					p.Incr(t.Context(), "n")
				}
				return nil
			})
			return err
		}
		require.NoError(t, three(s.client()))
		assert.Equal(t, figures{pass: 1}, s.figures("redis cache"))
		err := three(s.client(penstockgoredis.PerCommand(), penstockgoredis.WithOptions(func(_ context.Context, cmds []redis.Cmder) []api.Option {
			return []api.Option{api.Units(len(cmds))}
		})))
		require.ErrorIs(t, err, api.ErrBlocked, "three commands, and one unit an hour")
		assert.Equal(t, figures{block: 3}, s.figures("redis cache pipeline"))
	})
}

// A program can't create names without bound, no matter what it sends, and names never contain keys.
func TestNames(t *testing.T) {
	everywhere(t, func(t *testing.T, s *stage) {
		c := s.client(penstockgoredis.PerCommand())
		for n := range 200 {
			_ = c.Set(t.Context(), fmt.Sprint("key", n), n, 0).Err()
			_ = c.Do(t.Context(), fmt.Sprint("X", n), "y").Err()
		}
		_ = c.Do(t.Context(), "GeT", "key1").Err()
		for _, pipe := range []redis.Pipeliner{c.Pipeline(), c.TxPipeline()} {
			pipe.Get(t.Context(), "key1")
			pipe.Get(t.Context(), "key2")
			_, err := pipe.Exec(t.Context())
			require.NoError(t, err)
		}
		_, err := c.Pipelined(t.Context(), func(pipe redis.Pipeliner) error { return pipe.Get(t.Context(), "key1").Err() })
		require.NoError(t, err)
		assert.Equal(t, figures{pass: 2}, s.figures("redis cache pipeline"), "of one command too")
		_ = s.client(penstockgoredis.Resource(func(cmds []redis.Cmder) string { return "kv " + cmds[0].Name() })).Ping(t.Context()).Err()
		_ = s.client(penstockgoredis.Resource(func([]redis.Cmder) string { return "" })).Ping(t.Context()).Err()
		assert.ElementsMatch(t, []string{"redis cache set", "redis cache get", "redis cache _OTHER", "redis cache pipeline", "redis cache multi", "kv ping"}, s.names())
		assert.Equal(t, figures{pass: 1}, s.figures("redis cache get"))
		assert.Equal(t, figures{pass: 200}, s.figures("redis cache _OTHER"), "a command that there is not is the program's own mistake")
	})
}

// A connection returns to the pool only without watched keys, even if the transaction is refused,
// and every command.
func TestRefusedTransactionsUnwatch(t *testing.T) {
	everywhere(t, func(t *testing.T, s *stage) {
		c := s.client()
		var sent below
		c.AddHook(&sent)
		err := c.Watch(t.Context(), func(tx *redis.Tx) error {
			s.rules(none)
			_, err := tx.TxPipelined(t.Context(), func(p redis.Pipeliner) error { return p.Incr(t.Context(), "b").Err() })
			return err
		}, "a")
		require.ErrorIs(t, err, api.ErrBlocked)
		assert.Contains(t, sent.names, "watch")
		assert.Equal(t, "unwatch", sent.names[len(sent.names)-1])
	})
}

// A command that waits at the server is long-lived, and in flight while it waits.
func TestBlockingCommands(t *testing.T) {
	everywhere(t, func(t *testing.T, s *stage) {
		s.rules(api.RuleSet{Isolation: []isolation.Rule{{Resource: "redis cache", Threshold: 1}}})
		c := s.client()
		popped := make(chan []string, 1)
		go func() { popped <- c.BLPop(t.Context(), 0, "queue").Val() }()
		require.Eventually(t, func() bool { return s.figures("redis cache").inFlight == 1 }, patience.Of(t), time.Millisecond)
		require.ErrorIs(t, c.Ping(t.Context()).Err(), api.ErrBlocked)
		require.NoError(t, s.bare.RPush(t.Context(), "queue", "x").Err())
		assert.Equal(t, []string{"queue", "x"}, <-popped)
		assert.Equal(t, figures{pass: 1, block: 1, long: 1}, s.figures("redis cache"))

		require.NoError(t, s.bare.XAdd(t.Context(), &redis.XAddArgs{Stream: "block", Values: []string{"a", "b"}}).Err())
		for _, block := range []time.Duration{time.Millisecond, -1} {
			require.NoError(t, c.XRead(t.Context(), &redis.XReadArgs{Streams: []string{"block", "0"}, Block: block}).Err())
		}
		assert.Equal(t, figures{pass: 3, block: 1, long: 2}, s.figures("redis cache"), "a stream may be named block")
	})
}

// A subscription calls no hook.
func TestSubscriptions(t *testing.T) {
	everywhere(t, func(t *testing.T, s *stage) {
		s.rules(none)
		sub := s.client().Subscribe(t.Context(), "news")
		defer sub.Close()
		_, err := sub.Receive(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.bare.Publish(t.Context(), "news", "x").Err())
		m, err := sub.ReceiveMessage(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "x", m.Payload)
	})
}

// A call that waits for a rule holds no connection.
func TestWaitingTakesNoConnection(t *testing.T) {
	everywhere(t, func(t *testing.T, s *stage) {
		s.rules(api.RuleSet{Flow: []flow.Rule{{Resource: "redis cache", Threshold: 1, Interval: time.Hour, Behavior: flow.Throttle, MaxWait: 2 * time.Hour}}})
		c := s.client()
		require.NoError(t, c.Ping(t.Context()).Err())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		got := make(chan error, 1)
		go func() { got <- c.Ping(ctx).Err() }()
		require.Eventually(t, func() bool { return s.guard.Tree().Waiting == 1 }, patience.Of(t), time.Millisecond)
		pool := c.PoolStats()
		assert.Equal(t, pool.TotalConns, pool.IdleConns)
		cancel()
		require.ErrorIs(t, <-got, context.Canceled)
		assert.Equal(t, figures{pass: 1, block: 1}, s.figures("redis cache"))
	})
}

// Breakers count exactly the outcomes below as failures.
func TestFailures(t *testing.T) {
	everywhere(t, func(t *testing.T, s *stage) {
		full := func(t *testing.T) { // a server without memory
			if err := s.bare.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
				t.Skip("the server in memory has no limit of memory; the real one does")
			}
			t.Cleanup(func() { _ = s.bare.ConfigSet(context.Background(), "maxmemory", "0").Err() })
		}
		require.NoError(t, s.bare.Set(t.Context(), "text", "x", 0).Err())
		for name, c := range map[string]struct {
			run    func(t *testing.T, c *redis.Client) error
			opts   []penstockgoredis.Option
			failed int64
		}{
			"no such key":     {run: func(t *testing.T, c *redis.Client) error { return c.Get(t.Context(), "none").Err() }},
			"the wrong type":  {run: func(t *testing.T, c *redis.Client) error { return c.LPush(t.Context(), "text", "x").Err() }},
			"no such command": {run: func(t *testing.T, c *redis.Client) error { return c.Do(t.Context(), "gte", "x").Err() }},
			"closed":          {run: func(t *testing.T, c *redis.Client) error { _ = c.Close(); return c.Ping(t.Context()).Err() }},
			"overtaken": {run: func(t *testing.T, c *redis.Client) error {
				return c.Watch(t.Context(), func(tx *redis.Tx) error {
					require.NoError(t, s.bare.Set(t.Context(), "watched", "x", 0).Err())
					_, err := tx.TxPipelined(t.Context(), func(p redis.Pipeliner) error { return p.Get(t.Context(), "watched").Err() })
					require.ErrorIs(t, err, redis.TxFailedErr)
					return err
				}, "watched")
			}},
			"canceled": {run: func(t *testing.T, c *redis.Client) error {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				return c.Ping(ctx).Err()
			}},
			"the deadline has come": {failed: 1, run: func(t *testing.T, c *redis.Client) error {
				ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
				defer cancel()
				return c.Ping(ctx).Err()
			}},
			"no memory": {failed: 1, run: func(t *testing.T, c *redis.Client) error { full(t); return c.Set(t.Context(), "b", "x", 0).Err() }},
			"no memory, after replies that aren't failures": {failed: 1, run: func(t *testing.T, c *redis.Client) error {
				full(t)
				_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
					p.Get(t.Context(), "none")
					p.Set(t.Context(), "b", "x", 0)
					return nil
				})
				require.ErrorIs(t, err, redis.Nil)
				return err
			}},
			"what the user says": {failed: 1, opts: []penstockgoredis.Option{penstockgoredis.Failure(func(error) bool { return true })},
				run: func(t *testing.T, c *redis.Client) error { return c.Get(t.Context(), "none").Err() }},
			"what the user says is none": {opts: []penstockgoredis.Option{penstockgoredis.Failure(func(error) bool { return false })},
				run: func(t *testing.T, c *redis.Client) error {
					ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
					defer cancel()
					return c.Ping(ctx).Err()
				}},
		} {
			t.Run(name, func(t *testing.T) {
				before := s.figures("redis cache")
				require.Error(t, c.run(t, s.client(c.opts...)))
				after := s.figures("redis cache")
				assert.Equal(t, c.failed, after.failed-before.failed)
				assert.Greater(t, after.pass, before.pass)
				assert.Zero(t, after.inFlight)
			})
		}
	})
}

// A connection that can't be made, or breaks, is one failure of the command, however often go-redis
// retries.
func TestBrokenConnections(t *testing.T) {
	everywhere(t, func(t *testing.T, s *stage) {
		for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
			"none": func(context.Context, string, string) (net.Conn, error) { return nil, errOwn },
			"broken": func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := s.dial(ctx, network, addr)
				if err == nil {
					_ = c.Close()
				}
				return c, err
			},
		} {
			o := s.options()
			o.Dialer = dial
			c := redis.NewClient(o)
			c.AddHook(penstockgoredis.Hook(name, penstockgoredis.On(s.guard)))
			require.Error(t, c.Ping(t.Context()).Err())
			_ = c.Close()
			assert.Equal(t, figures{pass: 1, failed: 1}, s.figures("redis "+name))
		}
	})
}

// Replies of a server that can't serve are failures.
func TestUnable(t *testing.T) {
	for text, unable := range map[string]bool{
		"LOADING Redis is loading the dataset in memory": true, "ERR max number of clients reached": true, "OOM command not allowed": true,
		"BUSY Redis is busy running a script": true, "READONLY You can't write against a read only replica.": true,
		"BUSYGROUP Consumer Group name already exists": false, "WRONGTYPE Operation against a key": false, "ERR syntax error": false,
	} {
		assert.Equal(t, unable, penstockgoredis.Unable(reply(text)), text)
	}
	assert.False(t, penstockgoredis.Unable(errOwn))
}

type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// A hook below that panics leaks nothing, and the panic continues.
func TestPanics(t *testing.T) {
	everywhere(t, func(t *testing.T, s *stage) {
		c := s.client()
		c.AddHook(&below{panics: true})
		assert.PanicsWithValue(t, "no", func() { _ = c.Ping(t.Context()).Err() })
		assert.Equal(t, figures{pass: 1, failed: 1}, s.figures("redis cache"))
	})
}

// below is a hook below the guard: it records sent commands, or panics.
type below struct {
	names  []string
	panics bool
}

func (b *below) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *below) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if b.panics {
			panic("no")
		}
		b.names = append(b.names, cmd.Name())
		return next(ctx, cmd)
	}
}

func (b *below) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The hook of a cluster's client counts each command once, and so does the hook of its nodes; the
// cluster's client does not retry their refusals at other nodes.
func TestClusters(t *testing.T) {
	everywhere(t, func(t *testing.T, s *stage) {
		for _, nodes := range []bool{false, true} {
			name := fmt.Sprint("nodes ", nodes)
			hook := penstockgoredis.Hook(name, penstockgoredis.On(s.guard))
			c := redis.NewClusterClient(&redis.ClusterOptions{
				Dialer: s.dial, MaxRedirects: 5, MinRetryBackoff: time.Microsecond, MaxRetryBackoff: time.Microsecond,
				ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
					return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: "127.0.0.1:1"}}}}, nil
				},
				NewClient: func(o *redis.Options) *redis.Client {
					o.Dialer = s.dial
					c := redis.NewClient(o)
					if nodes {
						c.AddHook(hook)
					}
					return c
				},
			})
			if !nodes {
				c.AddHook(hook)
			}
			s.rules(api.RuleSet{})
			require.NoError(t, c.Set(t.Context(), "a", "1", 0).Err())
			before := s.figures("redis " + name)
			require.NoError(t, c.Set(t.Context(), "a", "1", 0).Err())
			after := s.figures("redis " + name)
			assert.EqualValues(t, 1, after.pass-before.pass, name)
			s.rules(none)
			require.ErrorIs(t, c.Incr(t.Context(), "a").Err(), api.ErrBlocked)
			_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error { return p.Incr(t.Context(), "a").Err() })
			require.ErrorIs(t, err, api.ErrBlocked)
			assert.EqualValues(t, 2, s.figures("redis "+name).block, name)
			assert.Equal(t, "1", s.bare.Get(t.Context(), "a").Val())
			require.NoError(t, c.Close())
		}
	})
}

// Breakers count neither commands that the program canceled, regardless of the error, nor commands
// that another hook refused. A server's reply counts as a success, and an error that the user's
// function calls a failure as a failure.
func TestNeutralCommands(t *testing.T) {
	everywhere(t, func(t *testing.T, s *stage) {
		s.rules(api.RuleSet{Breaker: []breaker.Rule{{ID: "b", Resource: "redis cache", Threshold: 1, MinCalls: 1000}}})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("a sibling failed"))
		judged := func(c *redis.Client, do func(c *redis.Client) error) [3]int64 {
			before := s.guard.Breakers()[0]
			require.Error(t, do(c))
			after := s.guard.Breakers()[0]
			return [3]int64{after.Calls - before.Calls, after.Bad - before.Bad, after.Neutral - before.Neutral}
		}
		ping := func(c *redis.Client) error { return c.Ping(ctx).Err() }
		require.NoError(t, s.client().Set(t.Context(), "text", "x", 0).Err())
		assert.Equal(t, [3]int64{0, 0, 1}, judged(s.client(), ping), "cancelled")
		failures := penstockgoredis.Failure(func(error) bool { return true })
		assert.Equal(t, [3]int64{1, 1, 0}, judged(s.client(failures), ping), "as the user says")
		assert.Equal(t, [3]int64{1, 0, 0}, judged(s.client(), func(c *redis.Client) error { return c.Get(t.Context(), "none").Err() }), "an answer")

		refused := s.client()
		refused.AddHook(penstockgoredis.Hook("other", penstockgoredis.On(s.guard)))
		s.rules(api.RuleSet{Flow: []flow.Rule{{Resource: "redis other", Threshold: 0}},
			Breaker: []breaker.Rule{{ID: "b", Resource: "redis cache", Threshold: 1, MinCalls: 1000}}})
		assert.Equal(t, [3]int64{0, 0, 1}, judged(refused, func(c *redis.Client) error { return c.Ping(t.Context()).Err() }), "refused below")
	})
}
