package penstockredis_test

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	penstockredis "github.com/penstock-go/penstock/cluster/redis"
	"github.com/penstock-go/penstock/cluster/redis/internal/server"
	"github.com/penstock-go/penstock/cluster/store"
)

// purse is a token bucket as the contract defines it. Histories are checked against this model.
type purse struct {
	clock, at, full int64 // unit is 0 if there is no key
	unit            float64
}

// play applies a command, and returns the new purse and the reply.
func (p purse) play(t *store.Tokens) (purse, store.TurnReply) {
	if p.unit == 0 {
		p.full = p.clock
	}
	if p.clock < p.at {
		p.full -= p.at - p.clock
	}
	if short := p.full - p.clock; short > 0 && p.unit != t.Unit {
		p.full = p.clock + int64(math.Ceil(float64(short)*(t.Unit/p.unit)))
	}
	p.at, p.unit = p.clock, t.Unit
	reply := store.TurnReply{Wait: time.Duration(max(0, p.full-p.clock)), Now: p.clock}
	for n := t.Need; n <= max(t.Need, t.Want) && reply.Wait+time.Duration(n-1)*t.Spacing <= t.Within; n++ {
		reply.Granted = n
	}
	if reply.Granted > 0 {
		p.full = p.clock + int64(max(reply.Wait, t.Hold)) + reply.Granted*int64(t.Spacing)
	}
	return p, reply
}

// purseStep is one operation of a history: a command, or an advance of the clock in nanoseconds.
type purseStep struct {
	tokens *store.Tokens
	by     int64
}

type purseOutcome struct {
	reply store.TurnReply
	known bool
}

// purseHistories checks that commands are linearizable; see histories. No key expires within a history,
// unless its clock is set back so far that the expiry doesn't matter.
var purseHistories = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{purse{}} },
	Step: func(state, input, output any) []any {
		p, in, out := state.(purse), input.(purseStep), output.(purseOutcome)
		if in.tokens == nil {
			p.clock += in.by
			return []any{p}
		}
		done, reply := p.play(in.tokens)
		if !out.known {
			return []any{p, done}
		}
		if out.reply != reply {
			return nil
		}
		return []any{done}
	},
	Equal: func(a, b any) bool { return a == b },
}).ToModel()

// playTokens makes four members lease from a bucket of two rates, on a connection that loses and repeats
// commands, with a clock that moves forward and back, and returns the history.
func playTokens(t *testing.T, s *server.Server, client *redis.Client, seed uint64, open func(redis.UniversalClient) *penstockredis.Store) []porcupine.Operation {
	var mu sync.Mutex
	fates := rand.New(rand.NewPCG(seed, 100))
	repeated := false
	p, err := server.NewProxy(s.Addr, func(command []byte) server.Fate {
		if !bytes.Contains(command, []byte("evalsha")) {
			return server.Pass
		}
		mu.Lock()
		defer mu.Unlock()
		switch fates.IntN(24) {
		case 0:
			return server.Lose
		case 1:
			return server.Drop
		case 2:
			repeated = true
			return server.Repeat
		}
		return server.Pass
	})
	require.NoError(t, err)
	defer p.Close()
	require.NoError(t, client.FlushDB(t.Context()).Err())
	_, advance := movable(t, client)
	micros, err := client.Get(t.Context(), penstockredis.ClockKey).Int64()
	require.NoError(t, err)
	way := patient(t, &server.Server{Addr: p.Addr})
	defer way.Close()
	st, begin := open(way), time.Now()
	history := []porcupine.Operation{{Input: purseStep{by: micros * 1000}, Call: -2, Output: purseOutcome{}, Return: -1}}
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 40 { // one after another: lost commands and repeats may come at any later time
		if r.IntN(2) == 0 {
			d := time.Duration(r.Int64N(400)-60) * time.Microsecond
			advance(d)
			now := int64(time.Since(begin))
			history = append(history, porcupine.Operation{ClientId: 4, Input: purseStep{by: int64(d)}, Call: now, Output: purseOutcome{}, Return: now + 1})
		}
		c := &store.Tokens{
			Outcome: store.Outcome{Key: "{history}"}, Unit: 1e5, Spacing: 100 * time.Microsecond, Need: 1 + r.Int64N(3), Want: r.Int64N(8),
			Hold: time.Duration(r.Int64N(60)) * time.Microsecond, Within: time.Duration(r.Int64N(1000)) * time.Microsecond,
		}
		if r.IntN(10) == 0 {
			c.Spacing, c.Unit = 150*time.Microsecond, 1.5e5
		}
		o := porcupine.Operation{ClientId: i % 4, Input: purseStep{tokens: c}, Call: int64(time.Since(begin))}
		st.Do(context.Background(), []store.Command{c})
		o.Return, o.Output = int64(time.Since(begin)), purseOutcome{reply: c.Reply, known: c.Err == nil}
		if c.Err != nil {
			o.Return = math.MaxInt64
		}
		history = append(history, o)
		mu.Lock()
		if repeated { // a proxy repeats it
			o.Output, o.Return, repeated = purseOutcome{}, math.MaxInt64, false
			history = append(history, o)
		}
		mu.Unlock()
	}
	return history
}

// Histories of token buckets are linearizable on a bad connection.
func TestHistoriesOfTokens(t *testing.T) {
	s := start(t)
	client := patient(t, s)
	for seed := range uint64(30) {
		history := playTokens(t, s, client, seed, penstockredis.Movable)
		require.NotEqual(t, porcupine.Illegal, porcupine.CheckOperationsTimeout(purseHistories, history, 10*time.Second), "seed %d", seed)
	}
}

// The check finds possible mistakes.
func TestHistoriesOfMistakenTokens(t *testing.T) {
	s := start(t)
	client := patient(t, s)
	for name, c := range map[string]struct{ old, mistake string }{
		"a clock that is set back makes it fill later": {"full = full - math.max(0, now - at) * 1000", "full = full - (now - at) * 1000"},
		"time that passes doesn't fill it":             {"full = full - math.max(0, now - at) * 1000", ""},
		"a bucket of another rate is short of others":  {"unit ~= had then", "false then"},
		"nothing is held":                              {"math.max(wait, hold)", "wait"},
		"too few are given":                            {"if most >= need then", "if true then"},
		"one too many":                                 {"/ spacing) + 1)", "/ spacing) + 2)"},
		"a bucket that isn't full begins anew":         {"full = math.max(wait, hold) + granted", "full = hold + granted"},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(0); ; seed++ {
				history := playTokens(t, s, client, seed, func(way redis.UniversalClient) *penstockredis.Store {
					return penstockredis.MistakenTokens(way, c.old, c.mistake)
				})
				if porcupine.CheckOperationsTimeout(purseHistories, history, time.Second) == porcupine.Illegal {
					return
				}
				require.Less(t, seed, uint64(500), "nothing was found")
			}
		})
	}
}
