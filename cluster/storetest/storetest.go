// Package storetest tests implementations of [store.Store]: with named cases, and with random
// commands checked against a model that is too simple to be wrong. Most programs don't import it:
// only the tests of stores do.
//
//	storetest.Run(t, storetest.Config{New: func(t testing.TB) store.Store { ... }})
//
// The model uses the time in each reply, so it can test a store on a real server, however slow that
// is. Cases that set the clock run only if Config.Advance is set.
package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/stat"
)

// Config describes the store under test.
type Config struct {
	// New returns a store without values under the keys of the test, which are random.
	New func(t testing.TB) store.Store
	// Advance moves the clock of the store that New last returned, forward or back. It is nil if
	// the clock can't be moved.
	Advance func(d time.Duration)
	// Commands is the number of random commands of each kind; 0 means 5,000.
	Commands int
	// Seed is the seed of the random numbers; 0 means 1.
	Seed uint64
}

// Run runs all cases.
func Run(t *testing.T, cfg Config) {
	if cfg.Commands == 0 {
		cfg.Commands = 5000
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.moves && cfg.Advance == nil {
				t.Skip("the clock of the store can't be set")
			}
			seed := max(cfg.Seed, 1)
			s := &stage{TB: t, cfg: cfg, store: cfg.New(t), random: rand.New(rand.NewPCG(seed, 0)), models: map[string]model{}}
			// Unique, since keys of earlier runs may still be on the server; no case depends on it.
			s.tag = fmt.Sprintf("{penstock:storetest:%x-", rand.Uint64())
			c.run(s)
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
}

// stage is the setting of a case: a store, and the model of each key.
type stage struct {
	testing.TB
	cfg    Config
	store  store.Store
	random *rand.Rand
	tag    string
	models map[string]model
	seqs   int64
}

// key returns a key of the store. Keys of a case may be on different shards.
func (s *stage) key(name string) string { return s.tag + name + "}" }

// caller returns the next caller of a member.
func (s *stage) caller(member int64) store.Caller {
	s.seqs++
	return store.Caller{Member: member, Seq: s.seqs}
}

// do executes commands of one shard, and compares the replies with the model.
func (s *stage) do(batch ...store.Command) {
	s.Helper()
	s.store.Do(s.Context(), batch)
	for i, c := range batch {
		if err := c.Result().Err; err != nil {
			s.Fatalf("command %d of %d, %s: %v", i+1, len(batch), text(c), err)
		}
		key := c.Result().Key
		if s.models[key] == nil {
			s.models[key] = newModel(c)
		}
		s.models[key].check(s, c)
	}
}

// text formats a command with its reply.
func text(c store.Command) string { return fmt.Sprintf("%+v", reflect.ValueOf(c).Elem().Interface()) }

// hours returns a ring whose current bucket lasts for the whole case: it began half a bucket ago.
func (s *stage) hours(buckets int, strict bool) store.Ring {
	const width = time.Hour
	probe := &store.Presence{Outcome: store.Outcome{Key: s.key("clock")}, Caller: s.caller(1), Expiry: time.Minute}
	s.store.Do(s.Context(), []store.Command{probe})
	if probe.Err != nil {
		s.Fatal(probe.Err)
	}
	begin := time.Duration(probe.Reply.Now) - width/2
	return store.Ring{
		Shape: stat.Shape{Interval: time.Duration(buckets) * width, Buckets: buckets, Strict: strict},
		Phase: (begin % width).Truncate(time.Microsecond),
	}
}

// window is a key, and its members' knowledge of it.
type window struct {
	*stage
	ring  store.Ring
	limit int64
	name  string
	epoch int64
	seen  int64
}

func (s *stage) window(name string, ring store.Ring, limit int64) *window {
	return &window{stage: s, ring: ring, limit: limit, name: s.key(name)}
}

// command returns a command of a member that knows the latest reply.
func (w *window) command(member, need, want int64) *store.Take {
	return &store.Take{
		Outcome: store.Outcome{Key: w.name}, Caller: w.caller(member), Ring: w.ring, Limit: w.limit,
		Need: need, Want: want, Seen: w.seen, Epoch: w.epoch, NewEpoch: 2 + w.random.Int64N(store.MaxEpoch-1),
	}
}

// send executes a command and records the reply.
func (w *window) send(t *store.Take) store.TakeReply {
	w.Helper()
	w.do(t)
	w.epoch, w.seen = t.Reply.Epoch, t.Reply.Current
	return t.Reply
}

func (w *window) take(member, need, want int64) int64 {
	w.Helper()
	return w.send(w.command(member, need, want)).Granted
}

// equal fails the case unless got equals want.
func (s *stage) equal(what string, got, want int64) {
	s.Helper()
	if got != want {
		s.Fatalf("%s: %d, want %d", what, got, want)
	}
}

// gone returns a context that has ended.
func gone() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
