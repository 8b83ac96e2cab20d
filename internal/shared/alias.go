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
	Map   = sync.Map
	Pool  = sync.Pool
)

// Weak is a [weak.Pointer].
type Weak[T any] = weak.Pointer[T]

// MakeWeak is [weak.Make].
func MakeWeak[T any](p *T) Weak[T] { return weak.Make(p) }

// Gosched lets others run, as [runtime.Gosched].
func Gosched() { runtime.Gosched() }
