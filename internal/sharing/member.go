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
// concurrent use. It starts goroutines only for its alarm and for requests to the store, and none
// remains after Close, unless the store never returns.
type Member struct {
	cfg     cluster.Config
	clock   clocks.Clock
	starter store.Starter // the store, if it implements Starter
	id      int64
	lag     int64        // maximum staleness of the clock
	wall    func() int64 // the machine's wall clock, nil with a test clock

	members      atomic.Int64 // see Members
	longest      atomic.Int64 // see waitFor
	woken        atomic.Int64 // suspensions of the machine that were noticed
	seq          atomic.Int64 // of the latest command, see caller
	panicked     atomic.Int64 // when a panic of the store was last logged
	late         atomic.Int64 // undecided shadow calls, see Late
	probesWanted atomic.Int64
	probes       context.Context // of all probes, until endProbes
	endProbes    func()

	// mu is the innermost lock: its holder takes no other but the clock's.
	mu      sync.Mutex
	random  *rand.Rand
	agenda  agenda
	sending task // sends due commands, as each alarm does
	owed    []*Late
	paying  task // returns owed units
	shards  map[int]*shard
	limits  limits
	shapes  shapes
	budget  budget
	presence
	wallAhead int64         // how far the wall clock was ahead at the latest reading
	running   int           // goroutines in the store's code
	returned  chan struct{} // if not nil, closed once running is 0
	gone      bool          // Close is over: no more requests to the store
}

// Join makes a member of a cluster. It doesn't wait for the store: a store that is unreachable now
// is treated like one that fails later.
func Join(cfg cluster.Config) (*Member, error) {
	switch {
	case cfg.Store == nil:
		return nil, errors.New("cluster: a member needs a Store")
	case cfg.Clock == nil:
		return nil, errors.New("cluster: a member needs a Clock")
	case strings.ContainsAny(cfg.Namespace, "{}"):
		return nil, fmt.Errorf("cluster: namespace %q contains braces, which Redis Cluster uses for hash tags: remove them", cfg.Namespace)
	case cfg.Members < 0 || cfg.Members > mostMembers:
		return nil, fmt.Errorf("cluster: %d members: use 1 to %d, or 0 if unknown", cfg.Members, mostMembers)
	}
	if cfg.Timeout != 0 && (cfg.Timeout < cluster.MinTimeout || cfg.Timeout > cluster.MaxTimeout) {
		return nil, fmt.Errorf("cluster: timeout %v is out of range: use %v to %v", cfg.Timeout, cluster.MinTimeout, cluster.MaxTimeout)
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
		m.wall, m.lag = wall, int64(2*time.Millisecond) // a tick, and its latest delay
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

// Close hands back unspent units, announces the departure, and waits until both were sent or
// failed. From then on its limits treat the store as unreachable. Close waits at most another
// second for a store that overruns its timeout.
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
	m.handBackAll() // also decides the waiting calls, which get nothing
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
	case <-time.After(m.patience() + closePatience): // not the member's clock, which may stand still
		m.mu.Lock()
		m.vanishLocked()
		m.mu.Unlock()
	}
}

// closing reports whether Close was called, after which no task is planned.
func (m *Member) closing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.agenda.closed
}

// vanishLocked ends Close: the store counts as unreachable from now on.
func (m *Member) vanishLocked() {
	if !m.gone {
		m.gone = true
		close(m.returned)
	}
	for _, s := range m.shards {
		s.abandon()
	}
}

// starts registers a goroutine that calls the store's code. It returns false once Close is over.
func (m *Member) starts() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.gone {
		m.running++
	}
	return !m.gone
}

// returns unregisters a goroutine of starts.
func (m *Member) returns() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running--; m.running == 0 && m.returned != nil {
		m.vanishLocked()
	}
}

const closePatience = time.Second

// Retire takes the member out of the cluster, but keeps the permits of a [Semaphore] that calls
// hold until they release them. Then it calls last, which must Close the member; without such
// permits it calls last before it returns. Retire doesn't wait. If the member is closed meanwhile,
// last isn't called.
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

// permitsInUse reports whether calls hold permits, or are about to.
func (m *Member) permitsInUse() (are bool) {
	m.each(func(l handled) {
		if s, ok := l.(*Semaphore); ok && !s.Idle() {
			are = true
		}
	})
	return are
}

// waitFor raises the store's timeout to a rule's, if that is longer than Config.Timeout and those
// of all previous rules. A call still waits no longer than its own rules' timeout.
func (m *Member) waitFor(timeout time.Duration) {
	for {
		if old := m.longest.Load(); int64(timeout) <= old || m.longest.CompareAndSwap(old, int64(timeout)) {
			return
		}
	}
}

// patience returns the time that the store gets to answer.
func (m *Member) patience() time.Duration {
	return cmp.Or(time.Duration(m.longest.Load()), cluster.DefaultTimeout)
}

// Members returns the number of members that share limits while the store is unreachable: the
// configured number, or the highest seen in ten minutes if that is more; at least 1.
func (m *Member) Members() int64 { return m.members.Load() }

// caller numbers the next command. All keys share one sequence, so a limit that is dropped as
// unused and made again continues with a higher number than the store has seen for its key.
func (m *Member) caller() store.Caller { return store.Caller{Member: m.id, Seq: m.seq.Add(1)} }

// now returns the time, and drops all leases if the machine was suspended.
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
		m.woken.Add(1) // first: a reply in flight then makes no lease, see batch.finish
		m.dropLeases(nil)
	}
	return now
}

// suspended is the drift between wall clock and monotonic clock, in nanoseconds, above which leases
// are dropped: the monotonic clock stops while a machine is suspended, but the store's goes on.
const suspended = int64(10 * time.Millisecond)

// chance returns a random number in [0, n); 0 if n is not positive.
func (m *Member) chance(n int64) int64 {
	if n <= 0 {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.random.Int64N(n)
}

// probe runs the check of a store that has one: at the start, and each time the store is back, as
// it may be another server. A check that is wanted while another runs follows that one.
func (m *Member) probe() {
	p, ok := m.cfg.Store.(store.Prober)
	if !ok || m.probesWanted.Add(1) > 1 {
		return
	}
	if !m.starts() {
		return // Close is over
	}
	go func() {
		over := false
		defer m.returns()
		defer func() {
			if !over { // the store has ended the goroutine
				m.probesWanted.Store(0)
			}
		}()
		for wanted := int64(1); wanted > 0; wanted = m.probesWanted.Add(-wanted) {
			m.survives(func() { m.probeOnce(p) })
		}
		over = true
	}()
}

func (m *Member) probeOnce(p store.Prober) {
	ctx, cancel := context.WithTimeout(m.probes, probePatience)
	defer cancel()
	if err := p.Probe(ctx); err != nil {
		m.cfg.Logger.Warn("penstock: store of cluster rules failed its check", "error", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

const probePatience = 5 * time.Second
