package cluster

import (
	"container/heap"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// Memory is a [store.Store] within one process: for tests, for simulations, and for engines that
// share limits only with each other. It implements the contract exactly, by the clock it was made
// with, and drops keys as soon as they expire.
type Memory struct {
	clock interface{ Now() int64 }

	mu   sync.Mutex
	keys map[string]*record
	due  expiries
}

// record is the entry of a key.
type record struct {
	key     string
	value   value
	expires int64 // earliest removal
	due     int64 // latest time of the next check
}

// value executes commands of its kind and rejects others.
type value interface {
	// do returns how long to keep the value.
	do(c store.Command, now int64) (keep time.Duration, ok bool)
}

// NewMemory returns an empty store that uses a clock: clocks.NewSystem() of core/clocks, the
// api.ManualClock of the Guards in tests, or any other that returns nanoseconds since 1970. The
// clock may go backwards.
func NewMemory(clock interface{ Now() int64 }) *Memory {
	return &Memory{clock: clock, keys: map[string]*record{}}
}

// Do executes the commands. It never waits, so it ignores the context.
func (m *Memory) Do(_ context.Context, batch []store.Command) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	m.expireLocked(now)
	for _, c := range batch {
		m.doLocked(c, now)
	}
}

// Start executes the commands like Do, then calls done.
func (m *Memory) Start(ctx context.Context, batch []store.Command, done func()) {
	m.Do(ctx, batch)
	done()
}

// Shard returns 0, the only shard.
func (m *Memory) Shard(string) int { return 0 }

// Keys returns the number of keys.
func (m *Memory) Keys() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expireLocked(m.clock.Now())
	return len(m.keys)
}

// Delete removes a key, like a store that evicts it, and reports whether the key existed.
func (m *Memory) Delete(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.keys[key]
	delete(m.keys, key)
	return ok
}

// Flush removes all keys.
func (m *Memory) Flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.keys)
	m.due = nil
}

// doLocked executes one command.
func (m *Memory) doLocked(c store.Command, now int64) {
	o := c.Result()
	r := m.keys[o.Key]
	if r != nil && r.expires <= now {
		delete(m.keys, o.Key)
		r = nil
	}
	made := r == nil
	if made {
		r = &record{key: o.Key, value: newValue(c)}
		if r.value == nil {
			o.Err = fmt.Errorf("a command of type %T: %w", c, store.ErrNotExecuted)
			return
		}
	}
	keep, ok := r.value.do(c, now)
	if !ok {
		o.Err = fmt.Errorf("key %q, a command of type %T: %w", o.Key, c, store.ErrForeign)
		return
	}
	o.Err = nil
	r.expires = now + int64(keep)
	if made {
		m.keys[o.Key] = r
		r.due = r.expires
		heap.Push(&m.due, r)
	}
}

// newValue returns the value for a command whose key doesn't exist, or nil for an unknown command.
func newValue(c store.Command) value {
	switch c.(type) {
	case *store.Take:
		return new(memoryWindow)
	case *store.Turn:
		return new(memoryTurns)
	case *store.Tokens:
		return new(memoryTokens)
	case *store.Permits:
		return new(memoryPermits)
	case *store.Presence:
		return new(memoryPresence)
	}
	return nil
}

// expireLocked removes expired keys. Each key is in due once, at the time that held when it was
// queued: a key whose life was extended since then is queued again.
func (m *Memory) expireLocked(now int64) {
	for len(m.due) > 0 && m.due[0].due <= now {
		r := m.due[0]
		switch {
		case m.keys[r.key] != r: // it was deleted, and perhaps created again
			heap.Pop(&m.due)
		case r.expires > now:
			r.due = r.expires
			heap.Fix(&m.due, 0)
		default:
			delete(m.keys, r.key)
			heap.Pop(&m.due)
		}
	}
}

// expiries is a heap of records, ordered by due.
type expiries []*record

func (e expiries) Len() int           { return len(e) }
func (e expiries) Less(i, j int) bool { return e[i].due < e[j].due }
func (e expiries) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *expiries) Push(r any)        { *e = append(*e, r.(*record)) }

func (e *expiries) Pop() any {
	last := len(*e) - 1
	r := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return r
}
