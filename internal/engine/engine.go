package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/internal/safelog"
	"github.com/penstock-go/penstock/internal/sampler"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// Config describes an engine. Its fields are those of api.Config. In the zero value, only the
// required chain is missing.
type Config struct {
	Clock         clocks.Clock
	Interval      time.Duration
	Buckets       int
	OccupyTimeout time.Duration
	ColdFactor    int
	Caps          node.Caps
	LeakAfter     time.Duration
	Logger        *slog.Logger
	Failure       func(error) bool
	Chain         *Chain
	Host          host.Source
	Limits        func(ctx context.Context, rule string, key argument.Value) (limit float64, ttl time.Duration, err error)
	QuotaLog      string
}

// Engine runs calls through a chain under one set of rules, and counts them on one tree. It doesn't
// load rules: that is the task of a Guard in package api. It is safe for concurrent use. It owns no
// goroutine but those of [Engine.Background]. Until Close it has a timer if it watches for leaks, another while the log has
// unreported events, and one for each periodic task of its rules (see [Engine.Every]).
type Engine struct {
	config    Config
	clock     clocks.Clock
	steady    *clocks.Steady // for a clock that may be set, otherwise nil
	system    *clocks.System // the clock, if it is a System: then it is read directly
	chain     *Chain
	tree      *node.Tree
	resources *resources
	rules     shared.Pointer[Snapshot]
	// keepers counts the callers that want the last rejections kept, and 1<<32 for each listener.
	// Each rejection reads it, so it is next to fields that seldom change.
	keepers  shared.Int64
	feed     *refusalFeed // listeners for rejections
	updating shared.Mutex // one update at a time
	leaks    *leakWatch   // nil unless configured
	sampler  *sampler.Sampler

	repeating shared.Mutex
	repeats   map[*repeated]struct{} // see Every
	closed    bool

	pool     shared.Pool
	nextLane shared.Uint32

	waiting             shared.Int64
	drain               drain
	failures            shared.Int64
	unknownLevels       shared.Int64 // words for a criticality
	logger              *slog.Logger // the configured logger; its panics count as failures
	nextLog             shared.Int64 // of internal failures
	failWhen            shared.Pointer[failWhen]
	strays              strays
	custom              customRecords
	blockLog, changeLog lineLog
	behind              background
	notices             noticeFeed
	quotas              quotas
}

// NewEngine returns an engine without rules. The configuration must have a chain.
func NewEngine(config Config) (*Engine, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	layout, err := stat.NewLayout(config.Interval, config.Buckets, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, err
	}
	e := &Engine{config: config, clock: config.Clock, steady: clocks.NewSteady(config.Clock), chain: config.Chain, resources: &resources{}}
	e.feed = &refusalFeed{engine: e}
	e.notices.engine = e
	e.logger = safelog.New(config.Logger, func(any) { e.failures.Add(1) })
	e.system, _ = config.Clock.(*clocks.System)
	e.blockLog.engine, e.blockLog.beyond = e, "penstock: blocked calls not listed: too many rules and resources in one second"
	e.changeLog.engine, e.changeLog.beyond = e, "penstock: changes not listed: too many in one second"
	e.tree, err = node.NewTree(layout, config.Caps, e.resources)
	if err != nil {
		return nil, err
	}
	e.resources.Registry = node.NewRegistry(e.tree.Resources(), e.newResource, e.left, e.tree.MakeRoom)
	e.resources.overflow = e.newResource(node.OverflowName)
	e.sampler = sampler.New(config.Host, sampler.Engine{Now: e.Now, Every: e.Every, Logger: e.Logger})
	none := new(Snapshot)
	none.complete(e.chain)
	e.rules.Store(none)
	e.pool.New = func() any {
		lane := (e.nextLane.Add(1) - 1) % uint32(layout.Lanes())
		return &Invocation{engine: e, lane: lane, nap: clocks.MakeNap()}
	}
	if err := e.openQuotas(); err != nil {
		return nil, err
	}
	if config.LeakAfter > 0 {
		e.leaks = newLeakWatch(e, layout.Lanes())
	}
	return e, nil
}

func (c Config) withDefaults() (Config, error) {
	if c.Chain == nil {
		return c, errors.New("penstock: Config.Chain is nil: use slots.Default()")
	}
	if c.Clock == nil {
		c.Clock = clocks.NewSystem()
	}
	c.Interval = cmp.Or(c.Interval, time.Second)
	c.Buckets = cmp.Or(c.Buckets, 2)
	c.OccupyTimeout = cmp.Or(c.OccupyTimeout, 500*time.Millisecond)
	c.ColdFactor = cmp.Or(c.ColdFactor, 3)
	if c.OccupyTimeout < 0 || c.OccupyTimeout > 24*time.Hour {
		return c, fmt.Errorf("penstock: Config.OccupyTimeout is %v: use a duration from 0 (for 500ms) to 24h", c.OccupyTimeout)
	}
	if c.ColdFactor < 2 || c.ColdFactor > 1000 {
		return c, fmt.Errorf("penstock: Config.ColdFactor is %d: use a whole number from 2 to 1000, or 0 for 3", c.ColdFactor)
	}
	if c.LeakAfter != 0 && (c.LeakAfter < time.Millisecond || c.LeakAfter > 24*time.Hour) {
		return c, fmt.Errorf("penstock: Config.LeakAfter is %v: use a duration from 1ms to 24h, or 0 to watch for no leaks", c.LeakAfter)
	}
	return c, nil
}

// Config returns the configuration with defaults filled in.
func (e *Engine) Config() Config { return e.config }

// Now returns the time on the engine's clock, except that it doesn't decrease when the clock is set
// back.
func (e *Engine) Now() int64 {
	switch {
	case e.system != nil:
		return e.system.Now()
	case e.steady == nil:
		return e.clock.Now()
	}
	return e.steady.Now()
}

// Sampler returns the engine's sampler of the machine.
func (e *Engine) Sampler() *sampler.Sampler { return e.sampler }

// Tree returns the engine's tree of nodes.
func (e *Engine) Tree() *node.Tree { return e.tree }

// Waiting returns the number of calls that wait for a rule at the moment.
func (e *Engine) Waiting() int64 { return e.waiting.Load() }

// Failures counts panics of slots and log handlers, grants that a slot could not take back, and
// panics of the clock at an exit. A slot that panics lets the call pass.
func (e *Engine) Failures() int64 { return e.failures.Load() }

// Logger returns the configured logger, with panics of its handler recovered: the record is lost
// and counted in [Engine.Failures].
func (e *Engine) Logger() *slog.Logger { return e.logger }

// resource returns the resource of that name, made if there is none. Beyond the cap it is the
// overflow resource, which all further names share.
func (e *Engine) resource(name string, now int64) *Resource {
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

// PinResource returns the resource of that name, made if there is none, and keeps it until an
// update of the rules that doesn't name it.
func (e *Engine) PinResource(name string) *Resource {
	return e.resources.Pin(name)
}

// EachResource calls f with every resource, the overflow resource last.
func (e *Engine) EachResource(f func(*Resource)) {
	for r := range e.resources.all() {
		f(r)
	}
}

// newResource makes a resource; no other may have the name of the overflow resource.
func (e *Engine) newResource(name string) *Resource {
	if name == node.OverflowName && e.resources.overflow != nil {
		return e.resources.overflow
	}
	return e.alone(name)
}

// alone returns a resource outside any registry.
func (e *Engine) alone(name string) *Resource {
	both := &struct { // adjacent in memory: a call needs both
		Resource
		cluster node.ClusterNode
	}{}
	e.tree.InitCluster(&both.cluster, name)
	both.Resource = Resource{ClusterNode: &both.cluster, engine: e}
	both.askUntil.Store(math.MinInt64)
	return &both.Resource
}

// left cleans up after a resource that has left the registry, under its lock.
func (e *Engine) left(r *Resource) {
	r.Calls().Clear()
	r.Origins().Clear()
	r.depart()
}

// restore brings back the nodes of a call that left while it was counted on them. It checks them
// again at the end: the resource may have left again while its nodes came back.
func (e *Engine) restore(inv *Invocation) {
	for again := true; again; again = inv.resource.AnyLeft(inv.Nodes()) {
		r := inv.resource
		if r.Retired() {
			e.resources.Restore(r.Name(), r)
		}
		if inv.node != nil && inv.node.Retired() {
			_, parent := inv.context.place(e.tree, inv.now)
			e.tree.RestoreCall(inv.node, parent, inv.now)
		}
		if inv.origin != nil && inv.origin.Retired() {
			r.Origins().Restore(inv.origin.Name(), inv.origin)
		}
	}
}

// failed records a recovered panic. slot returns the name of the slot that panicked, and is nil for
// other custom code.
func (e *Engine) failed(reason any, now int64, slot func() string) {
	total := e.failures.Add(1)
	next := e.nextLog.Load()
	if next != 0 && now < next || !e.nextLog.CompareAndSwap(next, now+logPause) {
		return
	}
	defer func() { _ = recover() }() // if the logger panics, there is nowhere to report it
	message, name := "penstock: a panic was recovered; the calls go on", ""
	if slot != nil {
		name = slot()
	}
	attrs := []any{"panic", logged(fmt.Sprint(reason)), "failures", total, "stack", string(debug.Stack())}
	if name != "" {
		message, attrs = "penstock: a slot panicked; the call goes on without it", append([]any{"slot", logged(name)}, attrs...)
	}
	e.Logger().Error(message, attrs...)
}

// Close writes the outstanding log lines about rejections and changes of breakers, passes the last
// rejections and notices to the listeners of [Engine.OnBlocked] and [Engine.OnNotice], and ends the
// reports of leaks and the tasks of [Engine.Every] and [Engine.Background]. When it returns, none of these
// runs, except for background functions that ignore their context. So a log handler or a listener must
// not call it. Afterwards the rules in force still decide on calls, and calls are still counted. Load, CPU
// and memory use are no longer sampled: rules that depend on them keep the last samples. Close may
// be called twice.
func (e *Engine) Close() error {
	if e.leaks != nil {
		e.leaks.close()
	}
	e.behind.close()
	e.endRepeats()
	e.feed.close()
	e.notices.close()
	e.quotas.close()
	e.flushLogs()
	return nil
}
