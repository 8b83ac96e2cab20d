package node

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The members are those of a map, whether they are one or many.
func TestMembersAreTheirTwin(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 2))
		var m members[int]
		twin := make(map[string]int)
		names := 1 + random.IntN(4)
		for i := range 200 {
			name := fmt.Sprint(random.IntN(names))
			if _, there := twin[name]; there {
				m.delete(name)
				delete(twin, name)
			} else {
				m.store(name, i)
				twin[name] = i
			}
			all := make(map[string]int)
			m.each(func(name string, v int) bool { all[name] = v; return true })
			require.Equal(t, twin, all, "seed %d", seed)
			for n := range names {
				v, ok := m.load(fmt.Sprint(n))
				want, there := twin[fmt.Sprint(n)]
				require.Equal(t, there, ok, "seed %d", seed)
				require.Equal(t, want, v, "seed %d", seed)
			}
			m.each(func(string, int) bool { return false })
		}
	}
}
