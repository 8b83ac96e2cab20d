package main

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/meter"
)

// asker makes calls that each hold one permit for 100 ms.
type asker struct {
	class string // color
	calls int
	from  time.Duration
	every time.Duration
	level int
}

// served is the time for which a call held one of the permits.
type served struct {
	asker, permit int
	from          time.Duration
}

// queueing serves the calls of askers with four permits and one queue.
func queueing(askers []asker, sharing *meter.Sharing) (all []served) {
	const permits, lasts, tick = 4, 100 * time.Millisecond, 5 * time.Millisecond
	var g meter.Semaphore
	type call struct {
		asker, permit int
		until         time.Duration
		share         *meter.Share
	}
	var running []call
	now := time.Duration(0)
	if sharing != nil {
		sharing.Now = func() int64 { return int64(now) + 1 }
	}
	run := func(asker int, share *meter.Share) {
		free := 0
		for slices.ContainsFunc(running, func(c call) bool { return c.permit == free }) {
			free++
		}
		running = append(running, call{asker, free, now + lasts, share})
		all = append(all, served{asker, free, now})
	}
	for ; now <= time.Second; now += tick {
		for len(running) > 0 && running[0].until <= now {
			c := running[0]
			running = running[1:]
			if c.share != nil {
				c.share.Release(1, false)
			} else {
				g.Release(0, 1)
			}
		}
		for i, x := range askers {
			if now != x.from && (x.every == 0 || now < x.from || (now-x.from)%x.every != 0) {
				continue
			}
			for range x.calls {
				c := meter.Claim{Units: 1, Queue: 100, Limit: permits, Revision: 1}
				var got bool
				var share *meter.Share
				var place *meter.Waiter
				if sharing == nil {
					got, place = g.Join(0, c)
				} else {
					got, share, place = g.JoinShare(c, sharing, &meter.Tenant{Name: argument.Int(int64(i)), Level: x.level}, int64(now)+1)
				}
				if got {
					run(i, share)
				} else if place != nil {
					place.Attend(func() { run(i, place.Share()) })
				}
			}
		}
	}
	return all
}

// queues draws two queues below one another.
func queues(b *page, names [2]string, askers []asker, sharing *meter.Sharing) {
	for i, by := range []*meter.Sharing{nil, sharing} {
		p := panel{top: 128 + 190*float64(i), high: 120, to: time.Second, most: 4}
		b.text("", edge, p.top-10, names[i])
		p.frame(b, nil, 200*time.Millisecond)
		for _, s := range queueing(askers, by) {
			until := min(p.to, s.from+100*time.Millisecond)
			y := p.top + p.high*float64(s.permit)/4
			b.rect(askers[s.asker].class, p.x(s.from)+1, y+2, p.x(until)-p.x(s.from)-2, p.high/4-4)
		}
	}
}

// shares shows who gets the permits of an isolation rule, in order and with fair shares.
func shares() (string, error) {
	b := begun(490, "Isolation: four permits, two tenants",
		"A large tenant asks for twenty-four calls at once; from 30 milliseconds on a small one asks for one every 100 milliseconds. In order, the small tenant's "+
			"calls wait for all calls of the large one. With shares, each gets the next free permit.",
		"Each row is a permit, which a call holds for 100 ms. The small tenant asks every 100 ms")
	b.legend("kept", "24 calls of a large tenant, at once", "good", "calls of a small tenant")
	queues(b, [2]string{"first come, first served", "share: {by: param tenant}"}, []asker{
		{class: "kept", calls: 24},
		{class: "good", calls: 1, from: 30 * time.Millisecond, every: 100 * time.Millisecond},
	}, &meter.Sharing{By: "param tenant", PerShare: 100, MaxShares: 10})
	return b.ended(), nil
}

// criticality shows whose calls get the permits of an isolation rule, in order and by level.
func criticality() (string, error) {
	b := begun(490, "Isolation: four permits, three levels",
		"Twelve sheddable and eight critical calls come at once; from 30 milliseconds on a criticalPlus call comes every 100 milliseconds. In order, it waits for the "+
			"calls that came before. By level, it gets the next free permit, and critical calls run before sheddable ones.",
		"Each row is a permit, which a call holds for 100 ms. A criticalPlus call comes every 100 ms")
	b.legend("kept", "12 sheddable calls", "good", "8 critical calls", "first", "criticalPlus calls")
	queues(b, [2]string{"first come, first served", "shed: levels"}, []asker{
		{class: "kept", calls: 12, level: 3},
		{class: "good", calls: 8, level: 1},
		{class: "first", calls: 1, from: 30 * time.Millisecond, every: 100 * time.Millisecond},
	}, &meter.Sharing{PerShare: 100, MaxShares: 1, Levels: true})
	return b.ended(), nil
}
