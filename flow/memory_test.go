package flow_test

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/sampler"
)

// dial is a machine whose memory use a test sets.
type dial struct {
	mu    sync.Mutex
	shows host.Memory
	err   error
	asked atomic.Int64
}

func (d *dial) Load(int64) (float64, error) { return 0, errors.New("nobody wants to know") }
func (d *dial) CPU(int64) (float64, error)  { return 0, errors.New("nobody wants to know") }

func (d *dial) Memory(int64) (host.Memory, error) {
	d.asked.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shows, d.err
}

func (d *dial) set(used, limit int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shows, d.err = host.Memory{Used: used, Limit: limit}, err
}

// newMemoryGuard returns a guard on a machine with 1000 bytes, none of them in use.
func newMemoryGuard(t testing.TB, cfg engine.Config, rules ...flow.Rule) (*guard, *dial) {
	t.Helper()
	d := new(dial)
	d.set(0, 1000, nil)
	cfg.Host = d
	g := newGuardWith(t, cfg, rules...)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	return g, d
}

// uses sets the memory in use, of 1000 bytes, and samples the machine.
func (g *guard) uses(d *dial, used int64) {
	d.set(used, 1000, nil)
	g.Sampler().Sample()
}

func byMemory(r flow.Rule) flow.Rule {
	r.ID, r.Resource = "rule", "orders"
	if r.Threshold == 0 {
		r.Threshold, r.MemoryThreshold = 100, 10
	}
	r.LowMemory, r.HighMemory = flow.Share(0.5), flow.Share(0.9)
	return r
}

// The full threshold holds up to the low mark, MemoryThreshold holds at the high mark and above, and
// between the two the threshold falls linearly.
func TestThresholdByMemory(t *testing.T) {
	for _, tt := range []struct {
		used, pass int64
	}{
		{0, 100}, {499, 100}, {500, 100}, {501, 99}, {600, 77}, {700, 55}, {800, 32}, {899, 10}, {900, 10}, {901, 10}, {1000, 10}, {5000, 10},
	} {
		for _, r := range []flow.Rule{
			byMemory(flow.Rule{}),
			byMemory(flow.Rule{Window: flow.Strict, Buckets: 4}),
			byMemory(flow.Rule{Interval: time.Minute}),
			byMemory(flow.Rule{Relation: flow.Chain, Ref: "web"}),
			byMemory(flow.Rule{Origin: "app"}),
			byMemory(flow.Rule{Origin: flow.OriginOther}),
			{ID: "rule", Resource: "orders", Threshold: 100, MemoryThreshold: 10, LowMemory: flow.Bytes(500), HighMemory: flow.Bytes(900)},
		} {
			if r.LowMemory == flow.Bytes(500) && tt.used > 1000 {
				continue
			}
			g, d := newMemoryGuard(t, engine.Config{}, r)
			g.uses(d, tt.used)
			assert.EqualValues(t, tt.pass, g.passes(150, "orders from app in web"), "%+v at %d", r, tt.used)
			f := g.Rules().RuleStats()[0].Details.(flow.Stats)
			assert.EqualValues(t, tt.pass, int64(f.Threshold))
			want := float64(tt.used)
			if r.LowMemory == flow.Share(0.5) {
				want /= 1000
			}
			assert.InDelta(t, want, f.Memory, 0)
		}
	}
}

// A threshold that falls applies to calls that passed before, a threshold that rises needs no
// reload, and the window keeps counting.
func TestThresholdMovesWithinTheWindow(t *testing.T) {
	g, d := newMemoryGuard(t, engine.Config{}, byMemory(flow.Rule{Interval: time.Minute, Window: flow.Ring}))
	assert.Equal(t, 40, g.passes(40, "orders"))
	g.uses(d, 900)
	assert.Equal(t, 0, g.passes(9, "orders"), "40 is more than 10")
	g.uses(d, 700)
	assert.Equal(t, 15, g.passes(99, "orders"), "55 in all")
	g.uses(d, 900)
	assert.Equal(t, 0, g.passes(9, "orders"))
	g.uses(d, 0)
	assert.Equal(t, 45, g.passes(99, "orders"))
	g.at(time.Minute)
	g.uses(d, 950)
	assert.Equal(t, 10, g.passes(99, "orders"), "a new minute")
	// The clock takes the sample, with or without calls.
	d.set(0, 1000, nil)
	assert.Equal(t, 0, g.passes(5, "orders"))
	g.clock.Advance(sampler.Period)
	assert.Equal(t, 90, g.passes(99, "orders"))
}

// Units in flight above a limit that has fallen stay in flight, and no call is admitted until enough
// of them have been released.
func TestConcurrencyByMemory(t *testing.T) {
	g, d := newMemoryGuard(t, engine.Config{}, byMemory(flow.Rule{Metric: flow.Concurrency, Threshold: 10, MemoryThreshold: 2}))
	var open []engine.Entry
	enter := func() bool {
		e, err := g.enter("orders")
		if err == nil {
			open = append(open, e)
		}
		return err == nil
	}
	for enter() {
	}
	assert.Len(t, open, 10)
	g.uses(d, 900)
	for len(open) > 2 {
		assert.False(t, enter())
		open[0].Exit()
		open = open[1:]
	}
	assert.False(t, enter())
	open[0].Exit()
	open = open[1:]
	assert.True(t, enter())
	g.uses(d, 700)
	for enter() {
	}
	assert.Len(t, open, 6)
	for _, e := range open {
		e.Exit()
	}
}

// The queue continues where it is: only the next spacing changes.
func TestThrottleByMemory(t *testing.T) {
	g, d := newMemoryGuard(t, engine.Config{}, byMemory(flow.Rule{Behavior: flow.Throttle, MaxWait: 250 * ms}))
	assert.Equal(t, "pass", g.outcome("orders"))
	assert.Equal(t, "10ms", g.outcome("orders"))
	g.uses(d, 900)
	assert.Equal(t, "110ms", g.outcome("orders"))
	assert.Equal(t, "210ms", g.outcome("orders"))
	assert.Equal(t, "block", g.outcome("orders"))
	g.uses(d, 0)
	assert.Equal(t, "220ms", g.outcome("orders"))
}

// A prioritized call borrows within the current limit.
func TestBorrowByMemory(t *testing.T) {
	g, d := newMemoryGuard(t, engine.Config{}, byMemory(flow.Rule{Threshold: 10, MemoryThreshold: 4, Window: flow.Ring}))
	assert.Equal(t, 10, g.passes(12, "orders"))
	g.at(700 * ms)
	g.uses(d, 900)
	for range 4 {
		assert.Equal(t, "300ms", g.outcome("orders first"))
	}
	assert.Equal(t, "block", g.outcome("orders first"))
	g.uses(d, 0)
	assert.Equal(t, "300ms", g.outcome("orders first"))
	g.at(time.Second)
	assert.Equal(t, 5, g.passes(12, "orders"))
}

// An associated rule compares the other resource with the current limit.
func TestAssociatedByMemory(t *testing.T) {
	g, d := newMemoryGuard(t, engine.Config{}, byMemory(flow.Rule{Relation: flow.Associated, Ref: "stock"}))
	assert.Equal(t, 50, g.passes(50, "stock"))
	assert.Equal(t, "pass", g.outcome("orders"))
	g.uses(d, 900)
	assert.Equal(t, "block", g.outcome("orders"))
	g.uses(d, 0)
	assert.Equal(t, "pass", g.outcome("orders"))
}

// A shadow rule follows the memory as well, and counts the calls it would refuse.
func TestShadowByMemory(t *testing.T) {
	g, d := newMemoryGuard(t, engine.Config{}, byMemory(flow.Rule{Mode: spec.Shadow, Interval: time.Minute}))
	g.uses(d, 900)
	assert.Equal(t, 30, g.passes(30, "orders"))
	assert.EqualValues(t, 20, g.Rules().RuleStats()[0].ShadowBlocked)
	g.uses(d, 700)
	assert.Equal(t, 50, g.passes(50, "orders"))
	assert.EqualValues(t, 25, g.Rules().RuleStats()[0].ShadowBlocked, "55 in all")
}

// RetryAfter uses the current limit.
func TestRetryAfterByMemory(t *testing.T) {
	g, d := newMemoryGuard(t, engine.Config{}, byMemory(flow.Rule{Buckets: 10, Window: flow.Ring}))
	assert.Equal(t, 10, g.passes(10, "orders"))
	g.at(500 * ms)
	assert.Equal(t, 40, g.passes(40, "orders"))
	g.uses(d, 900)
	_, err := g.enter("orders")
	var block *core.BlockError
	require.ErrorAs(t, err, &block)
	assert.Equal(t, time.Second, comeAgain(t, block), "when the 40 have gone")
	g.uses(d, 700)
	assert.Zero(t, comeAgain(t, block))
}

// A throttle is kept while it would make a call wait at its lowest rate.
func TestIdleByMemory(t *testing.T) {
	g, d := newMemoryGuard(t, engine.Config{}, byMemory(flow.Rule{Behavior: flow.Throttle, Threshold: 1e9, MemoryThreshold: 1000}))
	g.uses(d, 0)
	assert.Equal(t, "pass", g.outcome("orders"))
	g.at(time.Minute)
	held := g.resource("orders").Held(core.KindFlow).(interface{ Idle(now int64) bool })
	assert.False(t, held.Idle(g.Now()), "a million units at 1000 a second")
	g.at(20 * time.Minute)
	assert.True(t, held.Idle(g.Now()))
}

// The memory is sampled while a rule needs it, together with the readings for other families.
func TestMemoryIsSampledForTheRules(t *testing.T) {
	g, d := newMemoryGuard(t, engine.Config{}, flow.Rule{Resource: "orders", Threshold: 5})
	samples := func() int64 {
		before := d.asked.Load()
		g.clock.Advance(10 * sampler.Period)
		return d.asked.Load() - before
	}
	assert.Zero(t, samples())
	off := byMemory(flow.Rule{Mode: spec.Off})
	g.load(off)
	assert.Zero(t, d.asked.Load())
	assert.Zero(t, samples())
	g.load(byMemory(flow.Rule{}))
	assert.EqualValues(t, 1, d.asked.Load(), "to see that it can be read")
	assert.EqualValues(t, 10, samples())
	inBytes := byMemory(flow.Rule{})
	inBytes.LowMemory, inBytes.HighMemory = flow.Bytes(1), flow.Bytes(1000)
	other := inBytes
	other.ID, other.Resource = "other", "stock"
	g.load(byMemory(flow.Rule{}), other)
	assert.EqualValues(t, 10, samples(), "once for both of them")
	g.load(off)
	assert.Zero(t, samples(), "the last one is gone")
	g.load(other)
	assert.EqualValues(t, 10, samples())
	require.NoError(t, g.Close())
	assert.Zero(t, samples())
}

// When the memory can no longer be read, the full threshold holds and the log reports it once.
func TestMemoryThatFailsLater(t *testing.T) {
	var log bytes.Buffer
	g, d := newMemoryGuard(t, engine.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, byMemory(flow.Rule{}))
	g.uses(d, 1000)
	assert.Equal(t, 10, g.passes(20, "orders"))
	log.Reset()
	d.set(0, 0, errors.New("gone"))
	g.clock.Advance(3 * sampler.Period)
	assert.Equal(t, 90, g.passes(95, "orders"))
	assert.Contains(t, log.String(), `level=ERROR msg="penstock: machine metric unreadable: rules on it don't limit until it recovers" metric=memory error=gone`)
	assert.Equal(t, 1, bytes.Count(log.Bytes(), []byte("metric=memory")))
	assert.Zero(t, g.Rules().RuleStats()[0].Details.(flow.Stats).Memory)
	g.load(byMemory(flow.Rule{Window: flow.Strict})) // not a reason to refuse an edit
	g.uses(d, 1000)
	assert.Equal(t, 0, g.passes(20, "orders"))
	assert.Contains(t, log.String(), `msg="penstock: machine metric readable again" metric=memory`)
}

// A rule that can't work on this machine is refused, and the loaded rules stay.
func TestMemoryOfThisMachine(t *testing.T) {
	g, d := newMemoryGuard(t, engine.Config{}, flow.Rule{Resource: "orders", Threshold: 1, Window: flow.Ring})
	refused := func(r flow.Rule, want string) {
		t.Helper()
		err := g.Update(func(b *engine.SnapshotBuilder) error { return flow.Compile(b, []flow.Rule{r}) })
		require.EqualError(t, err, "flow[0]."+want)
		var field *spec.FieldError
		require.ErrorAs(t, err, &field)
		assert.Equal(t, 0, g.passes(2, "orders")-1)
		g.at(g.clockAfter(time.Second))
	}
	inBytes := byMemory(flow.Rule{Window: flow.Ring})
	inBytes.LowMemory, inBytes.HighMemory = flow.Bytes(500), flow.Bytes(1024)
	refused(inBytes, "highMemory: is 1KiB, but at most 1000B can be used on this machine, so memoryThreshold would never hold: use less, or a share for both marks, as in 0.9")
	inBytes.HighMemory = flow.Bytes(1000)
	d.set(1, 0, nil)
	refused(byMemory(flow.Rule{Window: flow.Ring}), "lowMemory: is a share, but the memory limit of this machine is unknown: use bytes, as in 512MiB")
	g.load(inBytes)
	g.uses(d, 1000)
	assert.Equal(t, 10, g.passes(20, "orders"))
	g.load(flow.Rule{Resource: "orders", Threshold: 1, Window: flow.Ring})
	g.at(g.clockAfter(time.Second))
	d.set(0, 0, errors.New("open proc/meminfo: no such file"))
	refused(byMemory(flow.Rule{Window: flow.Ring}), "memoryThreshold: the memory in use can't be read on this machine: open proc/meminfo: no such file; remove the rule's memory keys here")
	g.load(byMemory(flow.Rule{Mode: spec.Off, Window: flow.Ring}))
	g.clock.Advance(time.Minute)
	d.set(0, 1000, nil)
	g.load(byMemory(flow.Rule{Window: flow.Ring}))
}

// clockAfter returns d after now, as a time from the start.
func (g *guard) clockAfter(d time.Duration) time.Duration {
	return time.Unix(0, g.Now()).Sub(start) + d
}

func TestMemoryRuleRefuses(t *testing.T) {
	rule := func(change func(*flow.Rule)) flow.Rule {
		r := byMemory(flow.Rule{})
		change(&r)
		return r
	}
	for _, tt := range []struct {
		rule flow.Rule
		want string
	}{
		{rule(func(r *flow.Rule) { r.Behavior = flow.WarmUp }), "memoryThreshold: has no meaning for behavior warmUp, whose threshold already changes by itself: remove it, or set behavior to reject or throttle"},
		{rule(func(r *flow.Rule) { r.Behavior = flow.WarmUpThrottle }), "memoryThreshold: has no meaning for behavior warmUpThrottle, whose threshold already changes by itself: remove it, or set behavior to reject or throttle"},
		{rule(func(r *flow.Rule) { r.MemoryThreshold = 0 }), "memoryThreshold: is required by lowMemory and highMemory: set the threshold that holds from highMemory on, above 0"},
		{rule(func(r *flow.Rule) { r.LowMemory = flow.Watermark{} }), "lowMemory: is required by memoryThreshold: set the memory use up to which the full threshold holds, as in 0.6 or 512MiB"},
		{rule(func(r *flow.Rule) { r.HighMemory = flow.Watermark{} }), "highMemory: is required by memoryThreshold: set the memory use from which memoryThreshold holds, as in 0.9 or 1GiB"},
		{rule(func(r *flow.Rule) { r.MemoryThreshold = 100 }), "memoryThreshold: is 100: use a number above 0 and below the threshold, 100"},
		{rule(func(r *flow.Rule) { r.MemoryThreshold = -1 }), "memoryThreshold: is -1: use a number above 0 and below the threshold, 100"},
		{rule(func(r *flow.Rule) { r.MemoryThreshold = math.NaN() }), "memoryThreshold: is NaN: use a number above 0 and below the threshold, 100"},
		{rule(func(r *flow.Rule) { r.MemoryThreshold = 0.5 }), "memoryThreshold: is 0.5: only whole units count here, so use at least 1, and at least one less than the threshold, 100"},
		{rule(func(r *flow.Rule) { r.Threshold, r.MemoryThreshold = 1.9, 1.2 }), "memoryThreshold: is 1.2: only whole units count here, so use at least 1, and at least one less than the threshold, 1.9"},
		{rule(func(r *flow.Rule) { r.Threshold, r.Behavior = 0, flow.Throttle }), "memoryThreshold: is 10: use a number above 0 and below the threshold, 0"},
		{rule(func(r *flow.Rule) { r.LowMemory = flow.Share(-0.5) }), "lowMemory: is -0.5: use a share above 0 and up to 1, as in 0.8, or bytes"},
		{rule(func(r *flow.Rule) { r.HighMemory = flow.Share(80) }), "highMemory: is 80: use a share above 0 and up to 1, as in 0.8, or bytes"},
		{rule(func(r *flow.Rule) { r.HighMemory = flow.Share(math.NaN()) }), "highMemory: is NaN: use a share above 0 and up to 1, as in 0.8, or bytes"},
		{rule(func(r *flow.Rule) { r.LowMemory = flow.Bytes(-1) }), "lowMemory: is -1 bytes: use more than 0 and at most 1EiB"},
		{rule(func(r *flow.Rule) { r.HighMemory = flow.Bytes(1 << 61) }), "highMemory: is 2305843009213693952 bytes: use more than 0 and at most 1EiB"},
		{rule(func(r *flow.Rule) { r.HighMemory = flow.Bytes(1 << 30) }), "highMemory: is 1GiB and lowMemory 0.5: use two shares, or bytes for both"},
		{rule(func(r *flow.Rule) { r.HighMemory = flow.Share(0.5) }), "highMemory: is 0.5: use more than lowMemory, 0.5"},
		{rule(func(r *flow.Rule) { r.LowMemory, r.HighMemory = flow.Bytes(3<<20), flow.Bytes(2<<20) }), "highMemory: is 2MiB: use more than lowMemory, 3MiB"},
	} {
		_, err := tt.rule.Normalized(3)
		require.EqualError(t, err, tt.want)
		var field *spec.FieldError
		require.ErrorAs(t, err, &field)
	}
	for _, r := range []flow.Rule{
		rule(func(r *flow.Rule) { r.Behavior, r.MemoryThreshold = flow.Throttle, 1e-9 }),
		rule(func(r *flow.Rule) { r.MemoryThreshold = 1 }),
		rule(func(r *flow.Rule) { r.HighMemory = flow.Share(1) }),
		rule(func(r *flow.Rule) { r.LowMemory, r.HighMemory = flow.Bytes(1), flow.Bytes(1<<60) }),
	} {
		_, err := r.Normalized(3)
		require.NoError(t, err)
	}
}

// An amount is written the way it is read.
func TestWatermark(t *testing.T) {
	for _, tt := range []struct {
		file any
		want flow.Watermark
		text string
	}{
		{0.8, flow.Share(0.8), "0.8"}, {int64(1), flow.Share(1), "1"}, {int64(0), flow.Watermark{}, ""},
		{"512MiB", flow.Bytes(512 << 20), "512MiB"}, {"1024MiB", flow.Bytes(1 << 30), "1GiB"},
		{"1B", flow.Bytes(1), "1B"}, {"1536KiB", flow.Bytes(3 << 19), "1536KiB"}, {"2TiB", flow.Bytes(2 << 40), "2TiB"},
	} {
		var w flow.Watermark
		require.NoError(t, w.SetScalar(tt.file))
		assert.Equal(t, tt.want, w)
		assert.Equal(t, tt.text, w.String())
		if w != (flow.Watermark{}) {
			var again flow.Watermark
			require.NoError(t, again.SetScalar(w.Scalar()))
			assert.Equal(t, w, again)
		}
	}
	for _, tt := range []struct {
		file any
		want string
	}{
		{"80%", `"80%" is not an amount of memory: use a share of the limit, as in 0.8, or bytes with their unit, as in 512MiB`},
		{"1.5GiB", `"1.5GiB" is not an amount of memory: use a share of the limit, as in 0.8, or bytes with their unit, as in 512MiB`},
		{"-1B", `"-1B" is not an amount of memory: use a share of the limit, as in 0.8, or bytes with their unit, as in 512MiB`},
		{"99999999999TiB", `"99999999999TiB" is not an amount of memory: use a share of the limit, as in 0.8, or bytes with their unit, as in 512MiB`},
		{int64(512), "must be a share from 0 to 1, as in 0.8, or have its unit, as in 512MiB"},
		{true, "must be a share of the limit, as in 0.8, or bytes with their unit, as in 512MiB, not true"},
	} {
		var w flow.Watermark
		require.EqualError(t, w.SetScalar(tt.file), tt.want)
		assert.Zero(t, w)
	}
}
