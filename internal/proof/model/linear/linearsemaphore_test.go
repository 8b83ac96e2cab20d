package linear

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
)

// semaphoreOp acquires n permits if at most limit are in use then, releases -n, or with n = 0 reads
// the number in use.
type semaphoreOp struct{ n, limit int64 }

var semaphoreModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, in, out any) (bool, any) {
		used, o := state.(int64), in.(semaphoreOp)
		switch {
		case o.n == 0:
			return out.(int64) == used, used
		case o.n < 0:
			return true, used + o.n
		case used+o.n > o.limit:
			return out.(int64) == 0, used
		}
		return out.(int64) == o.n, used + o.n
	},
}

type semaphoreLike interface {
	TryAcquire(lane uint32, n, limit int64) bool
	Release(lane uint32, n int64)
	InUse() int64
}

func (o semaphoreOp) on(g semaphoreLike, client int) int64 {
	lane := uint32(client)
	switch {
	case o.n == 0:
		return g.InUse()
	case o.n < 0:
		g.Release(lane, -o.n)
	case g.TryAcquire(lane, o.n, o.limit):
		return o.n
	}
	return 0
}

// known bug 2
func TestSemaphoreIsLinearizable(t *testing.T) {
	histories := figure.Size(200, 2000, 25_000, 1_000_000)
	overlaps := 0
	for i := range histories {
		var g meter.Semaphore
		var left atomic.Int64
		r := together(4, *chance.Seed, uint64(i), func(r *recorder, client int, rnd *rand.Rand) {
			held := int64(0)
			for range 6 {
				o := semaphoreOp{n: 1 + rnd.Int64N(3), limit: 3}
				switch p := rnd.IntN(4); {
				case p == 0:
					o.n = 0
				case p < 3 && held > 0:
					o.n = -1 - rnd.Int64N(held)
				}
				r.do(client, rnd, o, func() any {
					got := o.on(&g, client)
					if o.n > 0 {
						held += got
					} else {
						held += o.n
					}
					return got
				})
			}
			left.Add(held)
		})
		overlaps += r.overlapping()
		require.True(t, porcupine.CheckOperations(semaphoreModel, r.history()), "-seed=%d, history %d: %+v", *chance.Seed, i, r.history())
		require.Equal(t, left.Load(), g.InUse())
	}
	t.Logf("%d of %d operations overlapped another's", overlaps, 24*histories)
	require.Positive(t, overlaps)
	figure.Report(t, figure.Figure{Name: "semaphore: histories without a serial order", N: int64(histories), Seed: *chance.Seed})
}

type looseSemaphore struct {
	*meter.Semaphore
	between func()
}

func (g looseSemaphore) TryAcquire(lane uint32, n, limit int64) bool {
	if !g.Fits(n, limit) {
		return false
	}
	g.between()
	g.Acquire(lane, n)
	return true
}

func TestBrokenSemaphoreIsFound(t *testing.T) {
	var looked sync.WaitGroup
	looked.Add(2)
	g := looseSemaphore{new(meter.Semaphore), func() { looked.Done(); looked.Wait() }}
	r := together(2, 0, 0, func(r *recorder, client int, rnd *rand.Rand) {
		o := semaphoreOp{2, 3}
		r.do(client, rnd, o, func() any { return o.on(g, client) })
	})
	assert.False(t, porcupine.CheckOperations(semaphoreModel, r.history()), "%+v", r.history())
}
