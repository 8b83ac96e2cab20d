package node

import (
	"iter"
	"maps"
	"strings"

	"github.com/penstock-go/penstock/internal/shared"
)

// Budget is a cap that several registries share. It is safe for concurrent use.
type Budget struct {
	max      int64
	used     shared.Int64
	overflow shared.Int64
}

// newBudget returns a budget of max places.
func newBudget(max int) *Budget { return &Budget{max: int64(max)} }

// Cap returns the number of places.
func (b *Budget) Cap() int { return int(b.max) }

// Used returns the number of places taken.
func (b *Budget) Used() int { return int(b.used.Load()) }

// Overflows returns the number of names rejected because no place was left.
func (b *Budget) Overflows() int64 { return b.overflow.Load() }

// full reports whether no place is left.
func (b *Budget) full() bool { return b.used.Load() >= b.max }

func (b *Budget) take() bool {
	if b.used.Add(1) > b.max {
		b.used.Add(-1)
		return false
	}
	return true
}

// Member is an entry of a [Registry]: a pointer to a T.
type Member[T any] interface {
	*T
	// Key returns the name under which the member is kept.
	Key() string
	// Retire marks the member as leaving, so that its users notice; false removes the mark.
	Retire(leaving bool)
	// Idle reports whether the member can be evicted.
	Idle(now int64) bool
	// Close is called after Idle on a marked member, before it is removed. From then on, until the
	// mark is removed, nothing can be placed below the member. False means that something was placed
	// after Idle looked: the member stays.
	Close() bool
}

// Registry keeps members by name: as many as its budget has places, and pinned ones in addition.
// When no place is left, idle members are evicted. It is safe for concurrent use; finding a member
// takes no lock.
//
// # A member in use is never lost
//
// A call may find a member, be delayed, and use the member after it was evicted. Two rules make
// that harmless.
//
// First, a name never has two members: an evicted member is remembered weakly, and while anything
// refers to it, its name gets that member back and no new one. So units that a call takes or counts
// on an evicted member are still there for the next call.
//
// Second, the member is restored: the registry marks the member, then checks whether it is idle,
// and only then removes it; a call counts itself on the member, then checks the mark. One of the two
// sees the other: either the registry sees the count and keeps the member, or the call sees the mark
// and restores the member.
type Registry[T any, V Member[T]] struct {
	items members[T, V]
	*policy[T, V]

	mu     shared.Mutex
	pinned map[string]bool
	gone   map[string]shared.Weak[T] // evicted members that may be in use
}

// policy has the functions shared by all registries of a kind.
type policy[T any, V Member[T]] struct {
	budget *Budget
	build  func(name string) V
	left   func(V)         // called with an evicted member
	room   func(now int64) // evicts idle members, here and elsewhere
}

// NewRegistry returns an empty registry. It makes its members with build and calls left for each
// evicted member, both under its lock. When the budget is used up, it calls room without the lock;
// room may evict here or in another registry that shares the budget. left and room may be nil.
func NewRegistry[T any, V Member[T]](budget *Budget, build func(name string) V, left func(V), room func(now int64)) *Registry[T, V] {
	return &Registry[T, V]{policy: &policy[T, V]{budget: budget, build: build, left: left, room: room}}
}

// Find returns the member of that name.
func (r *Registry[T, V]) Find(name string) (V, bool) {
	return r.items.load(name)
}

// Obtain returns the member of that name, made if there is none. It returns false if no place is
// left for it.
func (r *Registry[T, V]) Obtain(name string, now int64) (V, bool) {
	if v, ok := r.Find(name); ok {
		return v, true
	}
	return r.obtain(name, now, r.build, nil)
}

// obtain is like Obtain for a name that was not found, but with the caller's functions: build makes
// a member, and back, which may be nil, is called with a member that is brought back, before others
// see it.
func (r *Registry[T, V]) obtain(name string, now int64, build func(name string) V, back func(V)) (V, bool) {
	if r.budget.full() && r.room != nil {
		r.room(now)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, ok := r.Find(name); ok {
		return v, true
	}
	if !r.pinned[name] && !r.budget.take() {
		r.budget.overflow.Add(1)
		var none V
		return none, false
	}
	return r.putLocked(name, build, back), true
}

// putLocked makes a member, or brings back the evicted one, if anything still refers to it. It
// keeps a copy of the name, because the caller's may be part of a whole request. The caller holds
// mu.
func (r *Registry[T, V]) putLocked(name string, build func(name string) V, back func(V)) V {
	v := V(r.gone[name].Value())
	if v == nil {
		v = build(strings.Clone(name))
	} else if back != nil {
		back(v)
	}
	delete(r.gone, name)
	r.items.store(v)
	v.Retire(false) // only now: a call that sees no mark must find it in its place
	return v
}

// Pin returns the member of that name, made if there is none, and keeps it outside the budget until
// [Registry.Unpin].
func (r *Registry[T, V]) Pin(name string) V {
	return r.pin(name, r.build)
}

func (r *Registry[T, V]) pin(name string, build func(name string) V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reserveLocked(name)
	v, ok := r.Find(name)
	if !ok {
		v = r.putLocked(name, build, nil)
	}
	return v
}

// Reserve is like Pin, but doesn't make the member if there is none yet.
func (r *Registry[T, V]) Reserve(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reserveLocked(name)
}

// reserveLocked marks a name as pinned. The caller holds mu.
func (r *Registry[T, V]) reserveLocked(name string) {
	if _, ok := r.Find(name); ok && !r.pinned[name] {
		r.budget.used.Add(-1)
	}
	if r.pinned == nil {
		r.pinned = make(map[string]bool)
	}
	r.pinned[name] = true
}

// unpinnedAtOnce is the number of names that Unpin checks before it lets other goroutines have the
// lock.
const unpinnedAtOnce = 64

// Unpin turns every pinned member that keep doesn't want into an ordinary one. It may take the
// budget beyond its cap; the next new name is then rejected. A new name waits while a few members
// are checked, never for all of them.
func (r *Registry[T, V]) Unpin(keep func(name string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for name := range r.pinned { // other goroutines may add and delete names during the loop
		if r.pinned[name] && !keep(name) {
			delete(r.pinned, name)
			if _, ok := r.Find(name); ok {
				r.budget.used.Add(1)
			}
		}
		if n++; n%unpinnedAtOnce == 0 {
			r.mu.Unlock()
			r.mu.Lock()
		}
	}
}

// Restore puts a member back that was found marked after it was used. It may take the budget beyond
// its cap.
func (r *Registry[T, V]) Restore(name string, v V) { r.restore(name, v, nil) }

// restore is Restore with a function for a member that has left, as in obtain.
func (r *Registry[T, V]) restore(name string, v V, back func(V)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.Find(name); !ok {
		if back != nil {
			back(v)
		}
		delete(r.gone, name)
		r.items.store(v)
		if !r.pinned[name] {
			r.budget.used.Add(1)
		}
	}
	v.Retire(false) // as in putLocked
}

// Retire marks every member as leaving, or removes the mark.
func (r *Registry[T, V]) Retire(leaving bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.All() {
		v.Retire(leaving)
	}
}

// Clear removes every member, in use or not, and returns their places.
func (r *Registry[T, V]) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, v := range r.All() {
		v.Retire(true)
		r.removeLocked(name, v)
	}
	r.pinned = nil
}

// All yields the members in no particular order.
func (r *Registry[T, V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		r.items.each(yield)
	}
}

// Evict removes every member that is idle and not pinned, and returns their number. It takes the
// lock for one member at a time, so that new names don't wait for all.
func (r *Registry[T, V]) Evict(now int64) int {
	r.forget()
	n := 0
	for name, v := range r.All() {
		if v.Idle(now) && r.evict(name, v, now) {
			n++
		}
	}
	return n
}

// forget drops the weak references to members that nothing else refers to. The remaining ones move
// to a new map, since a map never shrinks.
func (r *Registry[T, V]) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.gone)
	maps.DeleteFunc(r.gone, func(_ string, v shared.Weak[T]) bool { return v.Value() == nil })
	switch len(r.gone) {
	case before:
	case 0:
		r.gone = nil
	default:
		r.gone = maps.Collect(maps.All(r.gone))
	}
}

// evict removes a member unless it is pinned or in use. It marks before it checks; see the type's
// comment.
func (r *Registry[T, V]) evict(name string, v V, now int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if there, ok := r.Find(name); !ok || there != v || r.pinned[name] {
		return false
	}
	v.Retire(true)
	if !v.Idle(now) || !v.Close() {
		v.Retire(false)
		return false
	}
	r.removeLocked(name, v)
	return true
}

// removeLocked removes a member. The caller holds mu.
func (r *Registry[T, V]) removeLocked(name string, v V) {
	r.items.delete(name)
	if r.gone == nil {
		r.gone = make(map[string]shared.Weak[T])
	}
	r.gone[name] = shared.MakeWeak((*T)(v))
	if !r.pinned[name] {
		r.budget.used.Add(-1)
	}
	if r.left != nil {
		r.left(v)
	}
}
