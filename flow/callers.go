package flow

import (
	"maps"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
)

// callers are the refusals of a rule that gives each of several callers a window: one for each caller
// that was refused, which knows when that caller's window has room. A map is not changed once
// published; of two goroutines that add to it, the second adds to what the first has published. The
// zero value has none.
type callers struct {
	refused shared.Pointer[map[string]*core.BlockError]
}

// manyCallers is how many refusals are kept. Those of further callers are made anew each time.
const manyCallers = 256

// refusalOf is the refusal of a call. It allocates when the caller is refused for the first time.
func (e *window) refusalOf(inv *engine.Invocation) *core.BlockError {
	if e.callers == nil || inv.OriginNode() == nil {
		return e.refusal
	}
	return e.callers.of(e, inv.OriginNode().Name())
}

// refuseTo is the refusal of a call as a verdict.
func (e *window) refuseTo(inv *engine.Invocation) engine.Verdict {
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

// caller is one of the callers that a rule gives a window.
type caller struct {
	rule *window
	name string
}

func (x caller) refusal() *core.BlockError {
	return engine.NewCounted(*x.rule.refusal, x, x.rule.record, x.rule.refusal)
}

// RetryAfter is when one more unit of the caller would be admitted. A caller whose node or window has
// left has used nothing.
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

// node is the caller's node, nil if there is none.
func (x caller) node() *node.OriginNode {
	if n := x.rule.resource.OverflowOrigin(); n != nil && n.Name() == x.name {
		return n
	}
	n, _ := x.rule.resource.Origins().Find(x.name)
	return n
}

// Limit is that of the rule.
func (x caller) Limit() (limit float64, known bool) { return x.rule.Limit() }
