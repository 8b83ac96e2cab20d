package main

import (
	"context"
	"errors"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/upstream"
)

// upstreamPause shows what a server gets that asks for a pause, without a rule and with one.
func upstreamPause() (string, error) {
	b := begun(480, "Upstream: a server says Retry-After: 5",
		"A hundred calls a second, to a server that answers all calls from second 2 to second 6 with 503 and Retry-After: 5. Without a rule, it gets all of "+
			"them. With one, it gets none from the first such answer until the pause is over, and then more and more within a tenth of that time.",
		"100 calls a second; from 2 s to 6 s the server answers 503")
	b.legend("good", "served", "bad", "answered with 503", "kept", "refused here")
	for i, name := range []string{"without a rule", "obey: true"} {
		p := panel{top: 130 + 180*float64(i), high: 110, to: 10 * time.Second, most: 50}
		b.text("", edge, p.top-10, name)
		p.frame(b, []float64{0, 50}, time.Second)
		if err := pausing(b, p, i == 1); err != nil {
			return "", err
		}
	}
	b.text("note", 32, 462, "Bars: the calls of half a second. Narrow band: calls come back one by one, at random instants")
	return b.ended(), nil
}

// pausing draws the calls of ten seconds.
func pausing(b *page, p panel, obey bool) error {
	const (
		step, slice = 10 * time.Millisecond, 500 * time.Millisecond
		away, back  = 2 * time.Second, 6 * time.Second
		pause       = 5 * time.Second
	)
	var set api.RuleSet
	if obey {
		set.Upstream = []upstream.Rule{{Resource: "GET api.example.com", Obey: true}}
	}
	g, clock, err := ruled(set)
	if err != nil {
		return err
	}
	defer g.Close()
	sum := make(map[string]float64)
	for at := time.Duration(0); at < p.to; at += step {
		if at%slice == 0 {
			clear(sum)
		}
		switch e, err := g.Entry(context.Background(), "GET api.example.com"); {
		case err != nil:
			sum["kept"]++
		case at >= away && at < back:
			sum["bad"]++
			e.Fail(api.Overloaded(errors.New("503"), pause))
			e.Exit()
		default:
			sum["good"]++
			e.Exit()
		}
		clock.Advance(step)
		if from := at + step - slice; from >= 0 && from%slice == 0 {
			if obey && from == away+pause { // which call passes is drawn at random
				b.rect("halfOpen", p.x(from)+1, p.top, p.x(from+slice)-p.x(from)-2, p.high)
				continue
			}
			p.bar(b, "good", from, from+slice, 0, sum["good"])
			p.bar(b, "bad", from, from+slice, sum["good"], sum["bad"])
			p.bar(b, "kept", from, from+slice, sum["good"]+sum["bad"], sum["kept"])
		}
	}
	return nil
}
