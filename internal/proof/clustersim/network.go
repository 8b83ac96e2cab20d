package clustersim

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
)

// Server is the world's store, with its own clock and a replica that lags a little.
type Server struct {
	world  *World
	Clock  *Clock
	memory *cluster.Memory
	// Replica is the replica's lag; 0 means no replica.
	Replica time.Duration
	late    *replica
	Down    bool
	// Unready makes it grant no units of future buckets, nor count requests for them.
	Unready bool
	// Commands is the number of executed commands, Busiest the most within 50 ms.
	Commands, Busiest int64
	slot, inSlot      int64

	rings map[string]store.Ring
	heads map[string]int64
	books map[string]*Book
	taken map[taker]int64 // commands in the current bucket
	// MostTaken is the maximum number of commands of one member for one key in one bucket.
	MostTaken int64
}

type replica struct {
	clock  *frozen
	memory *cluster.Memory
	queue  []written
}

type written struct {
	at, shows int64
	batch     []store.Command
}

// frozen is a clock with a time that is set.
type frozen struct {
	now  int64
	live *Clock // used instead unless nil
}

func (f *frozen) Now() int64 {
	if f.live != nil {
		return f.live.Now()
	}
	return f.now
}

// NewServer starts a store.
func (w *World) NewServer(behind time.Duration) *Server {
	s := &Server{world: w, Clock: w.NewClock(0, 1), Replica: behind, rings: map[string]store.Ring{}, heads: map[string]int64{},
		books: map[string]*Book{}, taken: map[taker]int64{}}
	s.memory = cluster.NewMemory(s.Clock)
	s.late = newReplica()
	return s
}

func newReplica() *replica {
	clock := new(frozen)
	return &replica{clock: clock, memory: cluster.NewMemory(clock)}
}

// Flush makes the store lose everything.
func (s *Server) Flush() { s.memory.Flush() }

// Failover replaces the store with the replica. Updates that the replica has not received are lost.
func (s *Server) Failover() {
	s.catchUp()
	s.memory = s.late.memory
	s.late.clock.live = s.Clock
	s.late = newReplica()
	s.Replica = 0 // no new one is set up
}

func (s *Server) catchUp() {
	for len(s.late.queue) > 0 && s.late.queue[0].at <= s.world.now-int64(s.Replica) {
		x := s.late.queue[0]
		s.late.queue = s.late.queue[1:]
		s.late.clock.now = x.shows
		s.late.memory.Do(context.Background(), x.batch)
	}
}

func (s *Server) execute(batch []store.Command) {
	if s.Replica > 0 {
		s.late.queue = append(s.late.queue, written{s.world.now, s.Clock.Now(), clone(batch)})
		s.catchUp()
	}
	s.refuseNext(batch)
	s.Commands += int64(len(batch))
	if slot := s.world.now / int64(50*time.Millisecond); slot != s.slot {
		s.slot, s.inSlot = slot, 0
	}
	s.inSlot += int64(len(batch))
	s.Busiest = max(s.Busiest, s.inSlot)
	s.memory.Do(context.Background(), batch)
	for _, c := range batch {
		if t, ok := c.(*store.Take); ok && t.Err == nil {
			s.rings[t.Key] = t.Ring
			if from := s.heads[t.Key]; t.Reply.Current < from {
				s.books[t.Key].fold(t.Ring, from, t.Reply.Current)
			}
			s.count(t)
			s.heads[t.Key] = t.Reply.Current
		}
	}
}

// refuseNext implements Unready.
func (s *Server) refuseNext(batch []store.Command) {
	for _, c := range batch {
		if t, ok := c.(*store.Take); ok && t.Ahead > 0 && s.Unready {
			t.Need, t.Want = t.Limit+1, 0
			s.Commands--
			s.inSlot--
		}
	}
}

// taker is a member and a key.
type taker struct {
	member int64
	key    string
}

// count counts a command of a member. Counts of past buckets are dropped.
func (s *Server) count(t *store.Take) {
	if t.Reply.Current != s.heads[t.Key] {
		for x := range s.taken {
			if x.key == t.Key {
				delete(s.taken, x)
			}
		}
	}
	x := taker{t.Member, t.Key}
	s.taken[x]++
	s.MostTaken = max(s.MostTaken, s.taken[x])
}

// clone copies commands, to keep them as they were sent.
func clone(batch []store.Command) []store.Command {
	copies := make([]store.Command, len(batch))
	for i, c := range batch {
		switch c := c.(type) {
		case *store.Take:
			x := *c
			copies[i] = &x
		case *store.Turn:
			x := *c
			copies[i] = &x
		case *store.Tokens:
			x := *c
			copies[i] = &x
		case *store.Permits:
			x := *c
			copies[i] = &x
		case *store.Presence:
			x := *c
			copies[i] = &x
		}
	}
	return copies
}

// Link is one member's connection to the store. It is a store.Store.
type Link struct {
	server *Server
	clock  *Clock
	// Latency in each direction, plus up to Jitter.
	Latency, Jitter time.Duration
	// The chance that a batch is lost on its way, that its replies are, and that the network
	// repeats it some time later.
	LostBefore, LostAfter, Repeated float64
	Cut                             bool // nothing gets through
}

// NewLink connects a member.
func (s *Server) NewLink(c *Clock) *Link { return &Link{server: s, clock: c} }

// Do is never called: the link is a Starter.
func (l *Link) Do(context.Context, []store.Command) { panic("a link is a Starter") }

// Shard is 0.
func (l *Link) Shard(string) int { return 0 }

func (l *Link) way() time.Duration {
	d := l.Latency
	if l.Jitter > 0 {
		d += time.Duration(l.server.world.Random.Int64N(int64(l.Jitter)))
	}
	return max(d, 1)
}

// Start sends a batch.
func (l *Link) Start(_ context.Context, batch []store.Command, done func()) {
	w := l.server.world
	random := w.Random
	if l.Cut || random.Float64() < l.LostBefore {
		return
	}
	if random.Float64() < l.Repeated {
		again := clone(batch)
		w.After(l.way()+time.Duration(random.Int64N(int64(60*time.Millisecond))), func() {
			if !l.server.Down {
				l.server.execute(again)
			}
		})
	}
	w.After(l.way(), func() {
		if l.server.Down {
			return
		}
		l.server.execute(batch)
		if l.Cut || random.Float64() < l.LostAfter {
			return
		}
		l.clock.in(l.way(), done)
	})
}
