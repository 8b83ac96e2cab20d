package node

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// While the map below a registry grows, shrinks and is iterated, no stored member gets lost, none
// appears twice, and deleted members are gone. known bug 77
func TestRegistryMapConforms(t *testing.T) {
	const writers, rounds, each = 4, 30, 64
	r, _ := newRegistry(newBudget(1 << 20))
	stays := make([]*member, each)
	for i := range stays {
		stays[i], _ = r.Obtain(fmt.Sprint("stays", i), 0)
		stays[i].busy.Store(1)
	}
	var running, walking sync.WaitGroup
	var done atomic.Bool
	for range 2 {
		walking.Go(func() {
			for !done.Load() {
				seen := make(map[string]int)
				for name, m := range r.All() {
					seen[name]++
					if m == nil || m.name != name {
						t.Errorf("%q finds %v", name, m)
					}
				}
				for name, n := range seen {
					if n != 1 {
						t.Errorf("%q was yielded %d times", name, n)
					}
				}
				for i := range stays {
					if seen[fmt.Sprint("stays", i)] != 1 {
						t.Errorf("stays%d was skipped", i)
					}
				}
			}
		})
	}
	for w := range writers {
		running.Go(func() {
			mine := make([]*member, each)
			name := func(i int) string { return fmt.Sprint(w, " ", i) }
			for range rounds {
				for i := range mine {
					mine[i], _ = r.Obtain(name(i), 0)
					mine[i].busy.Store(1)
				}
				r.Evict(0) // of others as well
				for i, m := range mine {
					// A member that was marked before it was in use has been evicted.
					if found, ok := r.Find(name(i)); (!ok || found != m) && !m.retired.Load() {
						t.Errorf("%q was lost", name(i))
					}
				}
				for _, m := range mine {
					m.busy.Store(0)
				}
				r.Evict(0)
				for i := range mine {
					if found, ok := r.Find(name(i)); ok && found == mine[i] {
						t.Errorf("%q is still there", name(i))
					}
				}
			}
		})
	}
	running.Wait()
	done.Store(true)
	walking.Wait()
	require.Zero(t, r.Evict(0))
	count := 0
	for range r.All() {
		count++
	}
	assert.Equal(t, each, count)
	assert.Equal(t, each, r.budget.Used())
}

// All concurrent callers that ask for a new name get the same member. known bug 77
func TestRegistryMakesOneMember(t *testing.T) {
	const callers, names = 8, 200
	var made atomic.Int64
	r := NewRegistry(newBudget(names), func(name string) *member {
		made.Add(1)
		runtime.Gosched() // so that others have found nothing and wait for the lock
		return &member{name: name}
	}, nil, nil)
	var got [callers][names]*member
	var running sync.WaitGroup
	for c := range callers {
		running.Go(func() {
			for i := range names {
				n := (i + c%2*names/2) % names
				if c%4 == 3 {
					got[c][n] = r.Pin(fmt.Sprint(n))
				} else {
					got[c][n], _ = r.Obtain(fmt.Sprint(n), 0)
				}
			}
		})
	}
	running.Wait()
	assert.Equal(t, int64(names), made.Load())
	for c := range callers {
		assert.Equal(t, got[0], got[c])
	}
}
