package penstockredis_test

import (
	"bytes"
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	penstockredis "github.com/penstock-go/penstock/cluster/redis"
	"github.com/penstock-go/penstock/cluster/redis/internal/server"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/stat"
)

// ledger is a window as the contract defines it, with the units in each bucket. Histories are
// checked against this model.
type ledger struct {
	clock, epoch, head  int64 // epoch is 0 if there is no key
	last                int64 // head or, if later, the last bucket with granted units
	expires             int64
	units, askers, seqs map[int64]int64
	short               map[int64]int64
}

// play applies a command, and returns the new ledger and the reply.
func (l ledger) play(t *store.Take) (ledger, store.TakeReply) {
	l.units, l.askers, l.short, l.seqs = maps.Clone(l.units), maps.Clone(l.askers), maps.Clone(l.short), maps.Clone(l.seqs)
	now, before := t.Bucket(l.clock), l
	switch {
	case l.epoch == 0:
		l.epoch, l.head, l.last = t.NewEpoch, now, now
		l.units, l.askers, l.short, l.seqs = map[int64]int64{}, map[int64]int64{}, map[int64]int64{}, map[int64]int64{}
	case now <= l.head-t.Span():
		moved, end := map[int64]int64{now: l.sum(t, l.head-t.Span()+1, math.MaxInt64)}, now
		if unspent := l.sum(t, l.head, math.MaxInt64); unspent > 0 {
			last := slices.Max(slices.Collect(maps.Keys(l.units)))
			end = now + min(last-l.head+1, int64(t.Shape.Buckets)+1, 2*t.Span()-1)
			moved[end] = unspent
		}
		l.epoch, l.units, l.head, l.last = t.NextEpoch(l.epoch), moved, now, end
		clear(l.askers)
		clear(l.short)
	}
	l.head = max(l.head, now)
	maps.DeleteFunc(l.units, func(b, n int64) bool { return b <= l.head-t.Span() || n == 0 })
	old := func(b, _ int64) bool { return b < l.head-1 }
	maps.DeleteFunc(l.askers, old)
	maps.DeleteFunc(l.short, old)
	if t.Need+t.Want > 0 && t.Seen != l.head {
		l.askers[l.head]++
	}
	if t.Seq > l.seqs[t.Member] {
		l.seqs[t.Member] = t.Seq
		if t.Epoch == l.epoch {
			for _, back := range t.Backs {
				l.units[back.Bucket] -= min(back.Units, l.units[back.Bucket])
			}
		}
	}
	reply := store.TakeReply{Bucket: l.head, Current: l.head, Active: max(1, l.askers[l.head], l.askers[l.head-1]), Epoch: l.epoch}
	if t.Ahead > l.head {
		reply.Bucket = min(t.Ahead, l.head+int64(t.Shape.Buckets))
	}
	reply.Room = l.room(t, reply.Bucket)
	if t.Need+t.Want > 0 && (t.Epoch == 0 || t.Epoch == l.epoch) {
		if t.Need <= reply.Room {
			sharers := reply.Active
			if reply.Bucket == l.head && l.short[l.head-1] > 0 {
				sharers = min(reply.Active, max(l.short[l.head-1], l.short[l.head])+1)
			}
			reply.Granted = max(t.Need, min(t.Want, reply.Room/sharers))
			if reply.Granted > 0 && reply.Granted < t.Want && t.Shortfall != l.head {
				l.short[l.head]++
			}
		}
		for b := l.head + 1; t.Need > reply.Room && reply.Granted == 0 && b <= l.head+int64(t.Shape.Buckets); b++ {
			if t.Begins(b) < l.clock+int64(t.Borrow) && t.Need <= l.room(t, b) {
				reply.Bucket, reply.Granted, reply.Room = b, t.Need, l.room(t, b)
			}
		}
		l.units[reply.Bucket] += reply.Granted
		reply.Room -= reply.Granted
	}
	maps.DeleteFunc(l.units, func(_, n int64) bool { return n == 0 })
	l.last = max(l.last, l.head)
	if reply.Granted > 0 {
		l.last = max(l.last, reply.Bucket)
	}
	if before.epoch != l.epoch || before.last != l.last || before.head != l.head { // a server counts whole milliseconds
		left := time.Duration(t.Begins(l.last+int64(t.Shape.Buckets)+3) - l.clock)
		l.expires = l.clock + int64((left + time.Millisecond - 1).Truncate(time.Millisecond))
	}
	return l, reply
}

// expired returns the ledger without its key, if that has expired.
func (l ledger) expired() ledger {
	if l.clock >= l.expires {
		l.epoch = 0
	}
	return l
}

// room returns the number of units that fit every window that contains the bucket.
func (l ledger) room(t *store.Take, bucket int64) int64 {
	room := t.Limit
	for end := bucket; end < bucket+t.Span(); end++ {
		room = min(room, t.Limit-l.sum(t, end-t.Span()+1, end))
	}
	return max(0, room)
}

// sum returns the units in the buckets from first to last, inclusive.
func (l ledger) sum(t *store.Take, first, last int64) (sum int64) {
	for b, n := range l.units {
		if b >= first && b <= last && b > l.head-t.Span() {
			sum += n
		}
	}
	return sum
}

// step is one operation of a history: a command, or an advance of the clock in nanoseconds.
type step struct {
	take *store.Take
	by   int64
}

// outcome is the result of a command, as its sender knows it.
type outcome struct {
	reply store.TakeReply
	known bool
}

// histories checks that commands are linearizable: in some order that agrees with their times, each
// was executed according to the contract, and commands without an outcome were executed once or not
// at all.
var histories = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{ledger{}} },
	Step: func(state, input, output any) []any {
		l, in, out := state.(ledger), input.(step), output.(outcome)
		if in.take == nil {
			l.clock += in.by
			return []any{l}
		}
		if !out.known {
			done, _ := l.expired().play(in.take)
			return []any{l, done}
		}
		if in.by == 0 {
			l = l.expired()
		} else { // by the server's own clock, it may keep keys for a little longer
			if out.reply.Now < l.clock {
				return nil // it is never set back
			}
			l.clock = out.reply.Now
			if out.reply.Epoch == in.take.NewEpoch {
				l = l.expired()
			}
		}
		done, reply := l.play(in.take)
		got := out.reply
		if got.Now != l.clock {
			return nil
		}
		got.Now, got.Left, got.Free = 0, 0, 0
		if got != reply {
			return nil
		}
		return []any{done}
	},
	Equal: func(a, b any) bool { return reflect.DeepEqual(a, b) },
}).ToModel()

// play makes four members lease, borrow, hand back and repeat commands on one window, and returns
// the history. Without a movable clock, each reply has the command's time.
func play(st store.Store, ring store.Ring, seed uint64, repeated func(*store.Take) bool, advance func(time.Duration)) []porcupine.Operation {
	begin := time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	note := func(o porcupine.Operation) {
		mu.Lock()
		defer mu.Unlock()
		history = append(history, o)
	}
	own := int64(0)
	if advance == nil {
		own = 1
	}
	var members sync.WaitGroup
	for member := range int64(4) {
		members.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(member)))
			known, shortfall := store.TakeReply{}, int64(0)
			for seq := range int64(12) {
				if advance != nil && r.IntN(4) == 0 {
					d := time.Duration(r.Int64N(2*int64(ring.Shape.Width()))) / time.Microsecond * time.Microsecond
					switch r.IntN(8) {
					case 0:
						d = -d
					case 1:
						d = -time.Hour
					}
					call := time.Since(begin)
					advance(d)
					note(porcupine.Operation{ClientId: int(member), Input: step{by: int64(d)}, Call: int64(call), Output: outcome{}, Return: int64(time.Since(begin))})
				}
				c := &store.Take{
					Outcome: store.Outcome{Key: "{history}"}, Caller: store.Caller{Member: 1 + member, Seq: 1 + seq}, Ring: ring,
					Limit: 20, Need: r.Int64N(8), Seen: known.Current, Shortfall: shortfall, Epoch: known.Epoch, NewEpoch: 2 + r.Int64N(store.MaxEpoch-1),
				}
				c.Want = c.Need * r.Int64N(3)
				switch r.IntN(4) {
				case 0:
					c.Ahead = known.Current + 1
				case 1:
					c.Borrow = time.Duration(r.Int64N(3 * int64(ring.Shape.Width())))
				}
				if known.Granted > 0 && r.IntN(2) == 0 {
					c.Backs = []store.Units{{Bucket: known.Bucket, Units: 1 + r.Int64N(known.Granted)}}
					if r.IntN(4) == 0 {
						c.Backs[0].Units += 20 // no real member does this
					}
				}
				o := porcupine.Operation{ClientId: int(member), Input: step{take: c, by: own}, Call: int64(time.Since(begin))}
				st.Do(context.Background(), []store.Command{c})
				o.Return = int64(time.Since(begin))
				o.Output = outcome{reply: c.Reply, known: c.Err == nil}
				if c.Err != nil {
					o.Return = math.MaxInt64
				} else {
					known = c.Reply
					if known.Granted > 0 && known.Granted < c.Want {
						shortfall = known.Current
					}
				}
				note(o)
				if repeated(c) { // a proxy repeats it
					o.Output, o.Return = outcome{}, math.MaxInt64
					note(o)
				}
			}
		})
	}
	members.Wait()
	return history
}

var historyShapes = []stat.Shape{
	{Interval: time.Second, Buckets: 1}, {Interval: time.Second, Buckets: 2, Strict: true}, {Interval: time.Second, Buckets: 5},
}

// Histories on the server's own clock are linearizable. Buckets are short enough that some end
// within a history.
func TestHistories(t *testing.T) {
	client := patient(t, start(t))
	st := penstockredis.Patient(client)
	turned := 0
	for seed := range uint64(60) {
		shape := historyShapes[seed%3]
		shape.Interval = stat.MinInterval
		ring := store.Ring{Shape: shape, Phase: shape.Width() / 3}
		require.NoError(t, client.FlushAll(t.Context()).Err())
		history := play(st, ring, seed, func(*store.Take) bool { return false }, nil)
		buckets := map[int64]bool{}
		for _, o := range history {
			buckets[o.Output.(outcome).reply.Current] = true
		}
		turned += len(buckets) - 1
		require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(histories, history, 0), "seed %d", seed)
	}
	require.Positive(t, turned, "all commands of each history were in one bucket")
}

// Histories are linearizable on a connection that loses commands, loses replies after execution,
// and repeats some commands, with a clock that moves forward and back.
func TestHistoriesOfLostAndRepeatedCommands(t *testing.T) {
	s := start(t)
	client := patient(t, s)
	for seed := range uint64(30) {
		history := playBadly(t, s, client, seed, penstockredis.Movable)
		require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(histories, history, 0), "seed %d", seed)
	}
}

// The check finds past mistakes, and possible ones.
func TestHistoriesOfMistakes(t *testing.T) {
	s := start(t)
	client := patient(t, s)
	for name, c := range map[string]struct{ old, mistake string }{
		"borrowed buckets move time": {"local state = ", `local moved = ahead == 0 and target - at or 0
			local state = struct.pack('<' .. string.rep('d', 6 + span + last - at - moved),
				current + moved, has, here, before, short, shortBefore, unpack(u, at + moved - span + 1, last))
			local right = `},
		"returned units count twice":           {"seq > highest and epoch == has then", "epoch == has then"},
		"units of another epoch are returned":  {"seq > highest and epoch == has then", "seq > highest then"},
		"only the present window is looked at": {"if sum > most then most = sum end", ""},
		"a clock that is set back forgets":     {"u[at] = sum\n", "u[at] = 0\n"},
		"a new epoch is not reported":          {"(epoch == 0 or epoch == has)", "true"},
		"more is returned than there was":      {"max(0, u[b] - units)", "u[b] - units"},
		"what fits is for the active":          {"shortBefore > 0 and target == at", "false"},
		"nobody else has a share":              {"max(shortBefore, short) + 1", "max(shortBefore, short)"},
		"shares are of the limit":              {"math.floor(left / sharers)", "limit"},
		"a bucket that opens keeps its units":  {"for i = last + 1, at do u[i] = 0 end", "for i = last + 1, at do u[i] = u[last] end"},
		"borrowed units die with their key":    {"if head ~= current or last > lasted or passed < 0 then", "if head ~= current then"},
		"a repeated command's epoch is anew":   {"has = has + newEpoch", "has = newEpoch"},
		"a clock that stands still is on time": {"passed - (head - current) * width", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(0); ; seed++ {
				history := playBadly(t, s, client, seed, func(way redis.UniversalClient) *penstockredis.Store {
					return penstockredis.Mistaken(way, c.old, c.mistake)
				})
				// Refuting some histories takes forever; then the next history will do.
				if porcupine.CheckOperationsTimeout(histories, history, time.Second) == porcupine.Illegal {
					return
				}
				require.Less(t, seed, uint64(5000), "nothing was found")
			}
		})
	}
}

// playBadly is like play, but on a connection that loses and repeats commands.
func playBadly(t *testing.T, s *server.Server, client *redis.Client, seed uint64, open func(redis.UniversalClient) *penstockredis.Store) []porcupine.Operation {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 100))
	var repeats [][]byte
	p, err := server.NewProxy(s.Addr, func(command []byte) server.Fate {
		if !bytes.Contains(command, []byte("evalsha")) {
			return server.Pass
		}
		mu.Lock()
		defer mu.Unlock()
		switch r.IntN(24) {
		case 0:
			return server.Lose
		case 1:
			return server.Drop
		case 2:
			repeats = append(repeats, command)
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
	history := play(open(way), store.Ring{Shape: historyShapes[seed%3]}, seed, func(c *store.Take) bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(repeats, func(command []byte) bool {
			return bytes.Contains(command, penstockredis.Packed(nil, c.NewEpoch))
		})
	}, advance)
	return append(history, porcupine.Operation{Input: step{by: micros * 1000}, Call: -2, Output: outcome{}, Return: -1})
}
