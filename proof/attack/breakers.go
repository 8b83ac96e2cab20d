package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/proof/trial"
	"github.com/penstock-go/penstock/rules"
)

// breakers has calls fail and hang, alone and 64 at an instant. A breaker must open when
// the log of those that ended says so, and not before, let nobody in until its recovery is
// over, never have more probes out than it may, and recover whatever became of them; and
// of the endpoints that an outlier rule knows there must never be more ejected than its share.
func breakers(r *round) error {
	if r.one(4) {
		return outliers(r)
	}
	g, clock := r.guard(api.Config{})
	rule := draw(func() breaker.Rule {
		rule := drawBreaker(r, "breaker")
		rule.Mode, rule.Resource, rule.Match, rule.Exclude, rule.Ramp = spec.Enforce, "orders", spec.MatchExact, nil, 0
		return rule
	}, breaker.Rule.Normalized)
	if err := g.LoadRules(rules.Set{Breaker: []breaker.Rule{rule}}); err != nil {
		return err
	}
	b := &breakerLog{Rule: rule, window: shape{rule.Interval, rule.Buckets, false}}
	r.step("%+v", rule)
	type job struct {
		entry core.Entry
		came  int64
		in    admitted
		fails bool
	}
	var running []job
	exit := func(i int) error {
		j := running[i]
		running = slices.Delete(running, i, i+1)
		if j.fails {
			j.entry.Fail(errBroken)
		}
		j.entry.Exit()
		now := clock.Now()
		b.ended(j.in, now, j.fails, time.Duration(now-j.came))
		r.step("%v: call of state %d ends, fails: %v", time.Duration(now-start.UnixNano()), j.in.state, j.fails)
		return nil
	}
	sick := 1 + r.IntN(8)
	for range 100 + r.IntN(200) {
		r.offered.Add(1)
		switch k := r.IntN(10); {
		case k < 5:
			may := b.asks(clock.Now())
			e, err := g.Entry(r.ctx, "orders")
			r.checked.Add(1)
			r.step("%v: a call: %v", time.Duration(clock.Now()-start.UnixNano()), err)
			if (err == nil) != may {
				return fmt.Errorf("%s: the call got %s", b, fate(err))
			}
			if err == nil {
				running = append(running, job{e, clock.Now(), b.enter(clock.Now()), r.one(sick)})
			}
		case k < 6 && b.state == breaker.Open && clock.Now() >= b.until:
			entries := make([]core.Entry, callers)
			trial.Together(callers, func(i int) { entries[i], _ = g.Entry(r.ctx, "orders") })
			probes := 0
			for _, e := range entries {
				if e != (core.Entry{}) {
					probes++
					running = append(running, job{e, clock.Now(), b.enter(clock.Now()), r.one(sick)})
				}
			}
			r.offered.Add(callers)
			r.checked.Add(1)
			if probes != rule.Probes {
				return fmt.Errorf("%s: of 64 calls at once %d came in", b, probes)
			}
		case k < 8 && len(running) > 0:
			if err := exit(r.IntN(len(running))); err != nil {
				return err
			}
		default:
			clock.Advance(r.between(0, pick(r, time.Nanosecond, ms, rule.Interval/time.Duration(max(1, rule.Buckets)), rule.Interval, rule.Recovery, rule.ProbeTimeout)))
		}
	}
	for len(running) > 0 {
		if err := exit(0); err != nil {
			return err
		}
	}
	return b.recovers(r, g, clock)
}

// recovers waits for as long as a breaker may take, and has all calls go well.
func (b *breakerLog) recovers(r *round, g *api.Guard, clock *clocks.Manual) error {
	for range 3 {
		clock.Advance(b.Recovery + b.ProbeTimeout + b.Interval)
		for range b.Probes {
			e, err := g.Entry(r.ctx, "orders")
			r.offered.Add(1)
			r.checked.Add(1)
			if err != nil && b.state != breaker.Closed {
				return fmt.Errorf("%s does not recover: %w", b, err)
			}
			e.Exit()
		}
	}
	if s := g.Breakers(); len(s) != 1 || s[0].State != breaker.Closed {
		return fmt.Errorf("when all went well for three times its recovery, the breaker is %+v", s)
	}
	return nil
}
