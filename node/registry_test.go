package node

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// member is a minimal registry member: idle while unused.
type member struct {
	name    string
	busy    atomic.Int64
	retired atomic.Bool
	looked  func() // called after each check whether it is idle
}

func (m *member) Key() string         { return m.name }
func (m *member) Retire(leaving bool) { m.retired.Store(leaving) }

func (m *member) Close() bool { return true }
func (m *member) Idle(int64) bool {
	idle := m.busy.Load() == 0
	if m.looked != nil {
		m.looked()
	}
	return idle
}

func newRegistry(budget *Budget) (r *Registry[member, *member], left *[]string) {
	left = new([]string)
	r = NewRegistry(budget, func(name string) *member { return &member{name: name} },
		func(m *member) { *left = append(*left, m.name) }, func(now int64) { r.Evict(now) })
	return r, left
}

func names(r *Registry[member, *member]) []string {
	var all []string
	for name := range r.All() {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func TestRegistryScripts(t *testing.T) {
	type world struct {
		*Registry[member, *member]
		budget *Budget
		left   *[]string
		gone   map[string]*member
	}
	obtain := func(name string) func(*world) {
		return func(w *world) {
			if m, ok := w.Obtain(name, 0); ok {
				w.gone[name] = m
			}
		}
	}
	use := func(name string) func(*world) {
		return func(w *world) { m, _ := w.Obtain(name, 0); m.busy.Add(1); w.gone[name] = m }
	}
	leave := func(name string) func(*world) { return func(w *world) { w.gone[name].busy.Store(0) } }
	pin := func(name string) func(*world) { return func(w *world) { w.Pin(name) } }
	reserve := func(name string) func(*world) { return func(w *world) { w.Reserve(name) } }
	keep := func(kept ...string) func(*world) {
		return func(w *world) { w.Unpin(func(name string) bool { return slices.Contains(kept, name) }) }
	}
	restore := func(name string) func(*world) { return func(w *world) { w.Restore(name, w.gone[name]) } }
	evict := func(w *world) { w.Evict(0) }
	for _, script := range []struct {
		name  string
		cap   int
		steps []struct {
			do   func(*world)
			want string // names, places used, overflows, members that left
		}
	}{
		{"at a cap, idle members are evicted", 2, []struct {
			do   func(*world)
			want string
		}{
			{use("a"), "[a] 1 0 []"},
			{use("b"), "[a b] 2 0 []"},
			{obtain("c"), "[a b] 2 1 []"}, // rejected
			{obtain("a"), "[a b] 2 1 []"}, // a name that is present is not rejected
			{leave("a"), "[a b] 2 1 []"},
			{obtain("c"), "[b c] 2 1 [a]"},
			{evict, "[b] 1 1 [a c]"},
			{obtain("a"), "[a b] 2 1 [a c]"},
		}},
		{"pinned members don't count towards the cap, and stay", 1, []struct {
			do   func(*world)
			want string
		}{
			{pin("p"), "[p] 0 0 []"},
			{pin("p"), "[p] 0 0 []"},
			{use("a"), "[a p] 1 0 []"},
			{obtain("b"), "[a p] 1 1 []"},
			{pin("a"), "[a p] 0 1 []"}, // gives its place back
			{use("b"), "[a b p] 1 1 []"},
			{evict, "[a b p] 1 1 []"},
			{keep("a"), "[a b p] 2 1 []"}, // beyond the cap
			{obtain("c"), "[a b] 1 2 [p]"},
			{keep(), "[a b] 2 2 [p]"},
			{keep(), "[a b] 2 2 [p]"},
			{evict, "[a b] 2 2 [p]"}, // in use
			{leave("a"), "[a b] 2 2 [p]"},
			{leave("b"), "[a b] 2 2 [p]"},
			{evict, "[] 0 2 [p a b]"},
		}},
		{"a reserved name doesn't count towards the cap", 1, []struct {
			do   func(*world)
			want string
		}{
			{use("a"), "[a] 1 0 []"},
			{reserve("p"), "[a] 1 0 []"},
			{obtain("b"), "[a] 1 1 []"},
			{obtain("p"), "[a p] 1 1 []"},
			{evict, "[a p] 1 1 []"},
			{reserve("a"), "[a p] 0 1 []"}, // gives its place back
			{obtain("b"), "[a b p] 1 1 []"},
			{reserve("q"), "[a b p] 1 1 []"},
			{keep("a"), "[a b p] 2 1 []"}, // q was never obtained
			{leave("a"), "[a b p] 2 1 []"},
			{evict, "[a] 0 1 [b p]"},
			{reserve("p"), "[a] 0 1 [b p]"},
			{restore("p"), "[a p] 0 1 [b p]"},
			{keep(), "[a p] 2 1 [b p]"},
		}},
		{"an evicted member is restored", 2, []struct {
			do   func(*world)
			want string
		}{
			{obtain("a"), "[a] 1 0 []"},
			{evict, "[] 0 0 [a]"},
			{restore("a"), "[a] 1 0 [a]"},
			{restore("a"), "[a] 1 0 [a]"},
			{use("b"), "[a b] 2 0 [a]"},
			{evict, "[b] 1 0 [a a]"},
			{use("c"), "[b c] 2 0 [a a]"},
			{restore("a"), "[a b c] 3 0 [a a]"}, // beyond the cap rather than lost
			{func(w *world) { w.Clear() }, "[] 0 0 [a a a b c]"},
			{restore("b"), "[b] 1 0 [a a a b c]"},
		}},
		{"clear removes pinned members too", 1, []struct {
			do   func(*world)
			want string
		}{
			{pin("p"), "[p] 0 0 []"},
			{use("a"), "[a p] 1 0 []"},
			{func(w *world) { w.Clear() }, "[] 0 0 [a p]"},
			{pin("p"), "[p] 0 0 [a p]"},
			{keep(), "[p] 1 0 [a p]"},
			{pin("p"), "[p] 0 0 [a p]"},
			{func(w *world) { w.Clear() }, "[] 0 0 [a p p]"},
			{obtain("p"), "[p] 1 0 [a p p]"}, // an ordinary one
			{evict, "[] 0 0 [a p p p]"},
		}},
		{"a budget without places", 0, []struct {
			do   func(*world)
			want string
		}{
			{obtain("a"), "[] 0 1 []"},
			{pin("a"), "[a] 0 1 []"},
			{obtain("a"), "[a] 0 1 []"},
		}},
	} {
		t.Run(script.name, func(t *testing.T) {
			w := &world{budget: newBudget(script.cap), gone: make(map[string]*member)}
			w.Registry, w.left = newRegistry(w.budget)
			require.Equal(t, script.cap, w.budget.Cap())
			for i, s := range script.steps {
				before := len(*w.left)
				s.do(w)
				slices.Sort((*w.left)[before:])
				got := fmt.Sprint(names(w.Registry), w.budget.Used(), w.budget.Overflows(), *w.left)
				if got == fmt.Sprint([]string(nil), w.budget.Used(), w.budget.Overflows(), *w.left) {
					got = fmt.Sprint([]string{}, w.budget.Used(), w.budget.Overflows(), *w.left)
				}
				require.Equal(t, s.want, got, "step %d", i)
			}
		})
	}
}

// A cap holds while many goroutines ask for new names, and every place taken has a member.
func TestRegistryCapUnderACrowd(t *testing.T) { // known bug 105
	r := random(t)
	budget := newBudget(50)
	first, _ := newRegistry(budget)
	second, _ := newRegistry(budget) // shares the cap
	seed := r.Uint64()
	crowd(8, func(g int) {
		r := rand.New(rand.NewPCG(seed, uint64(g)))
		for range rounds(20_000) {
			registry := first
			if r.IntN(2) == 0 {
				registry = second
			}
			name := fmt.Sprint(r.IntN(200))
			switch r.IntN(100) {
			case 0:
				registry.Evict(0)
			case 1:
				registry.Clear()
			default:
				if m, ok := registry.Obtain(name, 0); ok {
					m.busy.Add(r.Int64N(3) - 1)
				}
			}
			if len(names(first)) > 60 && r.IntN(20) == 0 {
				t.Errorf("%d members", len(names(first)))
				return
			}
		}
	})
	require.LessOrEqual(t, len(names(first))+len(names(second)), 50)
	require.Equal(t, budget.Used(), len(names(first))+len(names(second)))
	require.Positive(t, budget.Overflows())
	first.Clear()
	second.Clear()
	require.Zero(t, budget.Used())
}

// Registry relies on this order: whenever a call uses a member, either the registry sees the call,
// or the call sees the mark.
func TestRegistryMarksBeforeItLooks(t *testing.T) {
	for look := 1; look <= 2; look++ {
		registry, _ := newRegistry(newBudget(1))
		m, _ := registry.Obtain("a", 0)
		looks, marked := 0, false
		m.looked = func() {
			if looks++; looks == look { // a call starts right after
				m.busy.Add(1)
				marked = m.retired.Load()
			}
		}
		registry.Evict(0)
		if _, there := registry.Find("a"); !there {
			require.True(t, marked, "evicted after look %d, unnoticed by the call", look)
			registry.Restore("a", m)
		}
		require.False(t, m.retired.Load())
		require.Equal(t, []string{"a"}, names(registry))
	}
}

// A budget never has more than its cap of places taken, not even for a moment.
func TestBudgetUnderACrowd(t *testing.T) {
	b := newBudget(1)
	var taken, over, got atomic.Int64
	crowd(4, func(int) {
		for range rounds(100_000) {
			if !b.take() {
				continue
			}
			got.Add(1)
			if taken.Add(1) > 1 {
				over.Add(1)
			}
			taken.Add(-1)
			b.used.Add(-1)
		}
	})
	require.Zero(t, over.Load())
	require.Positive(t, got.Load())
	require.Zero(t, b.Used())
}

// A name may be a part of a request; only the name is kept.
func TestRegistryKeepsACopyOfTheName(t *testing.T) {
	request := "GET /orders HTTP/1.1"
	registry, _ := newRegistry(newBudget(1))
	m, _ := registry.Obtain(request[:3], 0)
	for name := range registry.All() {
		require.Equal(t, "GET", name)
		require.NotSame(t, unsafe.StringData(request), unsafe.StringData(name))
	}
	require.NotSame(t, unsafe.StringData(request), unsafe.StringData(m.name))
}

// New names don't wait for a search: the lock is held for one member at a time.
func TestRegistryIsOpenDuringASearch(t *testing.T) {
	registry, _ := newRegistry(newBudget(3))
	m, _ := registry.Obtain("a", 0)
	m.looked = func() {
		if !m.retired.Load() {
			_, ok := registry.Obtain("b", 0)
			require.True(t, ok)
		}
	}
	require.Positive(t, registry.Evict(0))
	_, there := registry.Find("a")
	require.False(t, there)
}
