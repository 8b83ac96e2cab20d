package sharing

import (
	"runtime"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/internal/shown"
)

// Limit is what a call may lack something of: a [Window], a [Throttle] or a [Semaphore].
type Limit interface {
	// Timeout is the longest that a call waits for the store.
	Timeout() time.Duration

	// enter decides what a call needs if it can decide immediately; otherwise it makes the call
	// wait.
	enter(w *waiter, now int64)
	// expire decides for a call that has waited as long as it may.
	expire(w *waiter, now int64)
	// giveBack gives back what a call was granted.
	giveBack(n *Need)
}

// Answer is what a limit says to a call that asks.
type Answer uint8

// The answers.
const (
	Fits    Answer = iota // take it
	Lacks                 // the store must be asked, see [Member.Fetch]
	Refuses               // there is no room, as far as the member knows
)

var answerNames = shown.NewEnum[Answer]("answer", "fits", "lacks", "refuses")

// String returns the name.
func (a Answer) String() string { return answerNames.Name(a) }

// limits are the limits of a member that are in use, by key. One that is no longer referred to is
// dropped as soon as it has nothing left to do.
type limits map[string]held

// held is a limit that lives as long as something else refers to it.
type held interface {
	// limit is nil if it has gone.
	limit() handled
}

// handled is a limit as the member sees it.
type handled interface {
	keyed
	// leave hands back everything that can be handed back.
	leave(now int64)
}

// weakly holds a limit of a type.
type weakly[T any] struct{ p shared.Weak[T] }

func (w weakly[T]) limit() handled {
	if v := w.p.Value(); v != nil {
		return any(v).(handled)
	}
	return nil
}

// limitOf is the limit of a key, made if there is none. ok is false where the key has one of another type.
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

// whenGone has forget called, with the member's mutex, once nothing refers to the limit any longer.
// forget must not refer to it, nor to the member.
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

// shapes are the latest windows of names: a name has a separate window for each shape.
type shapes map[string]weakly[Window]

// latest notes that a name has a window, and returns the one of another shape that it had before,
// nil if there is none.
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

// dropLeases gives up what is leased on a shard, or on all shards if s is nil.
func (m *Member) dropLeases(s *shard) {
	now := m.clock.Now()
	m.each(func(l handled) {
		if s == nil || l.where().shard() == s {
			l.drop(now)
		}
	})
}

// handBackAll is the last thing that the limits of a member do.
func (m *Member) handBackAll() {
	now := m.clock.Now()
	m.each(func(l handled) { l.leave(now) })
}
