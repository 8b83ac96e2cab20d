package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// queues has more come to a queue than it can serve, and callers leave it: each when its
// patience is over, or some at a time, in every order. What the queue can serve it must
// serve, to those who came first and are still there, at its distances and not later than
// it may. When all have left there is nothing before who comes then.
func queues(r *round) error {
	kind := pick(r, "throttle", "throttle", "values", "line")
	q := &queueRound{
		round: r, stage: newStage(), kind: kind,
		cost:    time.Duration(r.Int64N(int64(200*ms))) + 2*ms,
		maxWait: pick(r, 300*ms, time.Second, 5*time.Second),
		places:  1 + r.IntN(5),
		rarity:  pick(r, 2, 3, 10, 1_000_000),
	}
	q.guard, _ = r.guard(api.Config{Clock: q.stage})
	if err := q.guard.LoadRules(q.rules()); err != nil {
		return err
	}
	if err := q.overload(); err != nil {
		return fmt.Errorf("%s: %w", q, err)
	}
	if err := q.abandon(); err != nil {
		return fmt.Errorf("%s: %w", q, err)
	}
	return nil
}

type queueRound struct {
	*round
	stage   *stage
	guard   *api.Guard
	kind    string
	cost    time.Duration // between two that run, or how long each runs
	maxWait time.Duration
	places  int // how many run at once, with a semaphore
	rarity  int // one of so many is prioritized

	waiting, running []*queued
	ran              int
	latest           *queued // that ran
}

type queued struct {
	*caller
	number int
	until  int64 // when it loses patience, or when it is done

	first     bool // it is prioritized
	found     int  // how many others waited that are not, when it came
	overtaken int  // by how many that have run
}

func (q *queueRound) String() string {
	if q.kind == "line" {
		return fmt.Sprintf("a queue for %d places, each taken for %v, maxWait %v", q.places, q.cost, q.maxWait)
	}
	return fmt.Sprintf("a throttle (%s) of one each %v, maxWait %v", q.kind, q.cost, q.maxWait)
}

func (q *queueRound) rules() (set rules.Set) {
	switch q.kind {
	case "throttle":
		set.Flow = []flow.Rule{{Resource: "orders", Threshold: 1, Interval: max(q.cost, flow.MinInterval), Behavior: flow.Throttle, MaxWait: q.maxWait}}
		q.cost = set.Flow[0].Interval
	case "values":
		set.Hotspot = []hotspot.Rule{{Resource: "orders", Param: "user", Threshold: 1, Interval: max(q.cost, flow.MinInterval), Behavior: hotspot.Throttle, MaxWait: q.maxWait}}
		q.cost = set.Hotspot[0].Interval
	case "line":
		set.Isolation = []isolation.Rule{{Resource: "orders", Threshold: q.places, MaxQueue: 1000, MaxWait: q.maxWait}}
	}
	return set
}

func (q *queueRound) enter(number int, patience time.Duration) (*queued, error) {
	q.offered.Add(1)
	c := &queued{number: number, until: q.stage.Now() + int64(patience), first: q.one(q.rarity)}
	for _, w := range q.waiting {
		if !w.first {
			c.found++
		}
	}
	opts := []core.Option{api.Param("user", 7)}
	if c.first {
		opts = append(opts, api.Prioritized())
	}
	c.caller = q.stage.enter(q.ctx, func(ctx context.Context) (core.Entry, error) {
		return q.guard.Entry(ctx, "orders", opts...)
	})
	q.waiting = append(q.waiting, c)
	return c, q.look()
}

// look sees to those that wait no more.
func (q *queueRound) look() error {
	for c := range waitNoMore(&q.waiting) {
		q.checked.Add(1)
		switch {
		case c.err != nil && time.Duration(c.at-c.came) > 0 && time.Duration(c.at-c.came) < q.maxWait:
			return fmt.Errorf("call %d waited for %v and was refused then: %w", c.number, time.Duration(c.at-c.came), c.err)
		case c.err != nil:
			continue
		}
		if err := q.runs(c); err != nil {
			return err
		}
	}
	return nil
}

// passesOver returns a call that waits and should run before c, or nil.
func (q *queueRound) passesOver(c *queued) *queued {
	for _, w := range q.waiting {
		if w.waits() && w.number < c.number && (w.first || !c.first) {
			return w
		}
	}
	return nil
}

func (q *queueRound) runs(c *queued) error {
	for _, w := range q.waiting {
		if w.number < c.number {
			w.overtaken++
		}
	}
	now, before := q.stage.Now(), q.latest
	q.latest = c
	q.ran++
	waited := time.Duration(now - c.came)
	switch {
	case waited > q.maxWait && (c.first || q.kind == "line"), waited > 2*q.maxWait+q.cost:
		return fmt.Errorf("call %d waited for %v", c.number, waited)
	case q.passesOver(c) != nil:
		return fmt.Errorf("call %d runs, and call %d waits, which came before", c.number, q.passesOver(c).number)
	case c.overtaken > c.found+1:
		return fmt.Errorf("call %d found %d that wait, and was overtaken by %d", c.number, c.found, c.overtaken)
	case q.kind == "line":
		c.until = now + int64(q.cost)
		q.running = append(q.running, c)
		if len(q.running) > q.places {
			return fmt.Errorf("%d run at once", len(q.running))
		}
		return nil
	case before != nil && now-before.at < int64(q.cost):
		return fmt.Errorf("call %d runs %v after call %d", c.number, time.Duration(now-before.at), before.number)
	}
	q.stage.exit(c.entry)
	return nil
}

// step goes on to a time, and on the way ends those that are done and lets those leave
// whose patience is over.
func (q *queueRound) step(to int64) error {
	for {
		next := int64(math.MaxInt64)
		var who *queued
		for _, list := range [][]*queued{q.waiting, q.running} {
			for _, c := range list {
				if c.until < next {
					next, who = c.until, c
				}
			}
		}
		if who == nil || next > to {
			return q.stage.advance(to, q.look)
		}
		if err := q.stage.advance(next, q.look); err != nil {
			return err
		}
		if err := q.end(who); err != nil {
			return err
		}
	}
}

// end ends a call that runs, or has one leave that waits.
func (q *queueRound) end(c *queued) error {
	if i := slices.Index(q.running, c); i >= 0 {
		q.running = slices.Delete(q.running, i, i+1)
		q.stage.exit(c.entry)
		q.stage.settle()
		return q.look()
	}
	if i := slices.Index(q.waiting, c); i >= 0 { // else it runs since, or was refused
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.stage.leave(c.caller)
		if c.err == nil {
			return fmt.Errorf("call %d left at %v and runs", c.number, time.Duration(c.at-c.came))
		}
	}
	return q.look()
}
