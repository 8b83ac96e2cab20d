package api

import (
	"log/slog"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/sampler"
	"github.com/penstock-go/penstock/node"
)

// The methods of this file are for exporters and dashboards. Reading adds no overhead to calls, and
// makes no copy of the tree, unlike [Guard.Tree].

// Now returns the time of the Guard's clock in nanoseconds since 1970, as the methods of nodes need
// it. It never goes back, even if the clock is set back.
func (g *Guard) Now() int64 { return g.engine.Now() }

// Nodes returns the live tree, which changes as calls arrive and end.
func (g *Guard) Nodes() *node.Tree { return g.engine.Tree() }

// EachResource calls f with the node of every resource, last that of all names beyond the cap of
// the tree. f is called without locks.
func (g *Guard) EachResource(f func(*node.ClusterNode)) {
	g.engine.EachResource(func(r *engine.Resource) { f(r.ClusterNode) })
}

// FindResource returns the node of a resource if there is one. It creates none.
func (g *Guard) FindResource(name string) (*node.ClusterNode, bool) {
	if r, ok := g.engine.FindResource(name); ok {
		return r.ClusterNode, true
	}
	return nil, false
}

// UnitStats returns what calls of a resource have reserved and used of each unit that a rule counts,
// see [Cost]; nil if there is nothing yet.
func (g *Guard) UnitStats(resource string) []core.UnitStats {
	if r, ok := g.engine.FindResource(resource); ok {
		return r.UnitStats()
	}
	return nil
}

// RuleStats returns the stats of every rule in force, family by family, in the order of
// declaration. Refusals by slots of your own are in [Guard.Tree].
func (g *Guard) RuleStats() []core.RuleStats { return g.engine.Rules().RuleStats() }

// Waiting returns the number of calls that wait for a rule.
func (g *Guard) Waiting() int64 { return g.engine.Waiting() }

// Failures returns the number of panics in the program's own code (a slot, a log handler, a
// listener, Config.Failure, the clock at an exit), including those of a Holder that takes units
// back. A slot that panics is skipped.
func (g *Guard) Failures() int64 { return g.engine.Failures() }

// Logger returns a logger that writes to that of the configuration. A handler that panics loses the
// record, and counts in [Guard.Failures]; the goroutine that logs continues.
func (g *Guard) Logger() *slog.Logger { return g.engine.Logger() }

// Leaked returns the number of calls that were reported as leaks, including calls that exited
// later.
func (g *Guard) Leaked() int64 { return g.engine.Leaked() }

// Machine returns the use of the machine that rules depend on. A value is below 0 if no rule needs
// it, or it can't be read.
func (g *Guard) Machine() host.Use {
	read := func(q sampler.Quantity) float64 { return g.engine.Sampler().Reading(q).Value() }
	return host.Use{Load: read(sampler.MachineLoad), CPU: read(sampler.MachineCPU), Memory: read(sampler.MemoryBytes)}
}

// KeepRefusals makes the Guard keep the last refusals of each resource until every caller has
// called its release, which may be called twice. It costs a refused call 11 to 14 ns
// (BenchmarkKeepRefusals in package slots), and 1.1 KB for each resource that refuses any; a call
// allocates nothing for it, except for the first that a resource refuses. The chain must have the
// slot log of package slots.
func (g *Guard) KeepRefusals() (release func()) { return g.engine.KeepRefusals() }

// Refusals returns the last refusals of a resource, newest first: at most 16, where refusals by one
// rule of one caller within a second count as one. None are kept unless [Guard.KeepRefusals] was
// called. It is a sample: of calls refused at the same instant one is recorded, so a Count may be
// lower than the number of refusals, which the resource's counters have. Names beyond the cap of the
// tree share their refusals, under [node.OverflowName].
func (g *Guard) Refusals(resource string) []Refusal { return g.engine.Refusals(resource) }
