package node

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The members equal the entries of a map, for one member and for many.
func TestMembersAreTheirTwin(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 2))
		var m members[member, *member]
		twin := make(map[string]*member)
		names := []int{1, 2, 4, 40}[random.IntN(4)]
		for i := range 200 {
			name := fmt.Sprint(random.IntN(names))
			if i == 150 {
				names = min(names, 3) // then the table shrinks
				for name := range twin {
					m.delete(name)
				}
				clear(twin)
			}
			if _, there := twin[name]; there {
				m.delete(name)
				delete(twin, name)
			} else {
				twin[name] = &member{name: name}
				m.store(twin[name])
			}
			all := make(map[string]*member)
			m.each(func(name string, v *member) bool {
				require.NotContains(t, all, name, "seed %d", seed)
				all[name] = v
				return true
			})
			require.Equal(t, twin, all, "seed %d", seed)
			for n := range names {
				v, ok := m.load(fmt.Sprint(n))
				want, there := twin[fmt.Sprint(n)]
				require.Equal(t, there, ok, "seed %d", seed)
				require.Same(t, want, v, "seed %d", seed)
			}
			m.each(func(string, *member) bool { return false })
		}
	}
}
