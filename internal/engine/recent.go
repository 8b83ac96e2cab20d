package engine

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/shared"
)

// recentRefusals is the number of rejections kept of a resource.
const recentRefusals = 16

// recent holds the last rejections of a resource, in a ring. A call never waits for another to
// record its rejection: this is a sample for people, and the counters have the number.
type recent struct {
	mu   shared.Mutex // guards the fields below it
	ring [recentRefusals]noted
	next int // position of the next one, in place of the oldest
}

// noted is a Refusal in its stored form. Its Block has the other fields.
type noted struct {
	first, last, count int64
	block              *core.BlockError
	context, origin    string
}

// note keeps a rejection of the call, unless another goroutine is using the ring.
func (r *recent) note(inv *Invocation, b *core.BlockError) {
	if !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	origin := inv.Origin()
	for i := range r.ring {
		n := &r.ring[i]
		if n.block == b && n.origin == origin && inv.now-n.first < int64(time.Second) {
			n.last = max(n.last, inv.now)
			n.count++
			return
		}
	}
	r.ring[r.next] = noted{inv.now, inv.now, 1, b, inv.ContextName(), origin}
	r.next = (r.next + 1) % len(r.ring)
}

// list returns the rejections in the ring, the newest first.
func (r *recent) list() (all []core.Refusal) {
	r.mu.Lock()
	ring, next := r.ring, r.next
	r.mu.Unlock()
	for i := range ring {
		n := &ring[(next+len(ring)-1-i)%len(ring)]
		if n.block == nil {
			break
		}
		all = append(all, core.Refusal{
			First: time.Unix(0, n.first).UTC(), Last: time.Unix(0, n.last).UTC(),
			Count: n.count, Context: n.context, Origin: n.origin, Block: n.block,
		})
	}
	slices.SortStableFunc(all, func(a, b core.Refusal) int { return b.Last.Compare(a.Last) })
	return all
}

// KeepRefusals makes the engine keep the last rejections of each resource until every caller has
// called its release; see api.Guard.KeepRefusals.
func (e *Engine) KeepRefusals() (release func()) {
	e.keepers.Add(1)
	var done shared.Bool
	return func() {
		if done.Swap(true) {
			return
		}
		if uint32(e.keepers.Add(-1)) == 0 {
			e.EachResource(func(r *Resource) { r.recent.Store(nil) })
		}
	}
}

// Refusals returns the last rejections of a resource, the newest first; see api.Guard.Refusals.
func (e *Engine) Refusals(resource string) []core.Refusal {
	if uint32(e.keepers.Load()) == 0 {
		return nil
	}
	if r, ok := e.FindResource(resource); ok {
		if kept := r.recent.Load(); kept != nil {
			return kept.list()
		}
	}
	return nil
}

// keep records a rejection of the call: a listener or some caller of KeepRefusals wants it, or did
// when the call read Engine.keepers. A ring made after the last release is dropped as well: either
// the call sees that it is not wanted, or the last release finds the ring.
func (inv *Invocation) keep(b *core.BlockError, keepers int64) {
	if keepers >= listener {
		inv.engine.feed.note(inv, b)
	}
	if uint32(keepers) == 0 {
		return
	}
	at := &inv.resource.recent
	kept := at.Load()
	if kept == nil {
		kept = new(recent)
		if at.CompareAndSwap(nil, kept) && uint32(inv.engine.keepers.Load()) == 0 {
			at.Store(nil)
			return
		}
		if kept = at.Load(); kept == nil {
			return // released in the meantime
		}
	}
	kept.note(inv, b)
}
