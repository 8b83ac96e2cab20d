package sharing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/stat"
)

// costing is two members that share a window of a minute, on a store that can be away.
type costing struct {
	*testing.T
	clock *clocks.Manual
	store *fickle
	m     [2]*sharing.Member
	w     [2]*sharing.Window
}

func newCosting(t *testing.T, threshold float64, on cluster.OnFailure) *costing {
	c := &costing{T: t, clock: clocks.NewManual(time.Unix(1_800_000_000, 0))}
	c.clock.SetSleep(clocks.SleepAdvance)
	c.store = &fickle{cluster.NewMemory(c.clock), false}
	for i := range c.m {
		c.m[i] = join(t, c.store, c.clock)
		w, err := c.m[i].Window("tokens", sharing.WindowConfig{
			Shape: stat.Shape{Interval: time.Minute, Buckets: 10, Strict: true}, Threshold: threshold,
			Rule: cluster.Rule{Scope: cluster.Global, OnFailure: on},
		})
		require.NoError(t, err)
		c.w[i] = w
	}
	return c
}

// takes returns the token of a call of n units at a member.
func (c *costing) takes(i int, n int64) (token int64, ok bool) {
	c.Helper()
	if token, ok = c.w[i].TryAdd(0, c.clock.Now(), n); ok {
		return token, true
	}
	need := fetch(c.T, c.m[i], c.w[i], n)
	return need.Token, need.Got
}

// busy lets time pass, with a call of one unit each 1.5 s: each needs a lease of its own.
func (c *costing) busy(d time.Duration) {
	for end := c.clock.Now() + int64(d); c.clock.Now() < end; {
		c.takes(0, 1)
		c.clock.Advance(1500 * time.Millisecond)
	}
}

// Units that a call gives back go to the bucket that counted them, however many leases have ended
// since.
// known bug 268
func TestLateRefund(t *testing.T) {
	c := newCosting(t, 1000, cluster.Closed)
	token, ok := c.takes(0, 900)
	require.True(t, ok)
	c.busy(48 * time.Second)
	c.w[0].Cancel(token, 800)
	c.clock.Advance(2 * time.Second)
	_, ok = c.takes(1, 850)
	assert.True(t, ok, "100 are used by the call, 32 by others")
	_, ok = c.takes(1, 100)
	assert.False(t, ok)

	c.clock.Advance(2 * time.Minute) // its bucket no longer counts
	c.w[0].Cancel(token, 100)
	c.clock.Advance(2 * time.Second)
	_, ok = c.takes(1, 1000)
	require.True(t, ok)
	_, ok = c.takes(0, 1)
	assert.False(t, ok, "nothing comes back")
}

// A call that used more is charged whatever is left; then no member admits calls until there is room.
func TestCharge(t *testing.T) {
	c := newCosting(t, 1000, cluster.Closed)
	_, ok := c.takes(0, 600)
	require.True(t, ok)
	c.w[0].Charge(c.clock.Now(), 900)
	c.clock.Advance(30 * time.Second)
	for i := range c.w {
		_, ok = c.takes(i, 1)
		assert.False(t, ok)
	}
	c.clock.Advance(37 * time.Second) // the bucket of both has gone
	_, ok = c.takes(1, 1000)
	assert.True(t, ok)
}

// A debit takes units of the lease first: members spend no more than the limit together.
func TestChargeTakesFromTheLease(t *testing.T) {
	c := newCosting(t, 100_000, cluster.Closed)
	for range 200 {
		_, ok := c.takes(0, 50)
		require.True(t, ok)
		c.clock.Advance(5 * time.Millisecond)
	}
	leased := c.w[0].Stats().Leased
	require.Positive(t, leased)
	c.w[0].Charge(c.clock.Now(), leased+10_000)
	c.clock.Advance(40 * time.Second) // units leased since go back
	_, ok := c.takes(1, 100_000-10_000-leased-10_000)
	assert.True(t, ok)
	_, ok = c.takes(1, 1)
	assert.False(t, ok)
}

// While the store is away, debits and refunds count in the member's own share, and debits at the
// store once it is back.
func TestChargeWithoutTheStore(t *testing.T) {
	c := newCosting(t, 1000, cluster.Local)
	c.clock.Advance(2 * time.Second) // both members are known
	token, ok := c.takes(0, 100)
	require.True(t, ok)
	c.store.away = true
	for range 10 {
		c.takes(1, 1000)
	}
	admitted := func(i int, most int64) (n int64) {
		for n < most {
			if _, ok := c.takes(i, 10); !ok {
				break
			}
			n += 10
		}
		return n
	}
	c.takes(0, 1000)
	c.w[0].Charge(c.clock.Now(), 200)
	assert.EqualValues(t, 200, admitted(0, 1000), "half of the limit, less 300")
	c.w[0].Cancel(token, 50)
	assert.EqualValues(t, 50, admitted(0, 1000))
	c.store.away = false
	c.clock.Advance(10 * time.Second)
	for range 5 {
		c.takes(0, 1)
		c.clock.Advance(100 * time.Millisecond)
	}
	assert.LessOrEqual(t, admitted(1, 2000), int64(500), "500 are used by the other")
}

// Members share limits of up to 10^12 units, exactly: calls of more than a lease holds, too.
func TestCallsLargerThanALease(t *testing.T) {
	const large = 1 << 38
	c := newCosting(t, 4*large, cluster.Closed)
	for i := range 3 {
		_, ok := c.takes(i%2, large)
		require.True(t, ok)
	}
	_, ok := c.takes(1, large+1)
	assert.False(t, ok)
	token, ok := c.takes(1, large)
	require.True(t, ok)
	_, ok = c.takes(0, 1)
	assert.False(t, ok)
	c.w[1].Cancel(token, large-1)
	c.clock.Advance(2 * time.Second)
	_, ok = c.takes(0, large-1)
	assert.True(t, ok)
	_, ok = c.takes(0, 1)
	assert.False(t, ok)

	c.clock.Advance(2 * time.Minute) // many smaller calls than fit into a lease together
	sum, calls := int64(0), 0
	for range 10_000 {
		if _, ok := c.takes(calls%2, 1<<28); ok {
			sum += 1 << 28
		}
		calls++
		c.clock.Advance(time.Millisecond)
	}
	assert.LessOrEqual(t, sum, int64(4*large))
	assert.Greater(t, sum, int64(4*large)/10*9)
}

// The turns that a call owes come after all others, and nobody waits for them.
func TestTurnsThatCallsOwe(t *testing.T) {
	for _, rate := range []float64{1000, 1e7, 1e12} {
		clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
		clock.SetSleep(clocks.SleepAdvance)
		store := cluster.NewMemory(clock)
		var m [2]*sharing.Member
		var g [2]*sharing.Throttle
		for i := range m {
			m[i] = join(t, store, clock)
			var err error
			g[i], err = m[i].Throttle("bytes", sharing.ThrottleConfig{Interval: time.Second, Threshold: rate, Costs: true, Rule: cluster.Rule{Scope: cluster.Global}})
			require.NoError(t, err)
		}
		wait := func(i int, n int64) time.Duration {
			const maxWait = 2 * time.Hour
			if a, _ := g[i].Ask(clock.Now(), n, maxWait); a == sharing.Fits {
				wait, ok := g[i].TryTake(clock.Now(), n, maxWait)
				require.True(t, ok)
				return wait
			}
			need := []sharing.Need{{Limit: g[i], Units: n, MaxWait: maxWait}}
			require.NoError(t, m[i].Fetch(t.Context(), g[i].Timeout(), need))
			require.True(t, need[0].Got)
			return need[0].Wait
		}
		second := int64(rate)
		assert.InDelta(t, 0, wait(0, second).Seconds(), 0.01, "the first runs at once")
		g[0].Charge(clock.Now(), 5*second)
		assert.InDelta(t, 7, wait(1, 2*second).Seconds(), 0.05, "5 s of debts, and its own")
		g[1].Charge(clock.Now(), 3600*second)
		assert.InDelta(t, 3608, wait(0, second).Seconds(), 4, "debts may be as late as they are")
	}
}

// Permits that a running call needs in addition are counted, whatever the limit.
func TestPermitsThatCallsOwe(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	clock.SetSleep(clocks.SleepAdvance)
	store := cluster.NewMemory(clock)
	a, b := join(t, store, clock), join(t, store, clock)
	s, other := permits(t, a, 1e12, cluster.Closed), permits(t, b, 1e12, cluster.Closed)
	call, another := running{m: a, s: s}, running{m: b, s: other}
	require.True(t, call.call(t, 6e11))
	require.True(t, s.Charge(clock.Now(), 6e11))
	clock.Advance(100 * time.Millisecond)
	assert.False(t, another.call(t, 1))
	s.Release(0, 12e11)
	clock.Advance(time.Second)
	assert.True(t, another.call(t, 1e12))
}
