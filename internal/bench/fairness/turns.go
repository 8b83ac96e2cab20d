package main

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shared"
)

// turns simulates a throttle. Its tenants ask at random.
type turns struct {
	simulation
	lock    shared.Mutex
	pacer   meter.Pacer
	spacing time.Duration
	maxWait time.Duration
}

// playTurns returns the outcome for a throttle of limit calls a second, with shares or without.
func playTurns(s scenario, maxWait time.Duration, fair bool) *outcome {
	x := &turns{spacing: time.Second / time.Duration(s.limit), maxWait: maxWait}
	x.outcome = outcome{scenario: s, tenants: make([]share, len(s.tenants))}
	x.random = rand.New(rand.NewPCG(1, 2))
	x.pacer = meter.MakePacer(&x.lock)
	if fair {
		x.sharing = &meter.Sharing{By: "param tenant", PerShare: math.MaxInt, MaxShares: 1000}
	}
	for i := range s.tenants {
		x.comes(i)
	}
	x.play()
	return &x.outcome
}

func (x *turns) comes(i int) {
	x.after(x.exponential(time.Duration(float64(time.Second)/x.scenario.tenants[i].rate)), func() {
		x.joins(i)
		x.comes(i)
	})
}

// waiting is a call that waits for its turn.
type waiting struct {
	*turns
	meter.Turn
	tenant int
	since  time.Duration
	wake   time.Duration
}

// WakeAt makes the call look at that time.
func (c *waiting) WakeAt(to int64) { c.looks(time.Duration(to)) }

// looks makes the call look at that time, unless it looks before.
func (c *waiting) looks(at time.Duration) {
	if at >= c.wake {
		return
	}
	c.wake = at
	c.after(max(0, at-c.now), func() {
		if c.wake != at {
			return // it looks at another time
		}
		c.wake = math.MaxInt64
		until := c.Come(int64(c.now), int64(c.now))
		if lost, _ := c.Lost(); lost {
			c.ends(false)
		} else if until <= int64(c.now) {
			c.ends(true)
		} else {
			c.looks(time.Duration(until))
		}
	})
}

func (c *waiting) ends(runs bool) {
	got := &c.outcome.tenants[c.tenant]
	switch {
	case c.since < c.length/10:
	case runs:
		got.asked++
		got.waits = append(got.waits, c.now-c.since)
		got.area++
	default:
		got.asked++
		got.turnedAway++
	}
}

func (x *turns) joins(i int) {
	c := &waiting{turns: x, tenant: i, since: x.now, wake: math.MaxInt64}
	c.Turn = meter.MakeTurn(c)
	c.Awaited = true
	now, cost := int64(x.now), meter.Cost(1, float64(x.spacing))
	x.lock.Lock()
	until, wait, ok := now, time.Duration(0), false
	if x.sharing != nil {
		until, wait, ok = x.pacer.QueueShare(&c.Turn, now, &meter.ShareTurn{Cost: cost, MaxWait: x.maxWait, Sharing: x.sharing, Tenant: meter.Tenant{Name: argument.Int(int64(i))}})
	} else {
		var at meter.Moment
		at, wait = x.pacer.Next(now, cost, false)
		if ok = wait <= x.maxWait; ok && wait == 0 {
			x.pacer.Grant(at)
		} else if ok {
			until = now + int64(wait)
			x.pacer.Queue(&c.Turn, now, at, cost, false)
		}
	}
	x.lock.Unlock()
	if !ok || wait == 0 {
		c.ends(ok)
		return
	}
	c.looks(time.Duration(until))
}
