package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// faraway is a fetcher that replies after a delay, with the given grants.
type faraway struct {
	clock  *clocks.Manual
	takes  time.Duration
	grant  func(*engine.Want)
	rounds [][]any // limits wanted, round by round
	most   []time.Duration
	panics bool
}

func (f *faraway) Fetch(ctx context.Context, atMost time.Duration, wants []engine.Want) error {
	var limits []any
	for _, w := range wants {
		limits = append(limits, w.Limit)
	}
	f.rounds, f.most = append(f.rounds, limits), append(f.most, atMost)
	if f.panics {
		panic("far away")
	}
	if f.takes > 0 {
		if err := f.clock.Sleep(ctx, min(f.takes, atMost)); err != nil {
			return err
		}
	}
	for i := range wants {
		if f.grant == nil {
			wants[i].Got = true
		} else {
			f.grant(&wants[i])
		}
	}
	return nil
}

// leased is a test slot with a single limit.
type leased struct {
	name    string
	from    *faraway
	timeout time.Duration
	units   int64 // at hand
	full    bool  // rejects calls that do not fit, and doesn't fetch
	unasked bool  // takes without being asked
	fails   bool  // panics
	by      *core.BlockError
	back    []int64
	held    int64
}

func newLeased(name string, from *faraway) *leased {
	return &leased{name: name, from: from, timeout: 20 * time.Millisecond, by: refusal(name)}
}

func (l *leased) Name() string                                   { return l.name }
func (l *leased) Ask(inv *engine.Invocation) (v engine.Verdict)  { return v }
func (l *leased) Take(inv *engine.Invocation) (v engine.Verdict) { return v }
func (l *leased) Modes() (hold, shadow bool)                     { return false, false }
func (l *leased) Shadow(*engine.Invocation)                      {}
func (l *leased) Shares() engine.Sharer                          { return (*sharing)(l) }
func (l *leased) GiveBack(r *engine.Reservation, _ int64) {
	l.back = append(l.back, r.Token)
	l.held -= r.Units
}

type sharing leased

func (s *sharing) Direct() bool { return s.unasked }

func (s *sharing) Ask(inv *engine.Invocation) engine.Verdict {
	if s.fails {
		panic("as it is asked")
	}
	if r, wait := inv.HeldFor((*leased)(s)); r != nil {
		return engine.Verdict{Wait: wait, By: s.by}
	}
	switch {
	case s.units >= inv.Units():
		return engine.Verdict{}
	case s.full:
		return engine.Verdict{Block: s.by}
	}
	return inv.Want(s.from, s.want(inv))
}

func (s *sharing) Take(inv *engine.Invocation) engine.Verdict {
	if r, wait := inv.HeldFor((*leased)(s)); r != nil {
		return engine.Verdict{Wait: wait, By: s.by, Borrowed: wait > 0}
	}
	if inv.Waits() || s.units < inv.Units() {
		inv.WantLater()
		return engine.Verdict{}
	}
	s.units -= inv.Units()
	s.held += inv.Units()
	inv.ReserveLeased((*leased)(s), inv.Units(), -1)
	return engine.Verdict{}
}

func (s *sharing) Wants(inv *engine.Invocation) {
	if r, _ := inv.HeldFor((*leased)(s)); r == nil {
		inv.Want(s.from, s.want(inv))
	}
}

func (s *sharing) want(inv *engine.Invocation) engine.Want {
	w := engine.Want{Limit: s.name, Units: inv.Units(), Holder: (*leased)(s), By: s.by, Timeout: s.timeout, Fleeting: true}
	if inv.Patient() {
		w.MaxWait = time.Second
	}
	return w
}

// sharedEngine has the slots behind those of the families.
func sharedEngine(t *testing.T, slotsOf ...engine.Slot) (*engine.Engine, *clocks.Manual) {
	chain := trial.Chain()
	for i, s := range slotsOf {
		at := "breaker"
		if i > 0 {
			at = slotsOf[i-1].Name()
		}
		chain = chain.With(s, engine.After(at))
	}
	e, clock := newEngine(t, engine.Config{Chain: chain})
	clock.SetSleep(clocks.SleepAdvance)
	for _, s := range slotsOf {
		if l, ok := s.(*leased); ok && l.from != nil {
			l.from.clock = clock
		}
	}
	return e, clock
}

// A call fetches its wants of several limits in one round, and then its rules are asked again, at
// the new time.
func TestAllThatACallLacksIsFetchedAtOnce(t *testing.T) {
	from := &faraway{takes: 3 * time.Millisecond}
	a, b := newLeased("a", from), newLeased("b", from)
	var asked []time.Duration
	own := &fake{name: "own"}
	e, clock := sharedEngine(t, own, a, b)
	own.ask = func(*engine.Invocation) engine.Verdict {
		asked = append(asked, since(clock))
		return engine.Verdict{}
	}
	b.units = 1
	entry, err := e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	assert.Equal(t, [][]any{{"a"}}, from.rounds, "b has the units at hand")
	entry.Exit()
	entry, err = e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	assert.Equal(t, [][]any{{"a"}, {"a", "b"}}, from.rounds)
	assert.Equal(t, []time.Duration{0, 3e6, 3e6, 6e6}, asked)
	assert.Zero(t, e.Waiting())
	entry.Exit()
	assert.Empty(t, append(a.back, b.back...), "units of a call that ran are spent")
}

// A call that some rule rejects fetches nothing, regardless of the order of the rules.
func TestARefusedCallFetchesNothing(t *testing.T) {
	from := new(faraway)
	a, b := newLeased("a", from), newLeased("b", from)
	b.full = true
	e, _ := sharedEngine(t, a, b)
	_, err := e.Enter(t.Context(), "orders", nil)
	assert.Equal(t, error(b.by), err)
	assert.Empty(t, from.rounds)

	own := &fake{name: "own"}
	e, _ = sharedEngine(t, newLeased("c", from), own)
	no := refusal("own")
	own.ask = func(*engine.Invocation) engine.Verdict { return engine.Verdict{Block: no} }
	_, err = e.Enter(t.Context(), "orders", nil)
	assert.Equal(t, error(no), err)
	assert.Empty(t, from.rounds)

	d := newLeased("d", from)
	e, _ = sharedEngine(t, d, b) // b, which is asked later, rejects the call that has wants of d
	for range 3 {
		_, err = e.Enter(t.Context(), "orders", nil)
		require.Equal(t, error(b.by), err)
	}
	b.full = false
	entry, err := e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	assert.Equal(t, [][]any{{"d", "b"}}, from.rounds, "wants of earlier calls are gone")
	entry.Exit()
}

// Grants are returned if another want is not granted, or if a rule then rejects the call.
func TestWhatWasFetchedGoesBack(t *testing.T) {
	from := new(faraway)
	a, b := newLeased("a", from), newLeased("b", from)
	own := &fake{name: "own"}
	e, _ := sharedEngine(t, own, a, b)
	from.grant = func(w *engine.Want) { w.Got, w.Token = w.Limit == "a", 7 }
	_, err := e.Enter(t.Context(), "orders", nil)
	assert.Equal(t, error(b.by), err)
	assert.Equal(t, []int64{7}, a.back)
	assert.Empty(t, b.back)

	from.grant = func(w *engine.Want) { w.Got, w.Token = true, 8 }
	no := refusal("own")
	own.ask = func(*engine.Invocation) engine.Verdict {
		if len(from.rounds) == 2 {
			return engine.Verdict{Block: no}
		}
		return engine.Verdict{}
	}
	_, err = e.Enter(t.Context(), "orders", nil)
	assert.Equal(t, error(no), err)
	assert.Equal(t, []int64{7, 8}, a.back)
	assert.Equal(t, []int64{8}, b.back)
}

// If the context ends while the call waits for its wants, the call is rejected.
func TestContextEndsWhileACallFetches(t *testing.T) {
	from := &faraway{takes: time.Second}
	a := newLeased("a", from)
	e, clock := sharedEngine(t, a)
	clock.SetSleep(clocks.SleepPark)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := e.Enter(ctx, "orders", nil)
		done <- err
	}()
	clock.AwaitParked(1)
	assert.EqualValues(t, 1, e.Waiting())
	cancel()
	err := <-done
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, core.ErrBlocked)
	assert.Zero(t, e.Waiting())
}

// If a fetcher panics, the call is rejected, and nothing stays reserved.
func TestAFetcherThatPanics(t *testing.T) {
	from := &faraway{panics: true}
	a := newLeased("a", from)
	e, _ := sharedEngine(t, a)
	assert.PanicsWithValue(t, "far away", func() { _, _ = e.Enter(t.Context(), "orders", nil) })
	assert.Zero(t, e.Waiting())
	assert.EqualValues(t, 1, resource(t, e, "orders").Totals().Block)
}

// A call that was not asked, or finds that others were quicker, fetches once all rules have taken.
func TestWhoFindsNothingAsItTakesFetchesThen(t *testing.T) {
	from := new(faraway)
	a := newLeased("a", from)
	a.unasked = true
	e, _ := sharedEngine(t, a)
	entry, err := e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	assert.Equal(t, [][]any{{"a"}}, from.rounds)
	entry.Exit()

	a.unasked, a.units = false, 1
	e, _ = sharedEngine(t, a, &fake{name: "quicker", ask: func(*engine.Invocation) engine.Verdict {
		a.units = 1 // and a is the last that is asked
		return engine.Verdict{}
	}, take: func(*engine.Invocation) engine.Verdict {
		a.units = 0
		return engine.Verdict{}
	}})
	from.rounds = nil
	entry, err = e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	assert.Equal(t, [][]any{{"a"}}, from.rounds)
	entry.Exit()
}

// A call that waits for another rule fetches after that, not before.
func TestWhoWaitsForAnotherRuleFetchesAfterThat(t *testing.T) {
	from := &faraway{takes: time.Millisecond}
	a := newLeased("a", from)
	w := waiter()
	w.ask = w.take
	e, clock := sharedEngine(t, a, w)
	entry, err := e.Enter(t.Context(), "orders", []engine.Option{engine.Args(50 * time.Millisecond)})
	require.NoError(t, err)
	assert.Equal(t, [][]any{{"a"}}, from.rounds)
	assert.Equal(t, 51*time.Millisecond, since(clock))
	entry.Exit()

	from.grant = func(*engine.Want) {}
	_, err = e.Enter(t.Context(), "orders", []engine.Option{engine.Args(50 * time.Millisecond)})
	assert.Equal(t, error(a.by), err)
}

// On a Manual clock, one Advance wakes a call that sleeps, and wakes it again if it then fetches or
// waits for its grants.
func TestManualClockWakesACallThatFetchesAfterItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := &faraway{takes: time.Millisecond, grant: func(w *engine.Want) { w.Got, w.Wait = true, 30*time.Millisecond }}
		a, w := newLeased("a", from), waiter()
		w.ask = w.take
		e, clock := sharedEngine(t, a, w)
		clock.SetSleep(clocks.SleepPark)
		ran := make(chan error, 1)
		go func() {
			entry, err := e.Enter(t.Context(), "orders", []engine.Option{engine.Args(50 * time.Millisecond)})
			entry.Exit()
			ran <- err
		}()
		clock.AwaitParked(1)
		clock.Advance(time.Second)
		assert.Equal(t, []time.Duration{50 * time.Millisecond, time.Millisecond, 30 * time.Millisecond}, clock.Slept())
		require.NoError(t, <-ran)
	})
}

// Units at hand are not kept through an unexpected wait: they are returned, and the call fetches
// others.
func TestUnitsOfALeaseAreNotTakenThroughAWait(t *testing.T) {
	from := new(faraway)
	a, b := newLeased("a", from), newLeased("b", from)
	a.units = 1
	e, clock := sharedEngine(t, a, b)
	from.grant = func(w *engine.Want) { // b grants a later bucket
		w.Got, w.Token = true, int64(len(from.rounds))
		if w.Limit == "b" && w.MaxWait > 0 {
			w.Wait, w.Borrowed = 30*time.Millisecond, true
		}
	}
	entry, err := e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	assert.Equal(t, [][]any{{"b"}, {"a"}}, from.rounds)
	assert.Equal(t, []int64{-1}, a.back)
	assert.Empty(t, b.back, "the call has waited for its bucket")
	assert.Equal(t, 30*time.Millisecond, since(clock))
	assert.Equal(t, []time.Duration{30 * time.Millisecond}, clock.Slept())
	entry.Exit()
}

// A call that fetches several times waits no longer than for one fetch.
func TestACallFetchesForOneTimeoutInAll(t *testing.T) {
	from := &faraway{takes: time.Second}
	a, b := newLeased("a", from), newLeased("b", from)
	a.timeout, b.timeout = 20*time.Millisecond, 15*time.Millisecond
	b.units = 1
	e, clock := sharedEngine(t, a, b, &fake{name: "quicker", ask: func(*engine.Invocation) engine.Verdict {
		if len(from.rounds) == 1 {
			b.units = 0 // as the call is asked again
		}
		return engine.Verdict{}
	}})
	entry, err := e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	assert.Equal(t, [][]any{{"a"}, {"b"}}, from.rounds)
	assert.Equal(t, []time.Duration{20 * time.Millisecond, 0}, from.most)
	assert.Equal(t, 20*time.Millisecond, since(clock))
	entry.Exit()
}

// A wait for another rule doesn't reduce the time for fetching.
func TestOtherWaitsAreNoPartOfTheTimeout(t *testing.T) {
	from := &faraway{takes: 8 * time.Millisecond}
	a, b := newLeased("a", from), newLeased("b", from)
	e, _ := sharedEngine(t, a, b)
	from.grant = func(w *engine.Want) {
		if w.Got = true; w.Limit == "b" && len(from.rounds) == 1 {
			w.Wait = 50 * time.Millisecond
		}
	}
	entry, err := e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	assert.Equal(t, [][]any{{"a", "b"}, {"a"}}, from.rounds)
	assert.Equal(t, []time.Duration{20 * time.Millisecond, 12 * time.Millisecond}, from.most)
	entry.Exit()
}

// A deadline before the bucket rejects the call, and its fetched units are returned.
func TestDeadlineBeforeWhatWasFetched(t *testing.T) {
	from := new(faraway)
	a := newLeased("a", from)
	e, clock := sharedEngine(t, a)
	from.grant = func(w *engine.Want) { w.Got, w.Token, w.Wait = true, 9, 30*time.Millisecond }
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, clock.Now()).Add(10*time.Millisecond))
	defer cancel()
	_, err := e.Enter(ctx, "orders", nil)
	assert.ErrorIs(t, err, core.ErrBlocked)
	assert.Equal(t, []int64{9}, a.back)
}

// A sharer that panics is skipped like any other slot, and logged under the name of its slot.
func TestASharerThatPanicsIsPassedOver(t *testing.T) {
	var out lines
	a := newLeased("a", nil)
	a.fails, a.units = true, 1
	chain := trial.Chain().With(a, engine.After("breaker"))
	e, _ := newEngine(t, engine.Config{Chain: chain, Logger: out.logger()})
	entry, err := e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	entry.Exit()
	assert.EqualValues(t, 1, e.Failures())
	assert.Contains(t, out.String(), "slot=a ")
}

// Taking from a lease allocates nothing, nor does being rejected.
func TestLeasesAllocateNothing(t *testing.T) {
	from := new(faraway)
	a := newLeased("a", from)
	a.units, a.full = 1<<40, true
	e, _ := sharedEngine(t, a)
	ctx := t.Context()
	run := func() {
		if entry, err := e.Enter(ctx, "orders", nil); err == nil {
			entry.Exit()
		}
	}
	run()
	race.AllocatesNothing(t, 100, run)
	a.units = 0
	race.AllocatesNothing(t, 100, run)
}
