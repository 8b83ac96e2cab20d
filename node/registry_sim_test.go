//go:build sim

package node

import (
	"testing"

	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/shared"
)

// seat is a member of a registry that callers use for a while.
type seat struct {
	name    string
	users   shared.Int64
	retired shared.Bool
}

func (m *seat) Key() string         { return m.name }
func (m *seat) Retire(leaving bool) { m.retired.Store(leaving) }
func (m *seat) Close() bool         { return true }
func (m *seat) Idle(int64) bool     { return m.users.Load() == 0 }

// Callers use members while others evict, pin and unpin. Once a caller that uses a member has
// checked the mark, the member stays registered, and no caller finds a different one under its
// name. In the end the number of places taken equals the number of members.
func TestSimRegistry(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		budget := newBudget(2)
		r := NewRegistry(budget, func(name string) *seat { return &seat{name: name} }, nil, nil)
		names := []string{"a", "b"}[:1+s.Rand.IntN(2)]
		if s.Rand.IntN(2) == 0 {
			r.Obtain("a", 0)
		}
		held := make(map[string]*seat)
		for range 2 + s.Rand.IntN(2) {
			name := names[s.Rand.IntN(len(names))]
			switch s.Rand.IntN(5) {
			default:
				s.Named("user", func() {
					v, ok := r.Obtain(name, 0)
					if !ok {
						return // a restored member may be beyond the cap
					}
					if other := held[name]; other != nil && other != v {
						s.Failf("%s has two members", name)
					}
					held[name] = v
					v.users.Add(1)
					for v.retired.Load() {
						r.Restore(name, v)
					}
					for range 2 {
						if found, ok := r.Find(name); !ok || found != v {
							s.Failf("a member in use is not registered")
						}
					}
					v.users.Add(-1)
				})
			case 0:
				s.Named("evicter", func() { r.Evict(0); r.Evict(0) })
			case 1:
				s.Named("rules", func() {
					r.Pin(name)
					r.Unpin(func(string) bool { return false })
				})
			}
		}
		s.Named("evicter", func() { r.Evict(0) })
		s.Check(func() {
			n := 0
			for name, v := range r.All() {
				n++
				if v.retired.Load() {
					s.Failf("%s is registered, and marked as leaving", name)
				}
			}
			if budget.Used() != n {
				s.Failf("%d places taken, %d members", budget.Used(), n)
			}
			r.Evict(0)
			if budget.Used() != 0 {
				s.Failf("%d places taken when all members are gone", budget.Used())
			}
		})
	})
}
