package main

import (
	"context"
	"errors"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
)

// breakerStates shows a service that fails for a while, and the states of its breaker.
func breakerStates() (string, error) {
	const (
		s           = time.Second
		step        = 10 * time.Millisecond // a call comes at each
		lasts       = 250 * time.Millisecond
		slice       = 250 * time.Millisecond // of the bars
		end         = 15 * s
		fails, well = 2 * s, 8 * s
	)
	g, clock, err := ruled(api.RuleSet{Breaker: []breaker.Rule{{
		Resource: "GET /orders", Threshold: 0.5, Interval: 2 * s, Recovery: 3 * s, Ramp: s,
	}}})
	if err != nil {
		return "", err
	}
	defer g.Close()

	p := panel{top: 148, high: 190, to: end, most: 25}
	b := begun(424, "Breaker: a service fails for six seconds",
		"A hundred calls a second to a service that fails from second 2 to second 8. The breaker is closed, opens when half of the calls "+
			"of two seconds have failed, lets a probe in after three seconds, which fails, and another three seconds later, which goes well. Then it lets "+
			"in one call of 100, of 10, of 2, each for a second, and is closed.",
		"threshold: 0.5, interval: 2s, recovery: 3s, ramp: 1s; 100 calls a second, of 250 ms")
	b.legend("good", "went well", "bad", "failed", "kept", "refused")
	p.frame(b, []float64{0, 25}, s)

	type call struct {
		api.Admitted
		comes time.Duration
	}
	var under []call
	state, since := breaker.Closed, time.Duration(0)
	strip := func(until time.Duration) {
		b.rect(state.String(), p.x(since), 108, p.x(until)-p.x(since), 28)
		if until-since >= s {
			b.text("mid", (p.x(since)+p.x(until))/2, 127, state.String())
		}
	}
	outcomes := make([]string, end/step) // of the call that comes at each step
	for at := time.Duration(0); at < end; at += step {
		for len(under) > 0 && under[0].comes+lasts <= at {
			outcomes[under[0].comes/step] = "good"
			if at >= fails && at < well {
				under[0].Fail(errors.New("down"))
				outcomes[under[0].comes/step] = "bad"
			}
			under[0].Exit()
			under = under[1:]
		}
		if e, err := g.Entry(context.Background(), "GET /orders"); err == nil {
			under = append(under, call{e, at})
		} else {
			outcomes[at/step] = "kept"
		}
		if now := g.Breakers()[0].State; now != state {
			strip(at)
			state, since = now, at
		}
		clock.Advance(step)
	}
	strip(end)
	for _, c := range under {
		c.Exit()
	}
	for at := time.Duration(0); at < end-slice; at += slice { // calls of the last one are still running
		sum := make(map[string]float64)
		for _, outcome := range outcomes[at/step : (at+slice)/step] {
			sum[outcome]++
		}
		p.bar(b, "good", at, at+slice, 0, sum["good"])
		p.bar(b, "bad", at, at+slice, sum["good"], sum["bad"])
		p.bar(b, "kept", at, at+slice, sum["good"]+sum["bad"], sum["kept"])
	}
	b.text("note", 32, 386, "Bars: the calls that come in a quarter of a second. Narrow bands: half open, a probe")
	b.text("note", 32, 406, "is under way. The service fails what ends between 2 s and 8 s.")
	return b.ended(), nil
}
