package core

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// Config describes an engine. The zero value is right for production.
type Config struct {
	// Clock tells the time; nil is the machine's monotonic clock.
	Clock Clock
	// Interval and SampleCount are the length of the second window of every node,
	// and its buckets. 0 means one second, and 2. They are what the tree shows;
	// rules have intervals of their own.
	Interval    time.Duration
	SampleCount int
	// OccupyTimeout is what a prioritized call waits less than for a borrowed
	// bucket. 0 means 500 ms; at most 24 h.
	OccupyTimeout time.Duration
	// ColdFactor divides the threshold of a cold resource where a warm-up rule
	// doesn't say otherwise. 0 means 3; 2 to 1000.
	ColdFactor int
	// Caps bound the nodes of the tree.
	Caps node.Caps
	// Logger gets the block log and internal failures; nil is slog.Default().
	Logger *slog.Logger
	// Chain is the order of the slots; nil is the standard one (package slots).
	Chain *Chain
}

// Engine runs calls through a chain under one set of rules, and counts them on
// one tree. It is safe for concurrent use. It owns no goroutine.
type Engine struct {
	config    Config
	clock     Clock
	chain     *Chain
	tree      *node.Tree
	resources *resources
	rules     shared.Pointer[Ruleset]
	updating  shared.Mutex

	pool     shared.Pool
	nextLane shared.Uint32

	waiting  shared.Int64
	failures shared.Int64
	nextLog  shared.Int64 // of internal failures
}

// NewEngine returns an engine without rules. The configuration must have a chain.
func NewEngine(config Config) (*Engine, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	layout, err := stat.NewLayout(config.Interval, config.SampleCount, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, err
	}
	e := &Engine{config: config, clock: config.Clock, chain: config.Chain, resources: &resources{}}
	e.resources.forget = e.forget
	e.tree, err = node.NewTree(layout, config.Caps, e.resources)
	if err != nil {
		return nil, err
	}
	e.resources.Registry = node.NewRegistry(e.tree.Resources(), e.newResource, e.left, e.tree.MakeRoom)
	e.resources.overflow = e.newResource(node.OverflowName)
	e.rules.Store(new(Ruleset))
	e.pool.New = func() any {
		lane := (e.nextLane.Add(1) - 1) % uint32(layout.Lanes())
		return &Invocation{engine: e, lane: lane}
	}
	return e, nil
}

func (c Config) withDefaults() (Config, error) {
	if c.Chain == nil {
		return c, fmt.Errorf("core: the configuration has no chain")
	}
	if c.Clock == nil {
		c.Clock = NewSystemClock()
	}
	if c.Interval == 0 {
		c.Interval = time.Second
	}
	if c.SampleCount == 0 {
		c.SampleCount = 2
	}
	if c.OccupyTimeout == 0 {
		c.OccupyTimeout = 500 * time.Millisecond
	}
	if c.ColdFactor == 0 {
		c.ColdFactor = 3
	}
	if c.OccupyTimeout < 0 || c.OccupyTimeout > 24*time.Hour {
		return c, fmt.Errorf("core: OccupyTimeout is %v: use a duration from 0 (for 500ms) to 24h", c.OccupyTimeout)
	}
	if c.ColdFactor < 2 || c.ColdFactor > 1000 {
		return c, fmt.Errorf("core: ColdFactor is %d: use a whole number from 2 to 1000, or 0 for 3", c.ColdFactor)
	}
	return c, nil
}

// Config is the configuration with its defaults filled in.
func (e *Engine) Config() Config { return e.config }

// Clock is the engine's clock.
func (e *Engine) Clock() Clock { return e.clock }

// Chain is the order of the slots.
func (e *Engine) Chain() *Chain { return e.chain }

// Tree is the engine's tree of nodes.
func (e *Engine) Tree() *node.Tree { return e.tree }

// Waiting is how many calls wait at the moment for a rule to let them run.
func (e *Engine) Waiting() int64 { return e.waiting.Load() }

// Failures is how often a slot panicked. Such a call passes as far as the slot is
// concerned.
func (e *Engine) Failures() int64 { return e.failures.Load() }

// Logger is where the engine logs.
func (e *Engine) Logger() *slog.Logger {
	if e.config.Logger != nil {
		return e.config.Logger
	}
	return slog.Default()
}

// Resource returns the resource of that name, made if there is none. Beyond the
// cap it is the overflow resource, which all further names share.
func (e *Engine) Resource(name string, now int64) *Resource {
	if r, ok := e.resources.Obtain(name, now); ok {
		return r
	}
	return e.resources.overflow
}

// FindResource returns the resource of that name if there is one.
func (e *Engine) FindResource(name string) (*Resource, bool) {
	if name == node.OverflowName {
		return e.resources.overflow, true
	}
	return e.resources.Find(name)
}

// PinResource returns the resource of that name, made if there is none, and keeps
// it until an update of the rules that doesn't name it.
func (e *Engine) PinResource(name string) *Resource {
	return e.resources.Pin(name)
}

// EachResource calls f with every resource, the overflow resource last.
func (e *Engine) EachResource(f func(*Resource)) {
	for r := range e.resources.all() {
		f(r)
	}
}

// newResource makes a resource; the overflow resource has its name for itself.
func (e *Engine) newResource(name string) *Resource {
	if name == node.OverflowName && e.resources.overflow != nil {
		return e.resources.overflow
	}
	return &Resource{ClusterNode: e.tree.NewCluster(name)}
}

// left cleans up after a resource that has left the registry, under its lock.
// What the rules keep for it is dropped once the lock is free: building rules takes
// the two locks in the other order.
func (e *Engine) left(r *Resource) {
	r.Calls().Clear()
	r.Origins().Clear()
	e.resources.departed = append(e.resources.departed, r.Name())
}

// forget drops what the rules keep for a resource, unless it has come back.
func (e *Engine) forget(name string) {
	if _, back := e.resources.Find(name); back {
		return
	}
	for _, family := range e.rules.Load().families {
		if family != nil {
			family.Forget(name)
		}
	}
}

// restore brings back the nodes of a call that left while it was counted on them.
// Where another node has taken the place, the counts and the call move there. The
// resource is looked at again at the end: it may have left once more while its
// nodes came back.
func (e *Engine) restore(inv *Invocation) {
	for again := true; again; again = inv.resource.Retired() {
		r := inv.resource
		if r.Retired() {
			if other := e.resources.Restore(r.Name(), r); other != r {
				e.replace(inv, other)
				continue
			}
		}
		if inv.node != nil && inv.node.Retired() {
			inv.moveTo(e.tree.RestoreCall(inv.node, inv.now), inv.origin)
		}
		if inv.origin != nil && inv.origin.Retired() {
			inv.moveTo(inv.node, e.tree.RestoreOrigin(r.ClusterNode, inv.origin))
		}
	}
}

// replace moves a call, with what was counted on its nodes, to another resource of
// the same name.
func (e *Engine) replace(inv *Invocation, other *Resource) {
	gone := inv.resource
	other.Absorb(&gone.Counters)
	call, origin := inv.node, inv.origin
	if call != nil {
		call = e.tree.ReplaceCall(call, other.ClusterNode, inv.now)
	}
	if origin != nil {
		origin = e.tree.ReplaceOrigin(origin, other.ClusterNode, inv.now)
	}
	gone.Calls().Clear()
	gone.Origins().Clear()
	inv.moveTo(call, origin)
	inv.swap(&gone.StatisticNode, &other.StatisticNode)
	inv.resource = other
}

// failed notes a panic in a slot.
func (e *Engine) failed(reason any, now int64) {
	total := e.failures.Add(1)
	next := e.nextLog.Load()
	if next != 0 && now < next || !e.nextLog.CompareAndSwap(next, now+logPause) {
		return
	}
	defer func() { _ = recover() }() // the logger may be what panics; then there is nobody to tell
	e.Logger().Error("penstock: a slot panicked; the call goes on without it",
		"panic", fmt.Sprint(reason), "failures", total, "stack", string(debug.Stack()))
}

// Close flushes what the block log has not told yet. Calls are still judged and
// counted afterwards; an engine needs no resources of its own.
func (e *Engine) Close() error {
	for _, family := range e.rules.Load().families {
		if family == nil {
			continue
		}
		family.EachError(func(b *BlockError) {
			if n := b.Unlogged(); n > 0 {
				e.LogBlocked(b, n)
			}
		})
	}
	return nil
}

// LogBlocked writes one line of the block log.
func (e *Engine) LogBlocked(b *BlockError, refusals int64) {
	e.Logger().Warn("penstock: blocked", "kind", b.Kind.String(),
		"resource", b.Resource, "rule", b.Rule, "count", refusals)
}
