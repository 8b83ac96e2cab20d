package flow_test

import (
	"encoding/binary"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/stat"
)

// FuzzNumbers runs a script of calls, of any size and at any times, under a rule with any numbers.
// The rule is either refused or holds: compared with a naive log of the admitted calls, no call
// passes without room and none is refused with room; waits stay within the rule's bounds; and
// refused calls leave nothing behind: a second engine that never sees them decides the same about
// all others.
// known bug 34, 36, 43, 47, 49
func FuzzNumbers(f *testing.F) {
	script := func(steps ...int64) (text []byte) {
		for _, n := range steps {
			text = binary.LittleEndian.AppendUint64(text, uint64(n))
		}
		return text
	}
	const second = int64(time.Second)
	calls := script(0, 1, 0, 1, second/3, 2, 0, math.MaxInt64, 0, 1<<32-1, 0, -1, second, 1<<20, 0, 3, 0, math.MinInt64, 5*second, 1<<20+1, 0, 1)
	for _, threshold := range []float64{
		0, 1, 2.5, 10, 1e-300, math.SmallestNonzeroFloat64, 1e-9, 1e9, 1 << 20, 1 << 32, 1 << 53, 1e15, 1e300, math.MaxFloat64, math.Inf(1), math.NaN(), -1,
	} {
		for kind := range uint8(16) {
			f.Add(threshold, int64(0), 0, kind, int64(0), 0, int64(0), calls)
		}
	}
	f.Add(3.0, int64(10*time.Millisecond), 1, uint8(0), int64(0), 0, int64(0), script(0, 3, 0, 1, 10*int64(time.Millisecond), 4, 0, 3))
	f.Add(5.0, int64(24*time.Hour), 1440, uint8(8), int64(0), 0, int64(0), script(0, 5, 0, 1, 3600*second, 1, 23*3600*second, 5))
	f.Add(1e-15, int64(24*time.Hour), 0, uint8(2), int64(0), 0, int64(24*time.Hour), script(0, 1<<20, 0, 1, math.MaxInt64, 1))
	f.Add(3.0, 10*second, 10, uint8(16), int64(0), 0, int64(0), script(0, 3, 9*second+second/5, 1, second/2, 1, 0, 2, 0, 1, second, 1)) // borrows
	f.Add(7.0, second, 0, uint8(3), second, 1000, int64(1), calls)
	f.Add(1.0, int64(math.MinInt64), math.MinInt, uint8(255), int64(math.MinInt64), math.MinInt, int64(math.MinInt64), calls)
	f.Add(1.0, int64(math.MaxInt64), math.MaxInt, uint8(255), int64(math.MaxInt64), math.MaxInt, int64(math.MaxInt64), calls)

	f.Fuzz(func(t *testing.T, threshold float64, interval int64, buckets int, kind uint8, warmUpPeriod int64, coldFactor int, maxWait int64, calls []byte) {
		// kind holds the behavior in two bits, then metric, strict and prioritized.
		rule := flow.Rule{
			Resource: "orders", Threshold: threshold, Interval: time.Duration(interval), Buckets: buckets,
			Behavior: flow.Behavior(kind & 3), Metric: flow.Metric(kind >> 2 & 1), Window: flow.Window(1 - kind>>3&1),
			WarmUpPeriod: time.Duration(warmUpPeriod), ColdFactor: coldFactor, MaxWait: time.Duration(maxWait),
		}
		norm, err := rule.Normalized(3)
		if err != nil {
			var field *spec.FieldError
			require.ErrorAs(t, err, &field)
			return
		}
		b := &book{t: t, rule: norm, prioritized: kind>>4&1 == 1, all: newGuard(t, rule), some: newGuard(t, rule)}
		for len(calls) >= 16 && b.calls < 100 {
			b.advance(time.Duration(binary.LittleEndian.Uint64(calls)))
			b.call(int64(binary.LittleEndian.Uint64(calls[8:])))
			calls = calls[16:]
		}
		b.end()
	})
}

// book holds two engines under one rule, and a log of the admitted calls. One engine gets all
// calls, the other only the calls that the first one admitted.
type book struct {
	t           *testing.T
	rule        flow.Rule
	prioritized bool
	all, some   *guard
	calls       int
	passed      []grant
	open        []engine.Entry // of a concurrency rule, on both engines
}

type grant struct{ at, units int64 }

// advance moves the clock, by three days at most. Open entries end now and then.
func (b *book) advance(d time.Duration) {
	d = max(0, d%(72*time.Hour))
	b.all.clock.Advance(d)
	b.some.clock.Advance(d)
	if d%7 == 1 {
		b.end()
	}
}

func (b *book) end() {
	for _, e := range b.open {
		e.Exit()
	}
	b.open = nil
	if b.rule.Metric == flow.Concurrency {
		b.passed = nil
	}
}

func (b *book) call(count int64) {
	b.calls++
	opts := []engine.Option{engine.Units(int(count))}
	if b.prioritized {
		opts = append(opts, engine.Prioritized())
	}
	units := max(1, int64(int(count))) // as an int, which may have 32 bits
	now, slept := b.all.clock.Now(), len(b.all.clock.Slept())
	e, err := b.all.Enter(b.t.Context(), "orders", opts)
	if units > stat.MaxUnits {
		require.ErrorIs(b.t, err, core.ErrInvalid)
		return
	}
	if err != nil {
		var block *core.BlockError
		require.ErrorAs(b.t, err, &block)
		wait, known := block.RetryAfter()
		require.GreaterOrEqual(b.t, wait, time.Duration(0))
		require.True(b.t, known || wait == 0)
		require.False(b.t, b.mustPass(now, units), "%+v: %d units refused at %d after %v", b.rule, units, now, b.passed)
		return
	}
	wait := b.wait(b.all, slept)
	require.True(b.t, b.mayPass(now, wait, units), "%+v: %d units passed at %d, waiting %v, after %v", b.rule, units, now, wait, b.passed)
	b.passed = append(b.passed, grant{now + int64(wait), units})
	for _, g := range b.passed { // borrowed units have room when their bucket begins
		if !b.queues() && g.at >= now {
			require.LessOrEqual(b.t, b.used(g.at), int64(b.rule.Threshold), "%+v: at %d, after %v", b.rule, g.at, b.passed)
		}
	}

	slept = len(b.some.clock.Slept())
	twin, err := b.some.Enter(b.t.Context(), "orders", opts)
	if b.rule.Behavior == flow.Reject || b.rule.Behavior == flow.Throttle { // a warm-up settles when asked
		require.NoError(b.t, err, "%+v: without the refused calls", b.rule)
		require.Equal(b.t, wait, b.wait(b.some, slept), "%+v: without the refused calls", b.rule)
	}
	if b.rule.Metric == flow.Concurrency {
		b.open = append(b.open, e, twin)
		return
	}
	e.Exit()
	twin.Exit()
}

// wait returns the wait of the last call. The clock recorded it and stood still.
func (b *book) wait(g *guard, slept int) time.Duration {
	b.t.Helper()
	waits := g.clock.Slept()[slept:]
	if len(waits) == 0 {
		return 0
	}
	require.Len(b.t, waits, 1, "a call waits once")
	require.Positive(b.t, waits[0])
	return waits[0]
}

func (b *book) queues() bool {
	return b.rule.Behavior == flow.Throttle || b.rule.Behavior == flow.WarmUpThrottle
}

// mustPass reports whether the rule has room for the call.
func (b *book) mustPass(now, units int64) bool {
	switch {
	case b.rule.Behavior == flow.WarmUp || b.rule.Behavior == flow.WarmUpThrottle:
		return false // the log doesn't model warmth
	case b.rule.Threshold == 0:
		return false
	case b.queues():
		early := new(big.Float).Sub(b.turn(now, units), big.NewFloat(0.5)) // allows for rounded costs
		return len(b.passed) == 0 || early.Cmp(nanos(now+int64(b.rule.MaxWait)-1)) <= 0
	}
	return b.used(now)+units <= int64(b.rule.Threshold) && !b.borrowed(now)
}

// mayPass reports whether the call can pass after the wait.
func (b *book) mayPass(now int64, wait time.Duration, units int64) bool {
	switch {
	case b.rule.Threshold == 0:
		return false
	case b.queues():
		late := new(big.Float).Sub(b.turn(now, units), big.NewFloat(1)) // waits are whole nanoseconds
		return wait <= b.rule.MaxWait && (len(b.passed) == 0 || late.Cmp(nanos(now+int64(wait))) <= 0)
	case wait > 0:
		return b.prioritized && wait < 500*time.Millisecond && b.used(now+int64(wait))+units <= int64(b.rule.Threshold)
	}
	return b.used(now)+units <= int64(b.rule.Threshold)
}

// turn returns the time one cost after the last turn, at the cost under the full threshold.
func (b *book) turn(now, units int64) *big.Float {
	if len(b.passed) == 0 {
		return nanos(now)
	}
	cost := new(big.Float).Quo(nanos(int64(b.rule.Interval)), big.NewFloat(b.rule.Threshold))
	cost.Mul(cost, nanos(units))
	return cost.Add(cost, nanos(b.passed[len(b.passed)-1].at))
}

func nanos(n int64) *big.Float { return new(big.Float).SetPrec(200).SetInt64(n) }

// used returns the sum of the buckets that count at a time.
func (b *book) used(at int64) (sum int64) {
	if b.rule.Metric == flow.Concurrency {
		for _, g := range b.passed {
			sum += g.units
		}
		return sum
	}
	newest := b.bucket(at)
	oldest := newest - int64(b.rule.Buckets) + 1
	if b.rule.Window == flow.Strict {
		oldest--
	}
	for _, g := range b.passed {
		if n := b.bucket(g.at); n >= oldest && n <= newest {
			sum += g.units
		}
	}
	return sum
}

// borrowed reports whether an earlier call borrowed from an upcoming bucket; that counts against a
// call now for as long as both would count.
func (b *book) borrowed(now int64) bool {
	for _, g := range b.passed {
		if g.at > now {
			return true
		}
	}
	return false
}

// bucket returns the number of the bucket at a time after 1970.
func (b *book) bucket(at int64) int64 {
	return at / (int64(b.rule.Interval) / int64(b.rule.Buckets))
}
