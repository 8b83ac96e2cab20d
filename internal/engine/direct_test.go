package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// quick is a family whose rules, for every resource, are one semaphore and need not be asked.
type quick struct {
	name      string
	kind      core.Kind
	semaphore meter.Semaphore
	limit     int64
	heard     *[]string
	during    func() // during Take, before it has units
}

func (q *quick) say(what string) { *q.heard = append(*q.heard, q.name+" "+what) }
func (q *quick) Direct() bool    { return true }
func (q *quick) Ask(inv *engine.Invocation) (v engine.Verdict) {
	q.say("asked")
	if !q.semaphore.Fits(inv.Units(), q.limit) {
		v.Block = refusal(q.name)
	}
	return v
}
func (q *quick) Take(inv *engine.Invocation) (v engine.Verdict) {
	q.say("takes")
	if q.during != nil {
		q.during()
	}
	if !q.semaphore.TryAcquire(inv.Lane(), inv.Units(), q.limit) {
		return engine.Verdict{Block: refusal(q.name)}
	}
	inv.ReserveSemaphore(&q.semaphore)
	return engine.Verdict{}
}

func (q *quick) Match(string, any, uint64) (none pattern.Matched) { return none }
func (q *quick) Known(any, uint64) (none pattern.Matched)         { return none }
func (q *quick) Latest() uint64                                   { return 0 }
func (q *quick) Choices(string, string) []core.Choice             { return nil }
func (q *quick) Bind(*engine.Binding) engine.Checker              { return q }
func (q *quick) Names(*engine.Names)                              {}
func (q *quick) Needs(any, uint64, func(engine.Need))             {}
func (q *quick) Looks(func(string, engine.Need))                  {}
func (q *quick) Stats() []core.RuleStats                          { return nil }
func (q *quick) EachError(func(*core.BlockError))                 {}

// twoQuick returns an engine with two such families, in a chain with more slots before and behind
// them, and a record of their calls.
func twoQuick(t *testing.T, more ...engine.Slot) (e *engine.Engine, clock *clocks.Manual, first, second *quick, heard func() []string) {
	t.Helper()
	var said []string
	first = &quick{name: "first", kind: core.KindFlow, limit: 1 << 40, heard: &said}
	second = &quick{name: "second", kind: core.KindIsolation, limit: 1 << 40, heard: &said}
	chain := []engine.Slot{trial.Slot("nodeSelector"), trial.Slot("clusterBuilder")}
	chain = append(chain, more...)
	chain = append(chain, trial.Slot("statistic"), engine.FamilySlot(first.kind), engine.FamilySlot(second.kind))
	e, clock = newEngine(t, engine.Config{Chain: engine.NewChain(chain...)})
	require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error {
		b.Put(first.kind, first)
		b.Put(second.kind, second)
		return nil
	}))
	t.Cleanup(func() { assert.Zero(t, first.semaphore.Held()+second.semaphore.Held()) })
	return e, clock, first, second, func() []string {
		defer func() { said = nil }()
		return said
	}
}

// refusals is a recorder that counts rejections and runs a function at each.
type refusals struct {
	name string
	do   func()
	n    int
}

func (r *refusals) Name() string               { return r.name }
func (*refusals) Passed(*engine.Invocation)    {}
func (*refusals) Completed(*engine.Invocation) {}
func (r *refusals) Blocked(*engine.Invocation, *core.BlockError) {
	if r.do != nil {
		r.do()
	}
	r.n++
}

// Families that have not rejected a call lately take immediately. After a rejection all are asked
// before any takes, for a while, and so they are for a prioritized call.
func TestNobodyIsAskedInVain(t *testing.T) {
	e, clock, _, second, heard := twoQuick(t)
	atOnce := []string{"first takes", "second takes"}
	asked := []string{"first asked", "second asked"}
	both := []string{"first asked", "second asked", "first takes", "second takes"}
	call := func(opts ...engine.Option) error {
		entry, err := e.Enter(t.Context(), "orders", opts)
		entry.Exit()
		return err
	}
	require.NoError(t, call())
	assert.Equal(t, atOnce, heard())
	require.NoError(t, call(engine.Prioritized()))
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

// known bug 18: a call that is rejected immediately has given its units back, and holds nothing while
// the rejection is recorded.
func TestRefusedAtOnceHoldsNothing(t *testing.T) {
	e, _, first, second, _ := twoQuick(t)
	second.limit = 2
	held, err := e.Enter(t.Context(), "orders", []engine.Option{engine.Units(2)})
	require.NoError(t, err)
	_, err = e.Enter(t.Context(), "orders", nil)
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.EqualValues(t, 2, first.semaphore.Held())
	held.Exit()
	assert.Zero(t, first.semaphore.Held())
}

// A family that panics as it takes is skipped.
func TestPanicWhileDecidingAtOnce(t *testing.T) {
	for at := range 2 {
		e, _, first, second, heard := twoQuick(t)
		odd := []*quick{first, second}[at]
		odd.during = func() { panic("boom") }
		entry, err := e.Enter(t.Context(), "orders", nil)
		require.NoError(t, err)
		assert.EqualValues(t, 1, first.semaphore.Held()+second.semaphore.Held(), "the other one took")
		entry.Exit()
		assert.Zero(t, first.semaphore.Held()+second.semaphore.Held())
		assert.Equal(t, []string{"first takes", "second takes"}, heard())
		assert.EqualValues(t, 1, e.Failures())
		odd.during = nil
		entry, err = e.Enter(t.Context(), "orders", nil)
		require.NoError(t, err)
		entry.Exit()
	}
}

// A recorder that panics on a rejection doesn't keep others from recording it, and the call ends.
func TestPanicWhileARefusalAtOnceIsRecorded(t *testing.T) {
	odd, last := &refusals{name: "odd", do: func() { panic("boom") }}, &refusals{name: "last"}
	e, _, first, second, heard := twoQuick(t, odd, last)
	second.limit = 0
	_, err := e.Enter(t.Context(), "orders", nil)
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.Equal(t, []string{"first takes", "second takes"}, heard())
	assert.Zero(t, first.semaphore.Held(), "it has given back")
	assert.Equal(t, 1, last.n)
	assert.EqualValues(t, 1, resource(t, e, "orders").Totals().Block)
	assert.Zero(t, resource(t, e, "orders").Totals().Entered)
}

// All are asked from the moment that one has rejected, even while the rejection is recorded.
func TestWaryBeforeTheRefusalIsRecorded(t *testing.T) {
	odd := &refusals{name: "odd"}
	e, _, _, second, heard := twoQuick(t, odd)
	second.limit = 0
	odd.do = func() {
		odd.do = nil
		_, err := e.Enter(t.Context(), "orders", nil)
		require.ErrorIs(t, err, core.ErrBlocked)
	}
	_, err := e.Enter(t.Context(), "orders", nil)
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.Equal(t, []string{"first takes", "second takes", "first asked", "second asked"}, heard())
}
