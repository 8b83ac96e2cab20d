package hotspot

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/argument"
)

// The index behaves as a map, even if many hashes collide.
func TestIndexIsAMap(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		var x index
		twin := make(map[argument.Value]*cell)
		hash := func(v int) uint64 { return uint64(v%7) << 32 * (seed % 3) }
		if seed%3 == 0 {
			hash = func(v int) uint64 { return argument.Of(v).Hash() }
		}
		for range 2000 {
			n := r.IntN(60)
			v := argument.Of(n)
			require.Same(t, twin[v], x.find(&v, hash(n)), "seed %d", seed)
			switch c := twin[v]; {
			case c == nil && r.IntN(2) == 0:
				c = &cell{value: v, hash: hash(n)}
				x.add(c)
				twin[v] = c
			case c != nil && r.IntN(2) == 0:
				x.remove(c)
				delete(twin, v)
			}
			require.Equal(t, len(twin), x.n)
		}
		var all []*cell
		x.all(func(c *cell) { all = append(all, c) })
		require.ElementsMatch(t, slices.Collect(maps.Values(twin)), all)
		require.LessOrEqual(t, len(x.slots), 128)
	}
}
