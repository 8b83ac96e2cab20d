package sharing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/safelog"
)

// Member is one process of a cluster: an engine's side of the limits that it shares. It is safe for
// concurrent use. It starts no goroutine except for its alarm and for requests to the store, and
// none remains after Close, unless the store never returns.
type Member struct {
	cfg     cluster.Config
	clock   clocks.Clock
	starter store.Starter // the store, if it is one
	id      int64
	lag     int64        // how stale a reading of the clock may be
	wall    func() int64 // the machine's wall clock, nil beside a clock that tests move

	members   atomic.Int64 // see Members
	longest   atomic.Int64 // see waitFor
	woken     atomic.Int64 // how often the machine was suspended, as far as that was noticed
	seq       atomic.Int64 // of the last command, see caller
	panicked  atomic.Int64 // when a panic of the store was last logged
	late      atomic.Int64 // calls that have yet to be decided, see Late
	probing   atomic.Bool
	probes    context.Context // of all of them, until endProbes
	endProbes func()

	// mu is the innermost lock: its holder takes no other but the clock's.
	mu      sync.Mutex
	random  *rand.Rand
	agenda  agenda
	sending task // sends what is due: each alarm does
	owed    []*Late
	paying  task // gives back what is owed
	shards  map[int]*shard
	limits  limits
	shapes  shapes
	budget  budget
	presence
	wallAhead int64         // of the clock, when it was last looked at
	running   int           // goroutines that are in the store's code
	returned  chan struct{} // closed when there are none, if not nil
	gone      bool          // Close is over: the store is asked nothing any more
}

// Join makes a member of a cluster. It doesn't wait for the store: one that is unreachable at
// the start is treated like one that becomes so later.
func Join(cfg cluster.Config) (*Member, error) {
	switch {
	case cfg.Store == nil:
		return nil, errors.New("cluster: a member needs a Store")
	case cfg.Clock == nil:
		return nil, errors.New("cluster: a member needs a Clock")
	case strings.ContainsAny(cfg.Namespace, "{}"):
		return nil, fmt.Errorf("cluster: the namespace %q has braces, by which a Redis Cluster places keys: leave them out", cfg.Namespace)
	case cfg.Members < 0 || cfg.Members > mostMembers:
		return nil, fmt.Errorf("cluster: %d members: use 1 to %d, or 0 if nobody knows", cfg.Members, mostMembers)
	}
	if cfg.Timeout != 0 && (cfg.Timeout < cluster.MinTimeout || cfg.Timeout > cluster.MaxTimeout) {
		return nil, fmt.Errorf("cluster: a timeout of %v: use %v to %v", cfg.Timeout, cluster.MinTimeout, cluster.MaxTimeout)
	}
	if cfg.ValueCalls = cmp.Or(cfg.ValueCalls, cluster.DefaultValueCalls); cfg.ValueCalls < 0 {
		return nil, fmt.Errorf("cluster: %d calls a second for single values: use 1 or more, or 0 for %d", cfg.ValueCalls, cluster.DefaultValueCalls)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Logger = safelog.New(cfg.Logger, nil)
	m := &Member{cfg: cfg, clock: cfg.Clock, shards: map[int]*shard{}, limits: limits{}, shapes: shapes{}}
	m.starter, _ = cfg.Store.(store.Starter)
	m.longest.Store(int64(cfg.Timeout))
	m.random = rand.New(rand.NewPCG(cmp.Or(cfg.Seed, rand.Uint64()), cmp.Or(cfg.Seed, rand.Uint64())))
	m.id = 1 + m.random.Int64N(store.MostNumber-1)
	switch cfg.Clock.(type) {
	case *clocks.System:
		m.wall = wall
	case *clocks.Coarse:
		m.wall, m.lag = wall, int64(2*time.Millisecond) // a tick, and how late it may be
	}
	if m.wall != nil {
		m.wallAhead = m.wall() - m.clock.Now()
	}
	m.sending.do = func(int64) {}
	m.paying.do = func(int64) { m.payBack() }
	m.probes, m.endProbes = context.WithCancel(context.Background())
	m.appear()
	m.probe()
	return m, nil
}

const mostMembers = 1 << 20

func wall() int64 { return time.Now().UnixNano() }

// Close hands back what is unspent, announces that the member leaves, and waits until both have
// been sent or have failed. Afterwards its limits do as their rules say for when the store is unreachable.
// Close waits at most another second for a store that doesn't return when its time is over.
func (m *Member) Close() {
	m.mu.Lock()
	closed := m.agenda.closed
	m.agenda.closed = true
	if m.agenda.stop != nil {
		m.agenda.stop()
	}
	m.mu.Unlock()
	if closed {
		return
	}
	m.payBack()
	m.handBackAll() // which decides what calls lack, in vain
	if m.payBack() {
		m.handBackAll()
	}
	m.leave()
	m.flush(true)
	m.endProbes()
	returned := make(chan struct{})
	m.mu.Lock()
	if m.returned = returned; m.running == 0 {
		m.vanishLocked()
	}
	m.mu.Unlock()
	select {
	case <-returned:
	case <-time.After(m.patience() + closePatience): // the machine's time, as the member's clock may be one that stands still
		m.mu.Lock()
		m.vanishLocked()
		m.mu.Unlock()
	}
}

// closing reports whether Close was called: nothing is planned any more.
func (m *Member) closing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.agenda.closed
}

// vanishLocked ends Close: from now on the store is unreachable for good.
func (m *Member) vanishLocked() {
	if !m.gone {
		m.gone = true
		close(m.returned)
	}
	for _, s := range m.shards {
		s.abandon()
	}
}

// starts counts a goroutine that calls the store's code, unless Close is over.
func (m *Member) starts() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.gone {
		m.running++
	}
	return !m.gone
}

// returns is for a goroutine that was counted.
func (m *Member) returns() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running--; m.running == 0 && m.returned != nil {
		m.vanishLocked()
	}
}

const closePatience = time.Second

// Retire takes the member out of the cluster, except for permits of a [Semaphore] that calls have:
// the member holds them until those calls have given them back. Then it calls last, which must
// Close the member; if no call has a permit, Retire calls it before returning. Retire doesn't wait.
// If the member is closed meanwhile, it calls nothing.
func (m *Member) Retire(last func()) {
	if m.permitsInUse() {
		now := m.clock.Now()
		m.each(func(l handled) {
			if _, ok := l.(*Semaphore); !ok {
				l.leave(now)
			}
		})
		m.leave()
		m.flush(true)
	}
	look := new(task)
	look.do = func(now int64) {
		if m.permitsInUse() {
			m.plan(look, now+idlePermits)
			return
		}
		last()
	}
	look.do(m.clock.Now())
}

// permitsInUse reports whether calls have permits, or are about to get some.
func (m *Member) permitsInUse() (are bool) {
	m.each(func(l handled) {
		if s, ok := l.(*Semaphore); ok && !s.Idle() {
			are = true
		}
	})
	return are
}

// waitFor gives the store as long for an answer as a rule says, if that is longer than Config.Timeout and
// than any rule has said before. A call waits as long as its own rules say.
func (m *Member) waitFor(timeout time.Duration) {
	for {
		if old := m.longest.Load(); int64(timeout) <= old || m.longest.CompareAndSwap(old, int64(timeout)) {
			return
		}
	}
}

// patience is how long the store has for an answer.
func (m *Member) patience() time.Duration {
	return cmp.Or(time.Duration(m.longest.Load()), cluster.DefaultTimeout)
}

// Members is the number of members that share limits while the store is unreachable: what the
// configuration says, or the highest number seen in ten minutes if that is more; at least 1.
func (m *Member) Members() int64 { return m.members.Load() }

// caller names the next command. All keys share one sequence of numbers, so a limit that is dropped
// after a while without use and made again continues with a higher number than the store has seen
// for its key.
func (m *Member) caller() store.Caller { return store.Caller{Member: m.id, Seq: m.seq.Add(1)} }

// now returns the time, and notices if the machine was suspended.
func (m *Member) now() int64 {
	now := m.clock.Now()
	if m.wall == nil {
		return now
	}
	ahead := m.wall() - now
	m.mu.Lock()
	parted := ahead - m.wallAhead
	m.wallAhead = ahead
	m.mu.Unlock()
	if parted > suspended || parted < -suspended {
		m.woken.Add(1) // before: an answer on its way makes no lease afterwards, see batch.finish
		m.dropLeases(nil)
	}
	return now
}

// suspended is how far the wall clock and the monotonic clock may drift apart before leases are
// dropped: while a machine is suspended, its monotonic clock stops but the store's goes on.
const suspended = int64(10 * time.Millisecond)

// chance is a random number from 0 up to n, n excluded.
func (m *Member) chance(n int64) int64 {
	if n <= 0 {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.random.Int64N(n)
}

// probe asks a store that can say so what it lacks: at the start, when it may be unreachable, and each time
// that it comes back, when it may be another server.
func (m *Member) probe() {
	p, ok := m.cfg.Store.(store.Prober)
	if !ok || !m.probing.CompareAndSwap(false, true) {
		return
	}
	if !m.starts() {
		return // it has gone
	}
	go func() {
		defer m.returns()
		ctx, cancel := context.WithTimeout(m.probes, probePatience)
		defer cancel()
		defer m.probing.Store(false)
		m.survives(func() {
			if err := p.Probe(ctx); err != nil {
				m.cfg.Logger.Warn("penstock: the store of cluster rules has not passed its check", "error", strings.ReplaceAll(err.Error(), "\n", "; "))
			}
		})
	}()
}

const probePatience = 5 * time.Second
