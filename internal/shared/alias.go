//go:build !sim

package shared

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"
)

// The types of sync/atomic.
type (
	Bool           = atomic.Bool
	Int64          = atomic.Int64
	Uint32         = atomic.Uint32
	Uint64         = atomic.Uint64
	Pointer[T any] = atomic.Pointer[T]
)

// The types of sync.
type (
	Mutex = sync.Mutex
	Pool  = sync.Pool
)

// Weak is a [weak.Pointer].
type Weak[T any] = weak.Pointer[T]

// MakeWeak is [weak.Make].
func MakeWeak[T any](p *T) Weak[T] { return weak.Make(p) }

// Gosched lets other goroutines run, like [runtime.Gosched].
func Gosched() { runtime.Gosched() }

// A package that imports this one and not sync/atomic can inline a method of an alias only if its
// body is in this package's export data, which requires that it was inlined here. So each method on
// the hot path is called here, in code that never runs.
var _ = func(b *Bool, i *Int64, n *Uint32, u *Uint64) {
	b.Store(b.Load())
	i.Store(i.Load() + i.Swap(0) + i.Add(0))
	i.CompareAndSwap(0, 0)
	n.Store(n.Load() + n.Add(0))
	n.CompareAndSwap(0, 0)
	u.Store(u.Load() + u.Swap(0) + u.Add(0) + u.And(0) + u.Or(0))
	u.CompareAndSwap(0, 0)
}
