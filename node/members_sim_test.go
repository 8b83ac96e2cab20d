//go:build sim

package node

import (
	"slices"
	"testing"

	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/shared"
)

// Names are added and removed, so that the table grows, shrinks and reuses slots, while others look
// up and iterate. A permanent member is found at any moment, and yielded once; any other is found
// if it was present during the whole lookup, and never if it was absent during all of it.
func TestSimMembers(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}
	schedules.Random(t, func(s *schedules.Schedule) {
		var m members[seat, *seat]
		// In a random order, so that any of them may be the first one.
		order := s.Rand.Perm(len(names))
		there := make(map[string]*seat)
		changed := make(map[string]int) // begun and finished additions and removals, by name
		stay := make(map[string]bool)
		of := make(map[string]*seat)
		for _, i := range order {
			of[names[i]] = &seat{name: names[i]}
		}
		many := s.Rand.IntN(len(names))
		for _, i := range order[:many] {
			m.store(of[names[i]])
			there[names[i]] = of[names[i]]
			stay[names[i]] = s.Rand.IntN(4) == 0
		}
		var mu shared.Mutex
		writer := func(names []string) {
			for _, name := range names {
				if stay[name] {
					continue
				}
				mu.Lock()
				changed[name]++
				if there[name] != nil {
					m.delete(name)
					there[name] = nil
				} else {
					m.store(of[name])
					there[name] = of[name]
				}
				changed[name]++
				mu.Unlock()
			}
		}
		for range 1 + s.Rand.IntN(2) {
			list := make([]string, 0, 2*len(names))
			for range 2 {
				for _, i := range s.Rand.Perm(len(names)) {
					list = append(list, names[i])
				}
			}
			list = list[:1+s.Rand.IntN(len(list))]
			s.Named("writer", func() { writer(list) })
		}
		looks := make([]string, 4)
		for i := range looks {
			looks[i] = names[s.Rand.IntN(len(names))]
		}
		s.Named("looker", func() {
			for _, name := range looks {
				before, was := changed[name], there[name]
				v, ok := m.load(name)
				if ok != (v != nil) || ok && v != of[name] {
					s.Failf("%s: found %v", name, v)
				}
				if changed[name] == before && before%2 == 0 && v != was {
					s.Failf("%s: found %v, but %v was present throughout", name, v, was)
				}
			}
		})
		s.Named("walker", func() {
			before := make(map[string]int)
			was := make(map[string]*seat)
			for _, name := range names {
				before[name], was[name] = changed[name], there[name]
			}
			var seen []string
			m.each(func(name string, v *seat) bool {
				if slices.Contains(seen, name) || v != of[name] {
					s.Failf("%s is yielded twice", name)
				}
				seen = append(seen, name)
				return true
			})
			for _, name := range names {
				if changed[name] == before[name] && before[name]%2 == 0 && slices.Contains(seen, name) != (was[name] != nil) {
					s.Failf("%s: yielded is %v, present throughout is %v", name, slices.Contains(seen, name), was[name] != nil)
				}
			}
		})
		s.Check(func() {
			for _, name := range names {
				if v, _ := m.load(name); v != there[name] {
					s.Failf("at the end %s is %v, want %v", name, v, there[name])
				}
			}
		})
	})
}
