package main

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/hotspot"
)

// refill shows one user's remaining units under the two ways of refilling.
func refill() (string, error) {
	b := begun(478, "Hotspot: what one user has left, and when it comes back",
		"A user asks twenty times at once, every 0.4 seconds. With reject and strict: false fifteen pass, then none until more than a second is over, then "+
			"twelve. With a token bucket fifteen pass, and then four each time, as units come back one by one.",
		"threshold: 10; one user asks 20 times at once, every 0.4 s. Numbers: how many pass")
	const ms = time.Millisecond
	for i, rule := range []hotspot.Rule{
		{Behavior: hotspot.Reject, Window: hotspot.Refill, Burst: 5},
		{Behavior: hotspot.TokenBucket, Burst: 14},
	} {
		p := panel{top: 108 + 190*float64(i), high: 120, to: 3600 * ms, most: 18}
		strict := ""
		if rule.Window == hotspot.Refill {
			strict = "strict: false, "
		}
		b.text("", edge, p.top-10, fmt.Sprintf("behavior: %v, %sburst: %d", rule.Behavior, strict, rule.Burst))
		p.frame(b, []float64{0, 15}, 400*ms)
		if err := refilled(b, p, rule); err != nil {
			return "", err
		}
	}
	return b.ended(), nil
}

func refilled(b *page, p panel, rule hotspot.Rule) error {
	const ms = time.Millisecond
	rule.Resource, rule.Param, rule.Threshold = "GET /orders", "user", 10
	g, clock, err := ruled(api.RuleSet{Hotspot: []hotspot.Rule{rule}})
	if err != nil {
		return err
	}
	defer g.Close()
	ctx, user := context.Background(), api.Param("user", "u-17")
	left := func() (float64, error) {
		x, err := g.Explain(ctx, rule.Resource, user)
		if err != nil {
			return 0, err
		}
		return float64(*x.Rules[0].Measures[0].Remaining), nil
	}
	path := ""
	note := func(at time.Duration) error {
		n, err := left()
		path += fmt.Sprintf("L%.1f %.1f", p.x(at), p.y(n))
		return err
	}
	for at := time.Duration(0); at <= p.to; at += 5 * ms {
		if err := note(at); err != nil {
			return err
		}
		if at%(400*ms) == 0 && at < p.to {
			passed := 0
			for range 20 {
				if e, err := g.Entry(ctx, rule.Resource, user); err == nil {
					e.Exit()
					passed++
				}
			}
			b.text("mid", p.x(at)+12, p.top+15, fmt.Sprint(passed))
			if err := note(at); err != nil {
				return err
			}
		}
		clock.Advance(5 * ms)
	}
	fmt.Fprintf(b, "  <path class=\"left\" d=\"M%s\"/>\n", path[1:])
	return nil
}
