package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

// ends sets clocks to where their range begins or ends, and makes calls there. A rule that
// has refused lets somebody in when its interval is over, a refusal says when to come
// again in a time that can be waited for, names that nobody needs any more make room for
// others, and the tree can be read.
func ends(r *round) error {
	clock := edgeClock(r)
	if clock == nil {
		return nil // it refuses the time
	}
	g, _ := r.bareGuard(api.Config{Clock: clock})
	clock.SetSleep(pick(r, clocks.SleepRecord, clocks.SleepRecord, clocks.SleepAdvance))
	r.step("the clock is at %d, %v from the end", clock.Now(), time.Duration(math.MaxInt64-max(0, clock.Now())))
	set := drawSet(r, 2)
	if err := g.LoadRules(set); err != nil {
		return err
	}
	r.step("rules:\n%s", say(g.Rules()))
	var held []core.Entry
	for range 10 + r.IntN(60) {
		switch n := r.IntN(10); {
		case n < 6:
			e, err := tryAt(r, g, clock, drawCall(r, 4))
			if err != nil {
				return err
			}
			held = append(held, e)
		case n < 7 && len(held) > 0:
			held[0].Exit()
			held = held[1:]
		case n < 8:
			set, _ = reshape(r, set)
			if err := g.LoadRules(set); err != nil {
				return err
			}
		default:
			leap(r, clock)
		}
		r.checked.Add(1)
		_ = g.Tree()
		_ = g.Breakers()
	}
	for _, e := range held {
		e.Exit()
	}
	if math.MaxInt64-max(0, clock.Now()) > int64(50*time.Hour) { // it is looked at as of two days later
		if err := settled(g); err != nil {
			return err
		}
	}
	if err := findsRoom(r); err != nil {
		return err
	}
	return comesBack(r)
}

// edgeClock returns a clock near an end of its range, or one that is given a time which
// it can't show; nil if it refuses that.
func edgeClock(r *round) (clock *clocks.Manual) {
	near := time.Duration(pick[int64](r, 0, 1, int64(time.Second), int64(time.Hour), int64(48*time.Hour), 1<<55))
	at := pick(r,
		time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).Add(-near), time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC).Add(near),
		time.Unix(0, math.MaxInt64-int64(near)), time.Unix(0, math.MinInt64+int64(near)),
		time.Unix(0, int64(near)), time.Unix(0, -int64(near)), time.Unix(0, -1),
		time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC))
	defer func() {
		if recover() != nil { // so near to the end that it may say no
			clock = nil
		}
	}()
	return clocks.NewManual(at)
}

// leap moves the clock by anything up to all that is left.
func leap(r *round, clock *clocks.Manual) {
	d := time.Duration(pick(r, 0, 1, int64(time.Second), int64(time.Hour), int64(48*time.Hour), math.MaxInt64/2, math.MaxInt64, -1, math.MinInt64))
	if r.one(2) {
		d = r.between(0, 3*time.Second)
	}
	before := clock.Now()
	func() {
		defer func() { _ = recover() }() // it may refuse to go further than it can
		clock.Advance(d)
	}()
	r.step("%v later it is %d", d, clock.Now())
	if clock.Now() < before {
		panic("a clock went back")
	}
}

// soon is the longest time after which a refused call may be told to come again: the
// rules here have intervals and waits of a day at the most.
const soon = 100 * 365 * 24 * time.Hour

// tryAt makes a call, and if it is refused looks when it may come again.
func tryAt(r *round, g *api.Guard, clock *clocks.Manual, c *call) (core.Entry, error) {
	r.offered.Add(1)
	r.checked.Add(1)
	e, err := g.Entry(from(r.ctx, c.context, c.origin), c.resource, c.options()...)
	r.step("%d: %v: %v", clock.Now(), c.resource, err)
	if block, ok := errors.AsType[*core.BlockError](err); ok {
		if after, _ := block.RetryAfter(); after < 0 || after > soon {
			return e, fmt.Errorf("%s rule %q at %d refuses a call until %v later", block.Kind, block.Rule, clock.Now(), after)
		}
	}
	return e, nil
}

// comesBack fills the limits of plain rules at an edge, and comes again when their
// interval is over.
func comesBack(r *round) error {
	clock := edgeClock(r)
	if clock == nil {
		return nil
	}
	g, _ := r.bareGuard(api.Config{Clock: clock})
	set, interval := simpleSet(r)
	if err := g.LoadRules(set); err != nil {
		return err
	}
	fill := func() (passed int) {
		for range 3 {
			r.offered.Add(1)
			e, err := g.Entry(r.ctx, "orders", api.Inbound(), api.Param("user", 1))
			if e.Exit(); err == nil {
				passed++
			}
		}
		return passed
	}
	for range 5 {
		at, passed := clock.Now(), fill()
		r.checked.Add(1)
		if passed != 1 {
			return fmt.Errorf("at %d: of three calls, with a limit of one in %v, %d passed\n%s", at, interval, passed, say(set))
		}
		func() {
			defer func() { _ = recover() }()
			clock.Advance(2*interval + time.Duration(r.Int64N(int64(interval))))
		}()
		if clock.Now()-at <= 2*int64(interval) { // it could not go so far
			return nil
		}
	}
	return nil
}

// simpleSet returns one rule, of some family, that admits one call to "orders" in an
// interval.
func simpleSet(r *round) (set rules.Set, interval time.Duration) {
	interval = pick(r, 10*ms, time.Second, time.Minute, time.Hour, 24*time.Hour)
	switch r.IntN(4) {
	case 0:
		set.System = []system.Rule{{Metric: system.QPS, Threshold: 1, Interval: interval, Strict: r.one(2)}}
	case 1:
		set.Hotspot = []hotspot.Rule{{Resource: "orders", Param: "user", Threshold: 1, Interval: interval}}
	case 2:
		set.Flow = []flow.Rule{{Resource: "orders", Threshold: 1, Interval: interval, Window: pick(r, flow.Strict, flow.Ring)}}
	case 3:
		set.Flow = []flow.Rule{{Resource: "orders", Threshold: 1, Interval: interval, Behavior: flow.Throttle, MaxWait: 1}}
	}
	return set, interval
}
