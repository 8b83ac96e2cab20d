package sketch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

// A histogram agrees with the sorted list of its values.
func TestHistogram(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, most := range []int64{10, 2000, 1e6, 1e12} {
		var h Histogram
		var all []int64
		for range 5000 {
			v := random.Int64N(most)
			all = append(all, v)
			h.Add(v, 1)
		}
		slices.Sort(all)
		assert.EqualValues(t, 5000, h.Count())
		assert.Equal(t, all[4999], h.Max())
		for _, q := range []float64{0, 0.5, 0.99, 0.999} {
			want := all[int(q*5000)]
			got := h.Quantile(q)
			if most <= 2000 {
				require.Equal(t, want, got)
			}
			require.InEpsilon(t, want+1, got+1, 0.001)
		}
		limit := all[4900]
		want := int64(0)
		for _, v := range all {
			want += max(0, v-limit)
		}
		require.InEpsilon(t, want+1, h.Beyond(limit)+1, 0.01)
		l := h.Limit(want)
		require.LessOrEqual(t, h.Beyond(l), want)
		if l > 1 {
			require.Greater(t, h.Beyond(l-1), want)
		}
	}
	var none Histogram
	assert.Zero(t, none.Quantile(0.5))
	assert.EqualValues(t, 1, none.Limit(0))
	none.Add(7, 0)
	assert.Zero(t, none.Count())
}

// Counts are exact while there is room; beyond that, the frequent texts are found, and the bounds
// hold.
func TestFrequent(t *testing.T) {
	f := NewFrequent(3)
	for _, s := range []string{"a", "b", "a", "c", "a", "b"} {
		f.Add(s, 1)
	}
	assert.Equal(t, []Text{{"a", 3, 0}, {"b", 2, 0}}, f.Top(2))
	random := rand.New(rand.NewPCG(1, 2))
	f = NewFrequent(100)
	counts := make(map[string]int64)
	for range 100_000 {
		s := fmt.Sprint("rare ", random.IntN(1e6))
		if n := random.IntN(10); n < 3 {
			s = fmt.Sprint("often ", n)
		}
		counts[s]++
		f.Add(s, 1)
	}
	top := f.Top(3)
	require.Len(t, top, 3)
	for _, c := range top {
		assert.Contains(t, c.Text, "often")
	}
	for _, c := range f.Top(1000) {
		require.GreaterOrEqual(t, c.Count, counts[c.Text])
		require.LessOrEqual(t, c.Count-c.Extra, counts[c.Text])
	}
	assert.Len(t, f.Top(1000), 100)
	assert.Len(t, f.index, 100)
}

func TestDistinct(t *testing.T) {
	var d Distinct
	assert.Zero(t, d.Count())
	for i := range 1_000_000 {
		for range 1 + i%2 {
			d.Add(fmt.Sprint("10.0.", i))
		}
		switch i + 1 {
		case 1, 100, maxExact:
			require.EqualValues(t, i+1, d.Count())
			require.True(t, d.Exact())
		case maxExact + 1, 10_000, 40_000, 100_000, 1_000_000:
			require.InEpsilon(t, i+1, d.Count(), 0.03)
			require.False(t, d.Exact())
		}
	}
}
