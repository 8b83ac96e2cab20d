package flow

import (
	"maps"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// callers caches the refusals of a rule that gives each caller its own window: one for each refused
// caller, from which RetryAfter looks up that caller's window. A published map never changes; if two
// goroutines add to it, the second adds to the map that the first published. The zero value is
// empty.
type callers struct {
	refused shared.Pointer[map[string]*core.BlockError]
}

// manyCallers limits the cached refusals. Refusals for further callers are allocated each time.
const manyCallers = 256

// refusalOf returns the refusal for a call. It allocates on the caller's first refusal.
func (e *window) refusalOf(inv *engine.Invocation) *core.BlockError {
	if e.callers == nil || inv.OriginNode() == nil {
		return e.refusal
	}
	return e.callers.of(e, inv.OriginNode().Name())
}

// refuseTo returns the refusal for a call as a verdict; n units didn't fit into w.
func (e *window) refuseTo(inv *engine.Invocation, w *stat.Window, n int64) engine.Verdict {
	if e.rule.Unit != "" {
		return e.refuseNeed(w, n)
	}
	return engine.Verdict{Block: e.refusalOf(inv)}
}

func (all *callers) of(e *window, name string) *core.BlockError {
	for {
		old, known := all.refused.Load(), map[string]*core.BlockError(nil)
		if old != nil {
			known = *old
		}
		if b := known[name]; b != nil {
			return b
		}
		b := caller{e, name}.refusal()
		if len(known) >= manyCallers {
			return b
		}
		next := make(map[string]*core.BlockError, len(known)+1)
		maps.Copy(next, known)
		next[name] = b
		if all.refused.CompareAndSwap(old, &next) {
			return b
		}
	}
}

// caller is a caller that the rule gives its own window.
type caller struct {
	rule *window
	name string
}

func (x caller) refusal() *core.BlockError {
	return engine.NewCounted(*x.rule.refusal, x, x.rule.record, x.rule.refusal)
}

// RetryAfter returns the time until one more unit of the caller would be admitted. A caller whose
// node or window was evicted has used nothing.
func (x caller) RetryAfter() (wait time.Duration, known bool) {
	e := x.rule
	for next := e.next.Load(); next != nil; next = e.next.Load() {
		e = next
	}
	n := x.node()
	if n == nil {
		return 0, true
	}
	w := n.FindWindow(e.meter)
	if w == nil {
		return 0, true
	}
	now := e.engine.Now()
	return w.RetryAfter(now, 1, e.lookLimit(now, &n.StatisticNode))
}

// node returns the caller's node, or nil if there is none.
func (x caller) node() *node.OriginNode {
	if n := x.rule.resource.OverflowOrigin(); n != nil && n.Name() == x.name {
		return n
	}
	n, _ := x.rule.resource.Origins().Find(x.name)
	return n
}

// Limit returns the rule's limit.
func (x caller) Limit() (limit float64, known bool) { return x.rule.Limit() }
