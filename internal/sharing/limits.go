package sharing

import (
	"runtime"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/internal/shown"
)

// Limit is a [Window], a [Throttle], a [Bucket] or a [Semaphore].
type Limit interface {
	// Timeout is the longest that a call waits for the store.
	Timeout() time.Duration

	// enter decides a call's need at once if it can; otherwise it queues the call.
	enter(w *waiter, now int64)
	// expire decides for a call that has waited for the longest time allowed.
	expire(w *waiter, now int64)
	// giveBack returns the units that a call was granted.
	giveBack(n *Need)
	// settle charges units that a call has used beyond a granted need, or returns some if over is
	// negative.
	settle(n *Need, now, over int64)
}

// Answer is the reply of a limit to a call.
type Answer uint8

// The answers.
const (
	Fits      Answer = iota // the member has the units
	NeedsMore               // the member must ask the store, see [Member.Fetch]
	Refuses                 // there is no room, by the member's knowledge
)

var answerNames = shown.NewEnum[Answer]("answer", "fits", "needs more", "refuses")

// String returns the name.
func (a Answer) String() string { return answerNames.Name(a) }

// limits holds the limits of a member that are in use, by key. A limit that nothing refers to is
// dropped once it has nothing left to do.
type limits map[string]held

// held is a weak reference to a limit.
type held interface {
	// limit returns nil once the limit is gone.
	limit() handled
}

// handled is the member's view of a limit.
type handled interface {
	keyed
	// leave hands back everything it can.
	leave(now int64)
}

// weakly is a weak reference to a limit of type T.
type weakly[T any] struct{ p shared.Weak[T] }

func (w weakly[T]) limit() handled {
	if v := w.p.Value(); v != nil {
		return any(v).(handled)
	}
	return nil
}

// limitOf returns the limit of a key, and makes it if there is none. ok is false if the key has a
// limit of another type.
func limitOf[T any](m *Member, key string, made func() *T) (limit *T, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.limits[key]; h != nil {
		if w, same := h.(weakly[T]); !same {
			return nil, false
		} else if v := w.p.Value(); v != nil {
			return v, true
		}
	}
	limit = made()
	mine := weakly[T]{shared.MakeWeak(limit)}
	m.limits[key] = mine
	whenGone(m, limit, func(m *Member) {
		if m.limits[key] == held(mine) { // unless it was replaced meanwhile
			delete(m.limits, key)
		}
	})
	return limit, true
}

// whenGone calls forget, under the member's mutex, once nothing refers to the limit. forget must
// refer to neither the limit nor the member.
func whenGone[T any](m *Member, limit *T, forget func(*Member)) {
	member := shared.MakeWeak(m)
	runtime.AddCleanup(limit, func(forget func(*Member)) {
		if m := member.Value(); m != nil {
			m.mu.Lock()
			defer m.mu.Unlock()
			forget(m)
		}
	}, forget)
}

// shapes holds the latest window of each name: a name has one window per shape.
type shapes map[string]weakly[Window]

// latest makes w the latest window of its name, and returns the previous one of another shape; nil
// if there is none.
func (m *Member) latest(name string, w *Window) (old *Window) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h, ok := m.shapes[name]; ok {
		if old = h.p.Value(); old == w {
			return nil
		}
	}
	mine := weakly[Window]{shared.MakeWeak(w)}
	m.shapes[name] = mine
	whenGone(m, w, func(m *Member) {
		if m.shapes[name] == mine {
			delete(m.shapes, name)
		}
	})
	return old
}

// latestOf returns the latest window of a name, or nil.
func (m *Member) latestOf(name string) *Window {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h, ok := m.shapes[name]; ok {
		return h.p.Value()
	}
	return nil
}

// each calls f for every limit.
func (m *Member) each(f func(handled)) {
	m.mu.Lock()
	all := make([]held, 0, len(m.limits))
	for _, h := range m.limits {
		all = append(all, h)
	}
	m.mu.Unlock()
	for _, h := range all {
		if l := h.limit(); l != nil {
			f(l)
		}
	}
}

// dropLeases gives up the leases on a shard, or on all shards if s is nil.
func (m *Member) dropLeases(s *shard) {
	now := m.clock.Now()
	m.each(func(l handled) {
		if s == nil || l.where().shard() == s {
			l.drop(now)
		}
	})
}

// handBackAll makes all limits leave, at the end of the member.
func (m *Member) handBackAll() {
	now := m.clock.Now()
	m.each(func(l handled) { l.leave(now) })
}
