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

// OnBlocked calls f with the rejections of each second, until remove is called; see
// api.Guard.OnBlocked.
func (e *Engine) OnBlocked(f func(core.Refusal)) (remove func()) { return e.feed.listen(f) }

// refusalFeed passes rejections to listeners.
type refusalFeed struct {
	engine *Engine
	shards [feedShards]feedShard
	missed shared.Int64 // calls that didn't fit

	mu        shared.Mutex          // guards the fields below it
	listeners []*func(core.Refusal) // replaced as a whole
	stop      func()                // the timer; nil while there are no listeners
	closed    bool
}

const (
	feedShards   = 8
	feedPerShard = 1_024
)

// feedShard collects rejections between deliveries.
type feedShard struct {
	mu     shared.Mutex // guards the fields below it
	counts map[feedKey]feedCount
	_      [40]byte // to a cache line
}

type feedKey struct {
	block           *core.BlockError // one for each rule, resource and value
	context, origin string
}

type feedCount struct{ first, last, count int64 }

// listener is the part of Engine.keepers that counts listeners; the part below counts callers of
// KeepRefusals.
const listener = 1 << 32

func (t *refusalFeed) listen(f func(core.Refusal)) (remove func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return func() {}
	}
	if len(t.listeners) == 0 {
		_ = t.take() // leftovers of calls that read keepers before the last listener was removed
		t.missed.Store(0)
	}
	own := &f
	t.listeners = append(slices.Clip(t.listeners), own)
	t.engine.keepers.Add(listener)
	if t.stop == nil {
		t.stop = t.engine.Every(time.Second, t.deliver)
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
			_ = t.take() // nobody listens
		}
	}
}

// note keeps a rejection of the call for the listeners. It waits for no other call.
func (t *refusalFeed) note(inv *Invocation, b *core.BlockError) {
	key := feedKey{b, inv.ContextName(), inv.Origin()}
	for i := range uint32(feedShards) {
		s := &t.shards[(inv.lane+i)%feedShards]
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

// addLocked reports whether there was room. The caller holds mu.
func (s *feedShard) addLocked(key feedKey, now int64) bool {
	c, ok := s.counts[key]
	switch {
	case ok:
		c.last = max(c.last, now)
	case len(s.counts) >= feedPerShard:
		return false
	default:
		if s.counts == nil {
			s.counts = make(map[feedKey]feedCount)
		}
		c.first, c.last = now, now
	}
	c.count++
	s.counts[key] = c
	return true
}

// take removes and returns the collected rejections, the oldest first.
func (t *refusalFeed) take() (all []core.Refusal) {
	sums := make(map[feedKey]feedCount)
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		counts := s.counts
		s.counts = nil
		s.mu.Unlock()
		for key, c := range counts {
			if sum, ok := sums[key]; ok {
				c = feedCount{min(c.first, sum.first), max(c.last, sum.last), c.count + sum.count}
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

// deliver passes the collected rejections to the listeners.
func (t *refusalFeed) deliver(now int64) {
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

// close delivers the remaining rejections, and drops the listeners. The engine's periodic tasks
// have ended.
func (t *refusalFeed) close() {
	t.mu.Lock()
	closed := t.closed
	t.closed = true
	t.mu.Unlock()
	if closed {
		return
	}
	t.deliver(t.engine.Now())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.engine.keepers.Add(-listener * int64(len(t.listeners)))
	t.listeners, t.stop = nil, nil
}
