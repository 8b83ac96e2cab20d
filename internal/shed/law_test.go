package shed

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/chance"
)

func TestMain(m *testing.M) { books.Main(m) }

// played returns a law that has seen calls come at these rates per second for five seconds, each of
// one unit that takes 100 ms.
func played(rates ...int64) *law {
	l, t := new(law), totals{}
	for i := range int64(51) {
		l.look(i*period, t)
		for level, rate := range rates {
			t.calls[level] += rate / 10
			t.units[level] += rate / 10
			t.done += rate / 10
			t.time += rate / 10 * int64(100*time.Millisecond)
		}
	}
	return l
}

// The limit is 100: it completes 1000 units per second.
func TestReserves(t *testing.T) {
	const unbounded = math.MaxInt64
	for _, tt := range []struct {
		rates []int64
		most  int64
		want  [levels]int64
		why   string
	}{
		{nil, unbounded, [levels]int64{}, "nobody has come"},
		{[]int64{3000}, unbounded, [levels]int64{0, 25, 50, 75}, "those above come for more than there is"},
		{[]int64{0, 0, 0, 3000}, unbounded, [levels]int64{}, "one level alone"},
		{[]int64{0, 3000, 0, 0}, unbounded, [levels]int64{0, 0, 50, 75}, "nobody is above the second"},
		{[]int64{0, 0, 3000}, 3, [levels]int64{0, 0, 0, 3}, "a bound for all levels"},
		{[]int64{200, 500, 1000, 1300}, unbounded, [levels]int64{0, 2, 12, 75}, "ln 100 / ln 5, ln 100 / ln (1 / 0.7), a bound"},
		{[]int64{0, 20}, unbounded, [levels]int64{0, 0, 1, 1}, "the least that counts"},
	} {
		assert.Equal(t, tt.want, played(tt.rates...).reserves(100, tt.most), tt.why)
	}
	l := played(3000)
	l.each = 0
	assert.Zero(t, l.reserves(100, unbounded), "nothing has completed")
}

// A chain of births and deaths whose births are ratio times as frequent is beyond tail(ratio) for at
// most a hundredth of the time, and beyond one less for more.
func TestTailIsThatOfAChain(t *testing.T) {
	for _, ratio := range []float64{0.011, 0.1, 0.2, 0.5, 0.7, 0.9, 0.99} {
		n := tail(ratio)
		assert.LessOrEqual(t, math.Pow(ratio, n+1), lost, "%v", ratio)
		assert.GreaterOrEqual(t, math.Pow(ratio, n), lost*(1-1e-9), "%v", ratio)
	}
	assert.Zero(t, tail(0))
	assert.Zero(t, tail(0.0099))
}

// Whatever has happened, the reserves are between 0 and their bounds, and never fall downwards.
func TestReservesGrowDownwards(t *testing.T) {
	r := chance.Source(t)
	for range 10_000 {
		l, now, sum := new(law), int64(0), totals{}
		for range 1 + r.IntN(20) {
			l.look(now, sum)
			now += r.Int64N(int64(time.Hour)) >> r.IntN(40)
			for i := range levels {
				n := r.Int64N(1000) >> r.IntN(20)
				sum.calls[i] += n
				sum.units[i] += n * (1 + r.Int64N(5))
			}
			done := r.Int64N(1000) >> r.IntN(20)
			sum.done += done
			sum.time += done * r.Int64N(int64(time.Second)) >> r.IntN(40)
		}
		limit, most := r.Int64N(1<<r.IntN(50)+1), r.Int64N(1000)
		got := l.reserves(limit, most)
		assert.True(t, slices.IsSorted(got[:]), "%v", got)
		for i, x := range got {
			assert.True(t, x >= 0 && x <= most && float64(x) <= share*float64(i)*float64(limit), "%v of %d", got, limit)
		}
	}
}

// The rates forget: of a second at one rate and a pause of a second, a quarter of the rate is left.
func TestRatesForget(t *testing.T) {
	l, sum := new(law), totals{}
	for i := range int64(10) {
		l.look(i*period, sum)
		sum.units[0] += 100
	}
	l.look(10*period, sum)
	l.look(20*period, sum)
	want := 1000 * (1 - math.Exp(-10.0/7)) * math.Exp(-10.0/7)
	assert.InDelta(t, want, l.units[0], 1e-9)
	assert.InDelta(t, 1-math.Exp(-20.0/7), l.weight, 1e-9)
}
