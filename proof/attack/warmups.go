package main

import (
	"fmt"
	"math"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// warmups asks a cold resource for more than it has, at rates from one in an hour to
// hundreds a second. Cold it gives its threshold divided by the cold factor, never more
// than the threshold, and if it is asked all the time all of that in the end.
func warmups(r *round) error {
	rule := flow.Rule{
		Resource: "orders", Behavior: flow.WarmUp,
		Threshold:    pick(r, 1, 2, 3, 5, 10, 30, 100, 300, 1000, float64(1+r.IntN(500)), 0.5+float64(r.IntN(50))),
		Interval:     pick(r, 100*ms, time.Second, time.Second, 10*time.Second, time.Minute, 5*time.Minute, time.Hour, 24*time.Hour),
		WarmUpPeriod: pick(r, time.Second, 3*time.Second, 10*time.Second, time.Minute),
		ColdFactor:   pick(r, 2, 3, 3, 7, 50),
	}
	if r.one(3) {
		rule.Behavior, rule.MaxWait = flow.WarmUpThrottle, flow.MaxMaxWait
	} else {
		rule.Window = flow.Ring // which lets all of the limit through
	}
	g, clock := r.guard(api.Config{})
	if err := g.LoadRules(rules.Set{Flow: []flow.Rule{rule}}); err != nil {
		return err
	}
	rule = g.Rules().Flow[0]
	r.step("%+v", rule)
	clock.Advance(r.between(0, 3*time.Second))
	if rule.Behavior == flow.WarmUpThrottle {
		return coldTurns(r, g, clock, rule)
	}
	cold := max(rule.Threshold/float64(rule.ColdFactor), min(rule.Threshold, 1))
	passed := 0
	for range int(rule.Threshold) + 2 {
		if enters(r, g) {
			passed++
		}
	}
	r.checked.Add(1)
	if least, most := math.Floor(cold*(1-1e-9)), math.Floor(cold*(1+1e-9)); float64(passed) < least || float64(passed) > most {
		return fmt.Errorf("cold, %v per %v with factor %d lets %d through at once, and should let %.4g",
			rule.Threshold, rule.Interval, rule.ColdFactor, passed, cold)
	}
	switch {
	case rule.Interval == time.Second:
		return warms(r, g, clock, rule)
	case rule.Threshold*rule.WarmUpPeriod.Seconds()/rule.Interval.Seconds() < float64(1+rule.ColdFactor)/2: // less than a token
		return warmsSlowly(r, g, clock, rule)
	}
	return nil
}

func enters(r *round, g *api.Guard) bool {
	r.offered.Add(1)
	e, err := g.Entry(r.ctx, "orders")
	e.Exit()
	return err == nil
}

// warms asks for more than there is in each bucket of each second.
func warms(r *round, g *api.Guard, clock *clocks.Manual, rule flow.Rule) error {
	width := rule.Interval / time.Duration(rule.Buckets)
	clock.AdvanceTo(clock.Now() - clock.Now()%int64(rule.Interval) + int64(rule.Interval))
	var last int
	for i := range 4 * (int(rule.WarmUpPeriod.Seconds()) + 2) * (1 + rule.ColdFactor/3) {
		last = 0
		for range rule.Buckets {
			for range int(rule.Threshold) + 1 {
				if !enters(r, g) {
					break
				}
				last++
			}
			clock.Advance(width)
		}
		r.checked.Add(1)
		if float64(last) > rule.Threshold {
			return fmt.Errorf("second %d: %d passed", i, last)
		}
	}
	if last != int(rule.Threshold) {
		return fmt.Errorf("%v a second with factor %d and period %v: asked all the time, it lets %d through in the end",
			rule.Threshold, rule.ColdFactor, rule.WarmUpPeriod, last)
	}
	return nil
}

// warmsSlowly has calls come evenly, as often as the rule lets them at the most: none too
// often, for at such a rate a pause of a few calls cools.
func warmsSlowly(r *round, g *api.Guard, clock *clocks.Manual, rule flow.Rule) error {
	clock.Advance(2 * rule.Interval)
	all := max(1, int(rule.Threshold))
	apart := rule.Interval/time.Duration(all) + 1
	warming := max(4*all, int(time.Duration(4*rule.ColdFactor)*(rule.WarmUpPeriod+rule.Interval)/apart))
	passed := 0
	for i := range warming + all {
		if enters(r, g) && i >= warming {
			passed++
		}
		clock.Advance(apart)
	}
	r.checked.Add(1)
	if passed < all-1 {
		return fmt.Errorf("%v per %v with factor %d and period %v: of calls %v apart it lets %d of %d through in the end",
			rule.Threshold, rule.Interval, rule.ColdFactor, rule.WarmUpPeriod, apart, passed, all)
	}
	return nil
}

// coldTurns looks how far apart the first calls of a cold resource are that queue.
func coldTurns(r *round, g *api.Guard, clock *clocks.Manual, rule flow.Rule) error {
	clock.SetSleep(clocks.SleepRecord)
	want := float64(rule.Interval) / rule.Threshold * float64(rule.ColdFactor)
	if want > float64(rule.MaxWait) {
		return nil
	}
	for range 2 {
		enters(r, g)
	}
	slept := clock.Slept()
	r.checked.Add(1)
	if len(slept) != 1 || math.Abs(float64(slept[0])-want) > 2+want*1e-9 {
		return fmt.Errorf("cold, %v per %v with factor %d: the second call sleeps %v, and should %v",
			rule.Threshold, rule.Interval, rule.ColdFactor, slept, time.Duration(want))
	}
	return nil
}
