package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/internal/proof/plant"
	"github.com/penstock-go/penstock/internal/sampler"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

// machines overloads a simulated machine until system rules for its load, its processors or the
// response times act. Under a yes-or-no rule, each call must get the verdict that follows from the
// readings and the log of completions; a steady rule must settle, use the machine's capacity, and
// admit everybody again when the crowd has dispersed.
func machines(r *round) error {
	rule := system.Rule{ID: "host", Metric: pick(r, system.CPU, system.CPU, system.RT, system.Load)}
	switch rule.Metric {
	case system.RT:
		rule.MaxRT, rule.Interval, rule.Buckets = r.between(10*ms, 200*ms), pick(r, 100*ms, time.Second, 2*time.Second), pick(r, 1, 2, 10)
	case system.CPU:
		rule.Threshold, rule.Strategy = 0.3+0.6*r.Float64(), pick(r, system.Steady, system.BBR, system.Gate)
	case system.Load:
		rule.Threshold, rule.Strategy = 1+10*r.Float64(), pick(r, system.BBR, system.Gate)
	}
	cpu, idle := r.between(2*ms, 20*ms), r.between(0, 60*ms)
	p := &loaded{Plant: plant.Plant{CPUs: float64(pick(r, 1, 2, 4, 8))}, work: func() (time.Duration, time.Duration) { return cpu, idle }}
	p.guard, p.clock = r.guard(api.Config{Host: machineHost{p}})
	defer p.Stop()
	if err := p.guard.LoadRules(rules.Set{System: []system.Rule{rule}}); err != nil {
		return err
	}
	rule = p.guard.Rules().System[0]
	serves := p.CPUs / cpu.Seconds() // per second
	r.step("%+v on %v processors, each call works for %v and waits for %v: %.0f calls per second", rule, p.CPUs, cpu, idle, serves)
	defer func() { r.offered.Add(int64(p.offered)) }()
	if rule.Strategy == system.Steady && rule.Metric != system.RT {
		return settles(r, p, rule, serves)
	}
	p.fails = func() bool { return r.one(10) }
	for range 3 + r.IntN(4) {
		rate := serves * pick(r, 0.2, 0.8, 1.5, 3)
		for range 500 + r.IntN(2000)*pick(r, 1, 10*btoi(rule.Metric == system.Load)) {
			err := p.step(rate, func(admitted bool) error {
				r.checked.Add(1)
				return p.judge(rule, admitted)
			})
			if err != nil {
				return fmt.Errorf("at %.0f calls per second: %w", rate, err)
			}
		}
	}
	return nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// judge returns an error if a call's verdict is wrong.
func (p *loaded) judge(rule system.Rule, admitted bool) error {
	now := p.clock.Now()
	if rule.Metric == system.RT {
		s := shape{rule.Interval, rule.Buckets, false}
		n, sum, _ := p.within(s, s.number(now)-s.span()+1, s.number(now))
		mean := sum / time.Duration(max(1, n))
		if (mean <= rule.MaxRT) != admitted && mean != rule.MaxRT {
			return fmt.Errorf("the mean of the %d calls that ended in %v is %v, and admitted is %v", n, rule.Interval, mean, admitted)
		}
		return nil
	}
	value, known := p.reading()
	may := !known || value <= rule.Threshold
	why := ""
	if !may && rule.Strategy == system.BBR {
		may, why = p.servable(now)
	}
	if may != admitted {
		return fmt.Errorf("%s is %v, with a threshold of %v; %d in flight%s; admitted is %v", rule.Metric, value, rule.Threshold, p.InFlight(), why, admitted)
	}
	return nil
}

// servable is the BBR check of docs/rules/system.md: at most one call in flight, or no more than
// throughput times least response time, of the last second and of the last whole one.
func (p *loaded) servable(now int64) (bool, string) {
	if p.InFlight() <= 1 {
		return true, ""
	}
	second, whole := shape{time.Second, 2, false}, shape{time.Second, 1, false}
	recent, _, least := p.within(second, second.number(now)-1, second.number(now))
	last, _, lastLeast := p.within(whole, whole.number(now)-1, whole.number(now)-1)
	switch {
	case recent == 0 && last == 0:
		return true, ""
	case recent == 0 || last > 0 && lastLeast < least:
		least = lastLeast
	}
	most := float64(max(recent, last)) * max(least, time.Nanosecond).Seconds()
	return float64(p.InFlight()) <= most, fmt.Sprintf(", of %.2f that can be served at once", most)
}

// settles offers light load, then far too much, then light load again.
func settles(r *round, p *loaded, rule system.Rule, serves float64) error {
	run := func(rate float64, samples int) (admitted, done, inFlight []float64, err error) {
		for range samples {
			before, ended := p.admitted, len(p.ended)
			for range sampler.Period / ms {
				if err := p.step(rate, p.oneCeiling); err != nil {
					return nil, nil, nil, err
				}
			}
			admitted = append(admitted, float64(p.admitted-before)/sampler.Period.Seconds())
			done = append(done, float64(len(p.ended)-ended)/sampler.Period.Seconds())
			inFlight = append(inFlight, float64(p.InFlight()))
		}
		return admitted, done, inFlight, nil
	}
	quiet := rule.Threshold * serves / 2
	admitted, _, _, err := run(quiet, 20)
	if err != nil {
		return err
	}
	r.checked.Add(1)
	if got := mean(admitted); got < 0.98*quiet-4 {
		return fmt.Errorf("half of the allowed rate is offered, %.0f per second, but %.0f are admitted", quiet, got)
	}
	over := serves * (1.5 + 2.5*r.Float64())
	if _, _, _, err = run(over, 24); err != nil {
		return err
	}
	admitted, done, inFlight, err := run(over, 80)
	if err != nil {
		return err
	}
	r.checked.Add(3)
	r.step("overload of %.0f per second: %.0f admitted, %.0f done, %.1f in flight (maximum %.0f)", over, mean(admitted), mean(done), mean(inFlight), slices.Max(inFlight))
	if got := mean(done); got < 0.8*rule.Threshold*serves {
		return fmt.Errorf("overloaded with %.0f per second, it does %.0f of %.0f, and the threshold is %.2f", over, got, serves, rule.Threshold)
	}
	if _, _, _, err = run(quiet, 24); err != nil {
		return err
	}
	admitted, _, _, err = run(quiet, 20)
	if err != nil {
		return err
	}
	r.checked.Add(1)
	if got := mean(admitted); got < 0.98*quiet-4 {
		return fmt.Errorf("the crowd has dispersed, %.0f calls arrive per second, but %.0f are admitted", quiet, got)
	}
	return nil
}

// oneCeiling checks that between two readings a steady rule admits calls up to some number in
// flight and none above it.
func (p *loaded) oneCeiling(admitted bool) error {
	if p.seen != len(p.readings) {
		p.seen, p.highest, p.lowest = len(p.readings), -1, math.MaxInt
	}
	if admitted {
		p.highest = max(p.highest, p.InFlight())
	} else {
		p.lowest = min(p.lowest, p.InFlight())
	}
	if p.highest >= p.lowest {
		return fmt.Errorf("between two readings a call was admitted with %d in flight, but another was refused with %d", p.highest, p.lowest)
	}
	return nil
}

func mean(of []float64) (m float64) {
	for _, v := range of {
		m += v / float64(len(of))
	}
	return m
}
