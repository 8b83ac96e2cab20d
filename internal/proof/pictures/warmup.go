package main

import (
	"context"
	"math"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// The rule in docs/rules/flow.md: 100 per second, warming up for ten seconds, a third when cold.
const (
	warm   = 100.0
	period = 10.0 // seconds
	cold   = warm / 3
)

// limitAt returns the limit in theory: passing calls take tokens from the store, and the limit
// depends on the store. With slope k and u tokens above the line, u' = -1/(k·u + 1/C), which the
// root solves. Without calls the store gains C per second.
func limitAt(seconds, pause, resumed float64) float64 {
	const full = 500 // tokens above the line
	slope := (1/cold - 1/warm) / full
	rising := func(t float64) float64 {
		return min(warm, 1/math.Sqrt(1/(warm*warm)+2*slope*max(0, period-t)))
	}
	switch {
	case seconds < pause:
		return rising(seconds)
	case seconds < resumed:
		return 1 / (slope*min(full, warm*(seconds-pause)) + 1/warm)
	default:
		return rising(seconds - resumed)
	}
}

// warmUp shows the calls that pass in each second next to the theoretical limit.
func warmUp() (string, error) {
	const pause, resumed, end = 14, 19, 32
	g, clock, err := ruled(api.RuleSet{Flow: []flow.Rule{{Resource: "GET /search", Threshold: warm, Behavior: flow.WarmUp}}})
	if err != nil {
		return "", err
	}
	defer g.Close()
	p := panel{top: 104, high: 220, to: end * time.Second, most: 120}
	b := begun(380, "Warm-up: what passes, and the limit in theory",
		"Calls that pass in each second under a warm-up rule of 100 a second, as bars, and the limit by the formula, as a line. "+
			"Both rise from 33 to 100 within ten to eleven seconds, slowly first. After a pause of five seconds they begin at 33 again.",
		"threshold: 100, warmUpPeriod: 10s, coldFactor: 3; 500 calls a second, none from 14 s to 19 s")
	b.legend("good", "passed in the second, measured", "theory", "limit, from the formula")
	p.frame(b, []float64{0, 33, 100}, 2*time.Second)
	for second := range end {
		passed := 0
		for range 500 {
			if second < pause || second >= resumed {
				if e, err := g.Entry(context.Background(), "GET /search"); err == nil {
					e.Exit()
					passed++
				}
			}
			clock.Advance(2 * time.Millisecond)
		}
		at := time.Duration(second) * time.Second
		p.bar(b, "good", at, at+time.Second, 0, float64(passed))
	}
	p.curve(b, "theory", 100*time.Millisecond, func(at time.Duration) float64 { return limitAt(at.Seconds(), pause, resumed) })
	b.text("note", 32, 366, "The limit of a second goes by the second before it: so the bars follow the line.")
	return b.ended(), nil
}
