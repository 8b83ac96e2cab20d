package core_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/slots"
	"github.com/penstock-go/penstock/stat"
)

// quick is a family whose rules, for every resource, are one gauge and decide at once. It
// is a slot of itself, too.
type quick struct {
	name   string
	kind   core.Kind
	gauge  stat.Gauge
	limit  int64
	heard  *[]string
	during func() // while it decides, before it takes

	recording func() // while it records a refusal
	refusals  int    // that it has recorded
}

func (q *quick) Name() string    { return q.name }
func (q *quick) Kind() core.Kind { return q.kind }
func (q *quick) say(what string) { *q.heard = append(*q.heard, q.name+" "+what) }
func (q *quick) Ask(inv *core.Invocation) (v core.Verdict) {
	q.say("asked")
	if !q.gauge.Fits(inv.Units(), q.limit) {
		v.Block = refusal(q.name)
	}
	return v
}
func (q *quick) Take(inv *core.Invocation) core.Verdict {
	q.say("takes")
	return core.Verdict{Block: q.take(inv)}
}
func (q *quick) DecidesAtOnce() bool { return true }
func (q *quick) Decide(inv *core.Invocation) *core.BlockError {
	q.say("decides")
	return q.take(inv)
}
func (q *quick) take(inv *core.Invocation) *core.BlockError {
	if q.during != nil {
		q.during()
	}
	if !q.gauge.TryAcquire(inv.Units(), q.limit) {
		return refusal(q.name)
	}
	inv.ReserveGauge(&q.gauge)
	return nil
}
func (q *quick) Decider(of core.Checker, rules any) core.Decider {
	if of != core.Checker(q) {
		return nil
	}
	return rules.(*quick)
}

func (q *quick) Blocked(*core.Invocation, *core.BlockError) {
	if q.recording != nil {
		q.recording()
	}
	q.refusals++
}

func (q *quick) Bind(*core.Resource, string) any          { return q }
func (q *quick) Names(*core.Names)                        {}
func (q *quick) Keeps(string, core.Role, node.Meter) bool { return false }
func (q *quick) KeepsGauge(string, core.Role, any) bool   { return false }
func (q *quick) Figures() []core.RuleFigures              { return nil }
func (q *quick) EachError(func(*core.BlockError))         {}
func (q *quick) Forget(string)                            {}
func (q *quick) Adopt(*core.Resource, any)                {}

// twoQuick returns an engine with two such families, the slots of which are as with makes
// them, and what they say.
func twoQuick(t *testing.T, with func(*quick) core.Slot) (e *core.Engine, clock *core.ManualClock, first, second *quick, heard func() []string) {
	t.Helper()
	var said []string
	first = &quick{name: "first", kind: core.KindFlow, limit: 1 << 40, heard: &said}
	second = &quick{name: "second", kind: core.KindIsolation, limit: 1 << 40, heard: &said}
	e, clock = newEngine(t, core.Config{Chain: core.NewChain(
		slots.NodeSelector{}, slots.ClusterBuilder{}, slots.Statistic{}, with(first), with(second))})
	require.NoError(t, e.Update(func(b *core.RulesetBuilder) error {
		b.Put(first.kind, first)
		b.Put(second.kind, second)
		return nil
	}))
	t.Cleanup(func() { assert.Zero(t, first.gauge.Held()+second.gauge.Held()) })
	return e, clock, first, second, func() []string {
		defer func() { said = nil }()
		return said
	}
}

func asIs(q *quick) core.Slot { return q }

// Families of which none has refused a call lately decide at once. After a refusal all are
// asked before any takes, for a while; and so are they about a prioritized call.
func TestNobodyIsAskedInVain(t *testing.T) {
	e, clock, _, second, heard := twoQuick(t, asIs)
	atOnce := []string{"first decides", "second decides"}
	asked := []string{"first asked", "second asked"}
	both := []string{"first asked", "second asked", "first takes", "second takes"}
	call := func(opts ...core.Option) error {
		entry, err := e.Enter(t.Context(), "orders", opts)
		entry.Exit()
		return err
	}
	require.NoError(t, call())
	assert.Equal(t, atOnce, heard())
	require.NoError(t, call(core.Prioritized()))
	assert.Equal(t, both, heard())
	require.NoError(t, call())
	assert.Equal(t, atOnce, heard())

	second.limit = 0
	require.ErrorIs(t, call(), core.ErrBlocked)
	assert.Equal(t, atOnce, heard(), "nobody knew")
	for range 30 {
		require.ErrorIs(t, call(), core.ErrBlocked)
		assert.Equal(t, asked, heard())
		clock.Advance(400 * time.Millisecond)
	}
	second.limit = 10
	require.NoError(t, call())
	assert.Equal(t, both, heard())
	clock.Advance(time.Second)
	require.NoError(t, call())
	assert.Equal(t, atOnce, heard())
	assert.Equal(t, int64(31), resource(t, e, "orders").Totals().Block)
}

// museum 18: a call that is refused at once has given back what it took, and holds nothing
// while it is told.
func TestRefusedAtOnceHoldsNothing(t *testing.T) {
	e, _, first, second, _ := twoQuick(t, asIs)
	second.limit = 2
	held, err := e.Enter(t.Context(), "orders", []core.Option{core.Count(2)})
	require.NoError(t, err)
	_, err = e.Enter(t.Context(), "orders", nil)
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.EqualValues(t, 2, first.gauge.Held())
	held.Exit()
	assert.Zero(t, first.gauge.Held())
}

// A family that panics as it decides is passed over; where it ends the goroutine, the call
// holds nothing.
func TestPanicWhileDecidingAtOnce(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		for at := range 2 {
			t.Run(name, func(t *testing.T) {
				e, _, first, second, heard := twoQuick(t, asIs)
				odd := []*quick{first, second}[at]
				odd.during = end
				returned := false
				assert.Nil(t, apart(func() {
					entry, err := e.Enter(t.Context(), "orders", nil)
					returned = true
					assert.NoError(t, err)
					assert.EqualValues(t, 1, first.gauge.Held()+second.gauge.Held(), "the other one took")
					entry.Exit()
				}))
				assert.Equal(t, name == "panic", returned)
				assert.Zero(t, first.gauge.Held()+second.gauge.Held())
				if returned {
					assert.Equal(t, []string{"first decides", "second decides"}, heard())
					assert.EqualValues(t, 1, e.Failures())
				}
				odd.during = nil
				entry, err := e.Enter(t.Context(), "orders", nil)
				require.NoError(t, err)
				entry.Exit()
			})
		}
	}
}

// A recorder of the refusal that panics, or ends the goroutine, keeps nobody else from
// recording it, and the call is over.
func TestPanicWhileARefusalAtOnceIsRecorded(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			e, _, first, second, heard := twoQuick(t, asIs)
			second.limit, first.recording = 0, end
			returned := false
			assert.Nil(t, apart(func() {
				_, err := e.Enter(t.Context(), "orders", nil)
				returned = true
				assert.ErrorIs(t, err, core.ErrBlocked)
			}))
			assert.Equal(t, name == "panic", returned)
			assert.Equal(t, []string{"first decides", "second decides"}, heard())
			assert.Zero(t, first.gauge.Held(), "it has given back")
			assert.Equal(t, 1, second.refusals)
			assert.EqualValues(t, 1, resource(t, e, "orders").Totals().Block)
			assert.Zero(t, resource(t, e, "orders").Totals().Entered)
		})
	}
}

// All are asked from the moment that one has refused, also while the refusal is recorded.
func TestWaryBeforeTheRefusalIsRecorded(t *testing.T) {
	e, _, first, second, heard := twoQuick(t, asIs)
	second.limit = 0
	first.recording = func() {
		first.recording = nil
		_, err := e.Enter(t.Context(), "orders", nil)
		require.ErrorIs(t, err, core.ErrBlocked)
	}
	_, err := e.Enter(t.Context(), "orders", nil)
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.Equal(t, []string{"first decides", "second decides", "first asked", "second asked"}, heard())
}

// more is a slot that embeds another one and does more.
type more struct{ *quick }

func (m more) Take(inv *core.Invocation) core.Verdict {
	m.say("more")
	return m.quick.Take(inv)
}

// A slot that embeds a relay is called itself.
func TestEmbeddedRelayIsNotPassedOver(t *testing.T) {
	e, _, _, _, heard := twoQuick(t, func(q *quick) core.Slot { return more{q} })
	entry, err := e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	entry.Exit()
	assert.Equal(t, []string{"first asked", "second asked", "first more", "first takes", "second more", "second takes"}, heard())
}
