package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// arrival is an arriving call and its outcome.
type arrival struct {
	comes, runs time.Duration // from the begin; runs is set if it passes
	refused     bool
	prioritized bool
}

// queued sends calls to a throttle, each on its own goroutine if it waits.
func queued(rule flow.Rule, calls []arrival) error {
	g, clock, err := ruled(api.RuleSet{Flow: []flow.Rule{rule}})
	if err != nil {
		return err
	}
	defer g.Close()
	begin := clock.Now()
	since := func() time.Duration { return time.Duration(clock.Now() - begin) }
	ended := make(chan struct{}, len(calls))
	// step advances the clock, and waits until all calls wait again or have recorded when they ran.
	step := func(come int) {
		clock.Advance(time.Millisecond)
		for len(ended)+clock.Parked() < come {
			runtime.Gosched()
		}
	}
	for i := range calls {
		c := &calls[i]
		for since() < c.comes {
			step(i)
		}
		var opts []api.Option
		if c.prioritized {
			opts = append(opts, api.Prioritized())
		}
		ctx, cancel := context.WithCancel(context.Background()) // a context that can end: others can jump ahead of such calls
		defer cancel()
		x, err := g.Explain(ctx, rule.Resource, opts...)
		if err != nil {
			return err
		}
		come := func() {
			e, err := g.Entry(ctx, rule.Resource, opts...)
			if err != nil {
				c.refused = true
			} else {
				c.runs = since()
				e.Exit()
			}
			ended <- struct{}{}
		}
		if x.Outcome != core.Waits {
			come()
			continue
		}
		waiting := clock.Parked()
		go come()
		clock.AwaitParked(waiting + 1)
	}
	for len(ended) < len(calls) {
		step(len(calls))
	}
	return nil
}

// throttle shows when calls arrive and when they run: at even distances, and prioritized ones
// before others.
func throttle() (string, error) {
	const ms = time.Millisecond
	var burst []arrival
	for range 10 {
		burst = append(burst, arrival{})
	}
	for range 3 {
		burst = append(burst, arrival{comes: 90 * ms})
	}
	if err := queued(flow.Rule{Resource: "GET /reports", Threshold: 100, Behavior: flow.Throttle, MaxWait: 50 * ms}, burst); err != nil {
		return "", err
	}
	var mixed []arrival
	for range 5 {
		mixed = append(mixed, arrival{})
	}
	for range 3 {
		mixed = append(mixed, arrival{comes: 25 * ms, prioritized: true})
	}
	if err := queued(flow.Rule{Resource: "POST /orders", Threshold: 50, Behavior: flow.Throttle}, mixed); err != nil {
		return "", err
	}
	b := begun(452, "Throttle: calls come, and run at even distances",
		"Above, ten calls come at once to a throttle of 100 a second with a longest wait of 50 ms: they run 10 ms apart, and four are "+
			"refused. Three more after a pause: the first runs at once. Below, five calls wait at 50 a second when three prioritized ones "+
			"come: every second call that runs is a prioritized one.",
		"Each line is a call: from when it comes, above, to when it runs, below")
	b.legend("good", "runs", "first", "prioritized, runs", "bad", "refused")
	lanes(b, 128, "threshold: 100, maxWait: 50ms", 120*ms, 10*ms, burst)
	lanes(b, 302, "threshold: 50, maxWait: 500ms", 150*ms, 20*ms, mixed)
	return b.ended(), nil
}

// lanes draws calls between the line on which they arrive and the line on which they run.
// Simultaneous calls are drawn side by side.
func lanes(b *page, top float64, title string, to, every time.Duration, calls []arrival) {
	p := panel{top: top, high: 96, from: -every, to: to + every, most: 1}
	b.text("", edge, top-8, title)
	b.rect("box", edge, p.top, inner, p.high)
	for at := time.Duration(0); at <= to; at += every {
		b.segment("grid", p.x(at), p.top, p.x(at), p.top+p.high)
		if at%(20*time.Millisecond) == 0 {
			b.text("note mid", p.x(at), p.top+p.high+20, at.String())
		}
	}
	comes, runs := p.top+22, p.top+p.high-16
	beside, refused, last := 0, 0, time.Duration(-1)
	for _, c := range calls {
		if c.comes != last {
			beside, refused, last = 0, 0, c.comes
		}
		x := p.x(c.comes) + 4*float64(beside)
		if beside++; c.refused {
			x = p.x(c.comes) + 12*float64(refused)
			refused++
			fmt.Fprintf(b, "  <path class=\"cross\" d=\"M%.1f %.1fl8 8m0 -8l-8 8\"/>\n", x, comes-16)
			continue
		}
		way, dot := "way", "good"
		if c.prioritized {
			way, dot = "wayfirst", "first"
		}
		b.segment(way, x, comes, p.x(c.runs), runs)
		b.dot(dot, p.x(c.runs), runs)
	}
}
