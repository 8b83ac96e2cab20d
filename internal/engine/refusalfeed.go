package engine

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
)

// OnBlocked calls f with the refusals of each second, until remove is called; see
// api.Guard.OnBlocked.
func (e *Engine) OnBlocked(f func(core.Refusal)) (remove func()) { return e.told.listen(f) }

// told tells listeners of refusals.
type told struct {
	engine *Engine
	shards [toldShards]toldShard
	missed shared.Int64 // calls that found no place

	mu        shared.Mutex
	listeners []*func(core.Refusal) // replaced as a whole
	stop      func()                // the timer; nil while nobody listens
	closed    bool
}

const (
	toldShards  = 8
	toldInShard = 1_024
)

// toldShard is refusals that were noted since they were last told.
type toldShard struct {
	mu     shared.Mutex
	counts map[toldKey]toldCount
	_      [40]byte // to a cache line
}

type toldKey struct {
	block           *core.BlockError // one for each rule, resource and value
	context, origin string
}

type toldCount struct{ first, last, count int64 }

// listener is what Engine.keepers counts of a listener; below are the callers of KeepRefusals.
const listener = 1 << 32

func (t *told) listen(f func(core.Refusal)) (remove func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return func() {}
	}
	if len(t.listeners) == 0 {
		_ = t.take() // what calls noted that looked before the last listener was removed
		t.missed.Store(0)
	}
	own := &f
	t.listeners = append(slices.Clip(t.listeners), own)
	t.engine.keepers.Add(listener)
	if t.stop == nil {
		t.stop = t.engine.Every(time.Second, t.tell)
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if at := slices.Index(t.listeners, own); at >= 0 {
			t.listeners = slices.Delete(slices.Clone(t.listeners), at, at+1)
			t.engine.keepers.Add(-listener)
		}
		if len(t.listeners) == 0 && t.stop != nil {
			t.stop()
			t.stop = nil
			_ = t.take() // for nobody
		}
	}
}

// note keeps a refusal of the call for the listeners. It waits for no other call.
func (t *told) note(inv *Invocation, b *core.BlockError) {
	key := toldKey{b, inv.ContextName(), inv.Origin()}
	for i := range uint32(toldShards) {
		s := &t.shards[(inv.lane+i)%toldShards]
		if !s.mu.TryLock() {
			continue
		}
		ok := s.addLocked(key, inv.now)
		s.mu.Unlock()
		if ok {
			return
		}
		break
	}
	t.missed.Add(1)
}

// addLocked reports whether there was room for it. The caller holds mu.
func (s *toldShard) addLocked(key toldKey, now int64) bool {
	c, ok := s.counts[key]
	switch {
	case ok:
		c.last = max(c.last, now)
	case len(s.counts) >= toldInShard:
		return false
	default:
		if s.counts == nil {
			s.counts = make(map[toldKey]toldCount)
		}
		c.first, c.last = now, now
	}
	c.count++
	s.counts[key] = c
	return true
}

// take returns what was noted, the oldest first.
func (t *told) take() (all []core.Refusal) {
	sums := make(map[toldKey]toldCount)
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		counts := s.counts
		s.counts = nil
		s.mu.Unlock()
		for key, c := range counts {
			if sum, ok := sums[key]; ok {
				c = toldCount{min(c.first, sum.first), max(c.last, sum.last), c.count + sum.count}
			}
			sums[key] = c
		}
	}
	for key, c := range sums {
		all = append(all, core.Refusal{
			First: time.Unix(0, c.first).UTC(), Last: time.Unix(0, c.last).UTC(), Count: c.count,
			Context: key.context, Origin: key.origin, Block: key.block,
		})
	}
	slices.SortFunc(all, func(a, b core.Refusal) int {
		return cmp.Or(a.First.Compare(b.First), strings.Compare(a.Block.Resource, b.Block.Resource), cmp.Compare(a.Block.Kind, b.Block.Kind),
			strings.Compare(a.Block.Rule, b.Block.Rule), strings.Compare(a.Origin, b.Origin), strings.Compare(a.Context, b.Context))
	})
	return all
}

// tell tells the listeners what was noted.
func (t *told) tell(now int64) {
	all := t.take()
	if n := t.missed.Swap(0); n > 0 {
		at := time.Unix(0, now).UTC()
		all = append(all, core.Refusal{First: at, Last: at, Count: n, Block: &core.BlockError{Kind: core.KindNone, Resource: node.OverflowName}})
	}
	t.mu.Lock()
	listeners := t.listeners
	t.mu.Unlock()
	for _, f := range listeners {
		for _, r := range all {
			t.engine.Shield(func() { (*f)(r) })
		}
	}
}

// close tells what is left, and lets the listeners go. The engine repeats nothing any more.
func (t *told) close() {
	t.mu.Lock()
	closed := t.closed
	t.closed = true
	t.mu.Unlock()
	if closed {
		return
	}
	t.tell(t.engine.Now())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.engine.keepers.Add(-listener * int64(len(t.listeners)))
	t.listeners, t.stop = nil, nil
}
