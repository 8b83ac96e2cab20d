package hotspot

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/lending"
	"github.com/penstock-go/penstock/internal/proof/race"
)

var (
	ann = argument.Of("ann")
	bob = argument.Of("bob")
)

const lendStart = int64(1000) << heatTick

// lender returns a rule with a few values, of whom only ann lends.
func lender(t *testing.T, threshold float64, window Window) (*controller, *shard) {
	t.Helper()
	r, err := Rule{Resource: "orders", Param: "user", Threshold: threshold, Window: window, MaxValues: 2}.Normalized()
	require.NoError(t, err)
	c := &controller{record: new(engine.Record), rule: r, quota: r.quota(threshold)}
	c.refusal = engine.NewCounted(core.BlockError{Kind: core.KindHotspot, Resource: "orders"}, nil, nil, nil)
	c.strict, c.refills = r.counts()
	c.values = newValues(r.MaxValues, c)
	s := &c.values.shards[0]
	held, block := c.grant(lendStart, ann, 1, nil)
	if block == nil {
		held.Holder.GiveBack(&held, 0)
	}
	heatUp(c, s)
	return c, s
}

// heatUp makes ann's value lend.
func heatUp(c *controller, s *shard) {
	s.lock()
	s.heatUp(s.cells.find(&ann, ann.Hash()), c, &c.quota, lendStart)
	s.mu.Unlock()
}

// passes takes a unit on a lane, and reports whether it was granted and whether the lock was
// needed.
func (c *controller) passes(lane uint32, now int64, v argument.Value) (ok, locked bool) {
	h := c.values.shards[0].hot.Load()
	inv := new(engine.Invocation)
	if h != nil && h.value == v {
		if decided, block := h.take(inv, lane, now, 1); decided {
			return block == nil, false
		}
	}
	return c.takePlain(inv, lane, now, 1, &v) == nil, true
}

// figures returns the counts of a value.
func (c *controller) figures(v argument.Value) (passed, refused, used int64) {
	c.values.each(lendStart, func(x *cell) {
		if x.value == v {
			passed, refused, used = x.passed, x.refused, x.spent()
		}
	})
	return passed, refused, used
}

// A value gets lanes once callers have waited for each other, not before, and they allocate the
// documented amount.
func TestValueLendsWhereContended(t *testing.T) {
	c, s := lender(t, 1e6, Strict)
	x := s.cells.find(&ann, ann.Hash())
	if !lending.Always {
		s.cool(nil)
		for range lending.After - 1 {
			require.False(t, s.contend(x, lendStart))
		}
		require.False(t, s.contend(x, lendStart+2<<30), "each second counts its own")
		for range lending.After - 2 {
			require.False(t, s.contend(x, lendStart+2<<30))
		}
		require.True(t, s.contend(x, lendStart+2<<30))
		require.Nil(t, s.hot.Load())
		heatUp(c, s)
	}
	require.EqualValues(t, 128, unsafe.Sizeof(hotLane{}))
	require.Len(t, s.hot.Load().lanes, lending.Lanes(lending.Procs()))

	withoutLock := 0
	for range 500 {
		ok, locked := c.passes(1, lendStart, ann)
		require.True(t, ok)
		if !locked {
			withoutLock++
		}
	}
	require.Greater(t, withoutLock, 250)
	passed, refused, used := c.figures(ann)
	require.EqualValues(t, [3]int64{501, 0, 500}, [3]int64{passed, refused, used})

	if !lending.Always {
		c.values.each(lendStart+int64(59*time.Second), func(*cell) {})
		require.NotNil(t, s.hot.Load())
		c.values.each(lendStart+int64(61*time.Second), func(*cell) {})
		require.Nil(t, s.hot.Load(), "after an idle minute they are given back")
	}
}

// Units held by lanes never refuse a call, and a shown refusal holds exactly as long as there can
// be no room: while the bucket is full, or until the window begins another one.
// known bug 164
func TestHotValueIsExact(t *testing.T) {
	tenth := int64(100 * time.Millisecond)
	t.Run("strict", func(t *testing.T) {
		hotValueIsExact(t, Strict, lendStart/tenth*tenth+tenth-1, lendStart/tenth*tenth+11*tenth)
	})
	t.Run("refill", func(t *testing.T) {
		hotValueIsExact(t, Refill, lendStart+int64(time.Second), lendStart+int64(time.Second)+1)
	})
}

func hotValueIsExact(t *testing.T, window Window, full, now int64) {
	const limit = 100
	c, s := lender(t, limit, window)
	for i := range limit {
		ok, _ := c.passes(uint32(i%3), lendStart, ann)
		require.True(t, ok, i)
	}
	for lane := range uint32(4) {
		ok, _ := c.passes(lane, lendStart, ann)
		require.False(t, ok)
		ok, locked := c.passes(lane, full, ann)
		require.False(t, ok)
		require.False(t, locked, "a refusal that is shown")
	}
	ok, _ := c.passes(0, lendStart, bob)
	require.True(t, ok, "another value of the shard")

	inv := new(engine.Invocation)
	require.Nil(t, c.takePlain(inv, 0, now, 1, &ann), "there is room again")
	for range limit - 1 {
		ok, _ = c.passes(1, now, ann)
		require.True(t, ok)
	}
	ok, _ = c.passes(2, now, ann)
	require.False(t, ok)
	inv.GiveBackFrom(0)
	ok, _ = c.passes(2, now, ann)
	require.True(t, ok, "what was given back is there for the next one")
	ok, _ = c.passes(2, now, ann)
	require.False(t, ok)
	passed, refused, used := c.figures(ann)
	require.EqualValues(t, [3]int64{1 + limit + limit + 1, 8 + 2, limit}, [3]int64{passed, refused, used})
	require.NotNil(t, s.hot.Load())
}

// A value whose limit is zero shows refusals too; and refused calls are counted before the word of
// a lane is full.
func TestRefusalsOfAHotValueAreCounted(t *testing.T) {
	c, s := lender(t, 0, Strict)
	ok, _ := c.passes(0, lendStart, ann)
	require.False(t, ok)
	h := s.hot.Load()
	h.lanes[0].refused.Store(refusedHalf&^(1<<63) - 1) // one unit more
	before := int64(h.lanes[0].refused.Load() >> refusedAt)
	ok, locked := c.passes(0, lendStart, ann)
	require.False(t, ok)
	require.False(t, locked)
	require.Zero(t, h.lanes[0].refused.Load(), "whoever finds it half full empties it")
	_, refused, _ := c.figures(ann)
	require.Equal(t, before+3, refused) // the very first call was refused as well
}

// Many callers take units on all lanes while some return units, others read, and the bucket is
// refilled. Each filling admits exactly the limit, and each call is counted once.
func TestHotValueUnderACrowd(t *testing.T) {
	const limit, callers = 2000, 8
	c, s := lender(t, limit, Strict)
	var admitted, refused atomic.Int64
	for round := range int64(20) {
		now := lendStart + round*int64(2*time.Second)
		s.lock()
		s.heatUp(s.cells.find(&ann, ann.Hash()), c, &c.quota, now)
		s.mu.Unlock()
		var held atomic.Int64
		var all sync.WaitGroup
		for lane := range uint32(callers) {
			all.Go(func() {
				inv := new(engine.Invocation)
				for i := range limit {
					block := c.takePlain(inv, lane, now, 1, &ann)
					switch {
					case block != nil:
						refused.Add(1)
					case i%7 == 0 && lane%2 == 0:
						admitted.Add(1)
						inv.GiveBackFrom(inv.Reservations() - 1)
					default:
						admitted.Add(1)
						held.Add(1)
					}
					if i%100 == 0 {
						c.figures(ann)
						_ = c.ask(now, bob, 1, false, nil)
					}
				}
			})
		}
		all.Wait()
		require.EqualValues(t, limit, held.Load(), "round %d", round)
	}
	passed, all, used := c.figures(ann)
	require.Equal(t, [3]int64{admitted.Load() + 1, refused.Load(), limit}, [3]int64{passed, all, used})
}

// Calls of a value that lends don't allocate.
func TestHotValueAllocatesNothing(t *testing.T) {
	for _, threshold := range []float64{0, 1e9} {
		c, _ := lender(t, threshold, Strict)
		inv := new(engine.Invocation)
		race.AllocatesNothing(t, 100, func() {
			_ = c.takePlain(inv, 1, lendStart, 1, &ann)
			inv.GiveBackFrom(0)
		})
	}
}

// A value that lends, or shows its refusal, takes the lock once a question about its limit is due.
func TestAHotValueAsksInTime(t *testing.T) {
	for _, threshold := range []float64{1e6, 0} {
		c, s := lender(t, threshold, Strict)
		c.asks, c.moves, c.mixed, c.varies = true, true, true, true
		asked := 0
		c.values.questions.background = func(func(context.Context)) bool { asked++; return false }
		p, err := c.answer(threshold)
		require.NoError(t, err)
		due := lendStart + int64(5*time.Millisecond)
		s.lock()
		x := s.cells.find(&ann, ann.Hash())
		x.plan, x.extras = p, &extras{due: due}
		s.heatUp(x, c, &p.quota, lendStart)
		s.mu.Unlock()
		require.NotNil(t, s.hot.Load())
		passes := func(now int64) bool { return c.takePlain(new(engine.Invocation), 1, now, 1, &ann) == nil }
		for _, now := range []int64{lendStart, due - 1, due} {
			s.settle(x)
			if h := s.hot.Load(); threshold > 0 {
				h.lend(1, lendStart)
			} else {
				h.show(c.refusal, lendStart)
			}
			require.Zero(t, asked)
			require.Equal(t, threshold > 0, passes(now))
		}
		require.Equal(t, 1, asked)
	}
}
