package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// overload offers two to four times what can be served, by callers who have patience for
// some turns, and looks that nearly all that could be served was.
func (q *queueRound) overload() error {
	rate := 2 + 2*q.Float64()
	serves := float64(q.cost)
	if q.kind == "line" {
		serves /= float64(q.places)
	}
	patience := time.Duration(serves * (3 + 10*q.Float64()))
	began := q.stage.Now()
	const turns = 60
	for i := range int(turns * rate) {
		if err := q.step(began + int64(float64(i)*serves/rate)); err != nil {
			return err
		}
		p := patience
		if q.one(4) {
			p = time.Duration(float64(patience) * (1 + q.Float64()))
		}
		if _, err := q.enter(i, p); err != nil {
			return err
		}
	}
	q.checked.Add(1)
	if could := float64(q.stage.Now()-began) / serves; float64(q.ran) < 0.95*min(could, turns)-float64(q.places) {
		return fmt.Errorf("of %.1f times as much as it can serve, by callers who leave after %v, %d were served where %.0f could be", rate, patience, q.ran, could)
	}
	return nil
}

// abandon has many queue up and leave in some order, and comes last.
func (q *queueRound) abandon() error {
	for range 2 + q.IntN(40) {
		if _, err := q.enter(q.waitingFrom(), time.Hour); err != nil {
			return err
		}
	}
	if err := q.step(q.stage.Now() + q.Int64N(int64(q.cost))); err != nil {
		return err
	}
	order, how := slices.Clone(q.waiting), pick(q.round, "as they came", "the last one first", "in any order")
	switch how {
	case "the last one first":
		slices.Reverse(order)
	case "in any order":
		q.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	for _, c := range order {
		if err := q.end(c); err != nil {
			return err
		}
	}
	for len(q.running) > 0 {
		if err := q.end(q.running[0]); err != nil {
			return err
		}
	}
	if n := q.guard.Tree().Waiting; n != 0 {
		return fmt.Errorf("all have left, and %d wait", n)
	}
	for _, n := range q.guard.Tree().Resources {
		if n.Waiting != 0 {
			return fmt.Errorf("all have left, and %d units wait on %s", n.Waiting, n.Name)
		}
	}
	if err := q.stage.advance(q.stage.Now()+int64(q.cost), q.look); err != nil {
		return err
	}
	c, err := q.enter(math.MaxInt, time.Hour)
	q.checked.Add(3)
	switch {
	case err != nil:
		return err
	case c.waits():
		return fmt.Errorf("%d queued up and left, %s; who comes then waits for %v", len(order), how, c.sleeps)
	case c.err != nil:
		return fmt.Errorf("%d queued up and left, %s; who comes then is refused: %w", len(order), how, c.err)
	}
	for len(q.running) > 0 {
		if err := q.end(q.running[0]); err != nil {
			return err
		}
	}
	return nil
}

// waitingFrom numbers those that come on after all that came.
func (q *queueRound) waitingFrom() int { return 1_000_000 + int(q.offered.Load()) }
