//go:build sim

package shared

import (
	"hash/fnv"
	"runtime"
	"sync"
	"sync/atomic"
)

// Scheduler decides which goroutine continues.
type Scheduler interface {
	// Access is called before each access to an object.
	Access(object any, write bool)
	// Lock is called before a mutex is locked, and returns when the mutex is free.
	Lock(mutex any)
	// Took and Unlocked are called after a mutex was locked by TryLock, or unlocked.
	Took(mutex any)
	Unlocked(mutex any)
}

// Schedule is the current scheduler, or nil; then everything behaves as without the tag. It is set
// while no other goroutine runs.
var Schedule Scheduler

func read(object any) {
	if s := Schedule; s != nil {
		s.Access(object, false)
	}
}

func write(object any) {
	if s := Schedule; s != nil {
		s.Access(object, true)
	}
}

// Gosched lets others run.
func Gosched() {
	if Schedule == nil {
		runtime.Gosched()
	}
	write(nil)
}

// Bool is an [atomic.Bool].
type Bool struct{ v atomic.Bool }

// Load is [atomic.Bool.Load].
func (b *Bool) Load() bool { read(b); return b.v.Load() }

// Store is [atomic.Bool.Store].
func (b *Bool) Store(v bool) { write(b); b.v.Store(v) }

// Swap is [atomic.Bool.Swap].
func (b *Bool) Swap(v bool) bool { write(b); return b.v.Swap(v) }

// Int64 is an [atomic.Int64].
type Int64 struct{ v atomic.Int64 }

// Load is [atomic.Int64.Load].
func (i *Int64) Load() int64 { read(i); return i.v.Load() }

// Store is [atomic.Int64.Store].
func (i *Int64) Store(v int64) { write(i); i.v.Store(v) }

// Add is [atomic.Int64.Add].
func (i *Int64) Add(n int64) int64 { write(i); return i.v.Add(n) }

// Swap is [atomic.Int64.Swap].
func (i *Int64) Swap(v int64) int64 { write(i); return i.v.Swap(v) }

// CompareAndSwap is [atomic.Int64.CompareAndSwap].
func (i *Int64) CompareAndSwap(old, new int64) bool { write(i); return i.v.CompareAndSwap(old, new) }

// Uint32 is an [atomic.Uint32].
type Uint32 struct{ v atomic.Uint32 }

// Load is [atomic.Uint32.Load].
func (i *Uint32) Load() uint32 { read(i); return i.v.Load() }

// Store is [atomic.Uint32.Store].
func (i *Uint32) Store(v uint32) { write(i); i.v.Store(v) }

// Add is [atomic.Uint32.Add].
func (i *Uint32) Add(n uint32) uint32 { write(i); return i.v.Add(n) }

// Uint64 is an [atomic.Uint64].
type Uint64 struct{ v atomic.Uint64 }

// Load is [atomic.Uint64.Load].
func (i *Uint64) Load() uint64 { read(i); return i.v.Load() }

// Store is [atomic.Uint64.Store].
func (i *Uint64) Store(v uint64) { write(i); i.v.Store(v) }

// Add is [atomic.Uint64.Add].
func (i *Uint64) Add(n uint64) uint64 { write(i); return i.v.Add(n) }

// Swap is [atomic.Uint64.Swap].
func (i *Uint64) Swap(v uint64) uint64 { write(i); return i.v.Swap(v) }

// And is [atomic.Uint64.And].
func (i *Uint64) And(mask uint64) uint64 { write(i); return i.v.And(mask) }

// Or is [atomic.Uint64.Or].
func (i *Uint64) Or(mask uint64) uint64 { write(i); return i.v.Or(mask) }

// CompareAndSwap is [atomic.Uint64.CompareAndSwap].
func (i *Uint64) CompareAndSwap(old, new uint64) bool { write(i); return i.v.CompareAndSwap(old, new) }

// Pointer is an [atomic.Pointer].
type Pointer[T any] struct{ v atomic.Pointer[T] }

// Load is [atomic.Pointer.Load].
func (p *Pointer[T]) Load() *T { read(p); return p.v.Load() }

// Store is [atomic.Pointer.Store].
func (p *Pointer[T]) Store(v *T) { write(p); p.v.Store(v) }

// CompareAndSwap is [atomic.Pointer.CompareAndSwap].
func (p *Pointer[T]) CompareAndSwap(old, new *T) bool { write(p); return p.v.CompareAndSwap(old, new) }

// Mutex is a [sync.Mutex]. The schedule may delay its holder right before it unlocks, so that
// others see it locked.
type Mutex struct{ v sync.Mutex }

// Lock is [sync.Mutex.Lock].
func (m *Mutex) Lock() {
	if s := Schedule; s != nil {
		s.Lock(m)
	}
	m.v.Lock()
}

// TryLock is [sync.Mutex.TryLock].
func (m *Mutex) TryLock() bool {
	write(m)
	return m.v.TryLock() && m.took()
}

func (m *Mutex) took() bool {
	if s := Schedule; s != nil {
		s.Took(m)
	}
	return true
}

// Unlock is [sync.Mutex.Unlock].
func (m *Mutex) Unlock() {
	write(m)
	m.v.Unlock()
	if s := Schedule; s != nil {
		s.Unlocked(m)
	}
}

// Pool is a [sync.Pool] that returns the object put last, so that a pooled object is reused as soon
// as possible.
type Pool struct {
	New func() any

	mu   sync.Mutex // guards the fields below it
	free []any
}

// Get is [sync.Pool.Get].
func (p *Pool) Get() any {
	write(p)
	if v := p.take(); v != nil {
		return v
	}
	return p.New()
}

func (p *Pool) take() any {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.free)
	if n == 0 {
		return nil
	}
	v := p.free[n-1]
	p.free = p.free[:n-1]
	return v
}

// Put is [sync.Pool.Put].
func (p *Pool) Put(v any) {
	write(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, v)
}

// Weak is a [weak.Pointer] that is never cleared, since collection does not depend on the schedule.
type Weak[T any] struct{ v *T }

// MakeWeak is [weak.Make].
func MakeWeak[T any](p *T) Weak[T] { return Weak[T]{p} }

// Value is [weak.Pointer.Value].
func (w Weak[T]) Value() *T { return w.v }

// Hash returns a hash of a text. It is the same in every process, so that a schedule can be run
// again.
func Hash(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}
