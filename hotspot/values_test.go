package hotspot

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"log/slog"
	"reflect"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/figure"
)

// newRule returns a rule's controller on a new engine.
func newRule(t testing.TB, r Rule) *controller {
	t.Helper()
	r.Resource, r.Param = "orders", "user"
	r, err := r.Normalized()
	require.NoError(t, err)
	e, err := engine.NewEngine(engine.Config{Clock: clocks.NewManual(time.Unix(1e9, 0)), Chain: engine.NewChain(idle{}), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	c, publish := newController(tableOf(e), r, new(engine.Record), e.PinResource("orders"), nil)
	publish(0)
	return c
}

// idle is a slot that does nothing.
type idle struct{}

func (idle) Name() string               { return "idle" }
func (idle) Prepare(*engine.Invocation) {}

// The memory of a rule is bounded, regardless of the values and their number.
// known bug 90, 105
func TestMemoryIsBounded(t *testing.T) {
	n := figure.Size(30_000, 200_000, 10_000_000, 10_000_000)
	large := string(make([]byte, 1<<14))
	c := newRule(t, Rule{Threshold: 1, Interval: 10 * time.Millisecond})
	at := func(i int) int64 { return int64(i) * int64(time.Microsecond) }
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	cap := c.rule.MaxValues
	empty := heap()
	fill := func(from, to int) {
		for i := from; i < to; i++ {
			// Cut from a large text, which must not stay reachable; some are long.
			text := fmt.Sprintf("user-%d%s", i, large[:i%8*32])
			if i%32 == 0 {
				text = (text + large)[:len(text)]
			}
			_, _ = c.grant(at(i), argument.Of(text), 1, nil)
		}
	}
	fill(0, 2*cap) // enough to fill every shard
	full := heap() - empty
	fill(2*cap, n)
	grown := heap() - empty
	var f Stats
	c.report(&f, new(top))
	known := f.Values
	assert.LessOrEqual(t, known, cap)
	assert.Greater(t, known, cap*9/10)
	t.Logf("%d values: %.1f MB at the cap, %.1f MB in the end", n, full/1e6, grown/1e6)
	figure.Report(t, figure.Figure{Name: "heap of a hotspot rule after n values, share of that at the cap", Value: grown / full, AtMost: 1.05, N: int64(n)})
	runtime.KeepAlive(c)
}

// Values chosen to collide under a well-known hash are still spread over the shards.
func TestValuesSpread(t *testing.T) {
	const n = 100_000
	c := newRule(t, Rule{Threshold: 1, MaxValues: MaxMaxValues})
	require.Len(t, c.values.shards, maxShards)
	counts := make(map[*shard]int)
	for i, found := uint64(0), 0; found < n; i++ {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], i)
		h := fnv.New64a()
		_, _ = h.Write(b[:])
		if h.Sum64()%maxShards != 0 {
			continue
		}
		found++
		counts[c.values.shard(argument.Of(string(b[:])).Hash())]++
		counts[c.values.shard(argument.Of(i*maxShards).Hash())]++ // and numbers in steps
	}
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}
	figure.Report(t, figure.Figure{Name: "fullest hotspot shard under 10^5 FNV colliders, share of the mean", Value: float64(most) / (2 * n / maxShards), AtMost: 2, N: 2 * n})
}

func TestEarned(t *testing.T) {
	for _, tt := range []struct{ time, interval, units, want int64 }{
		{1500, 1000, 10, 15},
		{1999, 1000, 1, 1},
		{1 << 62, 1e7, 1e15, 1<<63 - 1},
		{1 << 62, 1, 1e15, 1<<63 - 1},
		{1 << 62, 1 << 62, 1e15, 1e15},
		{5, 10, 0, 0},
	} {
		assert.Equal(t, tt.want, earned(tt.time, tt.interval, tt.units), "%+v", tt)
	}
}

// Units that a value took from the rest count in its new cell.
// known bug 87
func TestNewCellBeginsAsTheRest(t *testing.T) {
	c := newRule(t, Rule{Threshold: 3, MaxValues: 1})
	now := c.engine.Now()
	a, x := argument.Of("a"), argument.Of("x")
	grants := func(v argument.Value) (n int) {
		for range 10 {
			if _, block := c.grant(now, v, 1, nil); block == nil {
				n++
			}
		}
		return n
	}
	assert.Equal(t, 3, grants(a))
	now += int64(990 * time.Millisecond)
	assert.Equal(t, 3, grants(x), "from the rest")
	now += int64(120 * time.Millisecond)
	assert.Zero(t, grants(x), "a is forgotten; x has its cell")
	require.NotNil(t, c.values.shards[0].cells.find(&x, x.Hash()))
	now += int64(time.Second)
	assert.Equal(t, 3, grants(x))
}

func TestShrinkingLetsGo(t *testing.T) {
	c := newRule(t, Rule{Threshold: 3, MaxValues: 100})
	for i := range 100 {
		_, _ = c.grant(0, argument.Of(i), 1, nil)
	}
	c.values.resize(10)
	for i := range 100 {
		_, _ = c.grant(int64(time.Hour), argument.Of(1000+i), 1, nil)
	}
	var f Stats
	c.report(&f, new(top))
	known := f.Values
	assert.LessOrEqual(t, known, 10)
}

// A cached value keeps none of the caller's memory reachable.
// known bug 90
func TestKeptValuesAreCopies(t *testing.T) {
	c := newRule(t, Rule{Threshold: 3})
	request := string(make([]byte, 1<<20))
	for _, text := range []string{request[:20], request} {
		v := argument.Of(text)
		_, _ = c.grant(0, v, 1, nil)
		kept := c.values.shard(v.Hash()).cells.find(&v, v.Hash()).value
		require.Equal(t, v, kept)
		at := func(v argument.Value) *byte {
			return unsafe.StringData(reflect.ValueOf(v).FieldByName("text").String())
		}
		assert.NotSame(t, at(v), at(kept))
	}
}

// tableOf returns the table of an engine without rules.
func tableOf(e *engine.Engine) *table {
	t := new(table)
	t.Engine = e
	return t
}

// A call that was decided by the previous rule, and arrives late, makes no window of that rule's
// interval.
// known bug 263
func TestWindowOfALateCallHasTheLatestInterval(t *testing.T) {
	old := newRule(t, Rule{ID: "r", Threshold: 1})
	r := old.rule
	r.Interval = time.Minute
	next, publish := newController(tableOf(old.engine), r, old.record, old.engine.PinResource("orders"), old)
	publish(0)
	_, block := old.grant(0, argument.Of("ann"), 1, nil)
	assert.Nil(t, block)
	_, block = next.grant(int64(5*time.Second), argument.Of("ann"), 1, nil)
	assert.NotNil(t, block, "twice in a minute")
}

// A call that arrives late, after its value was evicted, counts from the eviction on, even if the
// values without a cell have a window that is older.
// known bug 264
func TestWindowOfALateCallBeginsAtTheEviction(t *testing.T) {
	c := newRule(t, Rule{Threshold: 1, MaxValues: 1})
	grants := func(at time.Duration, user string) bool {
		_, block := c.grant(int64(at), argument.Of(user), 1, nil)
		return block == nil
	}
	assert.True(t, grants(-10*time.Second, "x"))
	assert.True(t, grants(-10*time.Second, "in the rest"))
	assert.True(t, grants(0, "ann"))
	assert.True(t, grants(2*time.Second, "x"), "it gets the cell of ann")
	assert.True(t, grants(time.Second, "ann"), "late")
	assert.False(t, grants(2100*time.Millisecond, "ann"))
}
