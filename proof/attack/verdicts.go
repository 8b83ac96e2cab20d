package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

// verdicts makes random calls under random rules of all families, one thing after the
// other, and changes the rules in between. What becomes of each call must be what a log of
// the calls before says: let in or refused, in whose name, and after which wait.
func verdicts(r *round) error {
	s := newStage()
	g, _ := r.guard(api.Config{Clock: s})
	v := &verdictRound{round: r, stage: s, guard: g, ledger: ledger{now: s.Now(), asked: make(map[string]bool), known: make(map[ruleID]bool)}}
	v.asks, v.passes, v.blocks = make(map[string]int64), make(map[string]int64), make(map[string]int64)
	if err := v.play(); err != nil {
		return err
	}
	return v.close()
}

type verdictRound struct {
	*round
	stage  *stage
	guard  *api.Guard
	ledger ledger
	set    rules.Set

	waiting, running []*call
	crowd            bool // most calls are about one resource, and prioritized

	asks, passes, blocks map[string]int64 // units of each resource
}

func (v *verdictRound) play() error {
	set := drawSet(v.round, pick(v.round, 1, 1, 2))
	set.Outlier = nil
	switch v.IntN(8) {
	case 0:
		set, v.crowd = lenders(v.round), true
	case 1:
		set, v.crowd = fullQueue(v.round), true
	case 2, 3, 4: // of one family, for rules in front hide those behind
		set = pick(v.round, rules.Set{Flow: set.Flow}, rules.Set{Flow: set.Flow}, rules.Set{Hotspot: set.Hotspot},
			rules.Set{System: set.System}, rules.Set{Isolation: set.Isolation}, rules.Set{Flow: set.Flow, Isolation: set.Isolation})
	}
	if err := v.load(set, nil); err != nil {
		return err
	}
	for range 40 + v.IntN(200) {
		err := error(nil)
		switch n := v.IntN(100); {
		case n < 70:
			err = v.call()
		case n < 80:
			err = v.exit()
		case n < 84:
			err = v.giveUp()
		case n < 97:
			err = v.advance()
		default:
			err = v.load(reshape(v.round, v.set))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// load puts rules in force. All that is known of the old ones goes on.
func (v *verdictRound) load(set rules.Set, renamed map[ruleID]ruleID) error {
	if err := v.guard.LoadRules(set); err != nil {
		return fmt.Errorf("rules that should be right are refused: %w", err)
	}
	v.set = v.guard.Rules()
	v.step("rules:\n%s", say(v.set))
	for now, before := range renamed {
		v.ledger.known[now] = v.ledger.known[before]
	}
	v.ledger.load(v.set, renamed)
	v.stage.settle()
	return v.look()
}

// call makes a call and compares what becomes of it with what the log says.
func (v *verdictRound) call() error {
	c := drawCall(v.round, 4)
	if v.crowd && !v.one(5) {
		c.resource, c.prioritized, c.units = "orders", !v.one(3), pick[int64](v.round, 1, 1, 1, 2)
	}
	opts := c.options()
	v.ledger.asked[c.resource] = true
	opinion, refusers := v.ledger.judge(c)
	c.opinion = opinion
	v.asks[c.resource] += c.units
	v.offered.Add(1)
	v.checked.Add(1)
	c.caller = v.stage.enter(v.ctx, func(ctx context.Context) (core.Entry, error) {
		return v.guard.Entry(from(ctx, c.context, c.origin), c.resource, opts...)
	})
	v.step("%v: %s", v.at(), c)
	switch {
	case c.returned && c.err != nil:
		v.blocks[c.resource] += c.units
		return v.refused(c, refusers)
	case !opinion.passes:
		return fmt.Errorf("%s: let in, but %v refuses it", c, refusers[len(refusers)-1].is())
	}
	v.ledger.took(c)
	if c.returned {
		return v.ran(c)
	}
	v.waiting = append(v.waiting, c)
	if least, most := v.ledger.due(c); opinion.most == 0 && most <= sinceStart(v.ledger.now) {
		return fmt.Errorf("%s: waits for %v, but no rule says wait (%v to %v)", c, c.sleeps, least, most)
	}
	return nil
}

// look sees to waiting calls that have returned.
func (v *verdictRound) look() error {
	v.ledger.now = v.stage.Now()
	var still []*call
	var err error
	for _, c := range v.waiting {
		switch {
		case c.waits():
			still = append(still, c)
		case err != nil:
		case c.err == nil:
			err = v.ran(c)
		default:
			err = v.refusedLate(c)
		}
	}
	v.waiting = still
	return err
}

// exit ends a call that runs.
func (v *verdictRound) exit() error {
	if len(v.running) == 0 {
		return nil
	}
	c := v.take(&v.running)
	v.step("%v: exits: %s", v.at(), c)
	v.stage.exit(c.entry)
	c.cancel()
	v.ledger.left(c)
	v.stage.settle()
	return v.look()
}

// giveUp cancels a call that waits.
func (v *verdictRound) giveUp() error {
	if len(v.waiting) == 0 {
		return nil
	}
	c := v.take(&v.waiting)
	v.step("%v: gives up: %s", v.at(), c)
	v.stage.leave(c.caller)
	v.ledger.left(c)
	v.blocks[c.resource] += c.units
	if !errors.Is(c.err, context.Canceled) || !errors.Is(c.err, core.ErrBlocked) {
		return fmt.Errorf("%s: gave up, and got %s", c, fmt.Sprint(c.err))
	}
	return v.look()
}

func (v *verdictRound) take(from *[]*call) *call {
	i := v.IntN(len(*from))
	c := (*from)[i]
	*from = append((*from)[:i:i], (*from)[i+1:]...)
	return c
}

// advance lets time pass: some, or up to where something may change.
func (v *verdictRound) advance() error {
	d := v.between(0, pick(v.round, time.Nanosecond, ms, 20*ms, 300*ms, 3*time.Second, 3*time.Second, 2*time.Minute, 2*time.Hour))
	to := v.ledger.now + int64(d)
	if v.one(3) {
		for _, k := range v.ledger.keepers {
			if w, ok := k.(*windowKeeper); ok && v.one(2) {
				to = (w.number(v.ledger.now)+1)*w.width() + int64(v.IntN(3)) - 1
			}
		}
	}
	return v.stage.advance(max(to, v.ledger.now), v.look)
}

// close ends everything, and compares what the tree says with the log.
func (v *verdictRound) close() error {
	for len(v.waiting) > 0 {
		if err := v.giveUp(); err != nil {
			return err
		}
	}
	for len(v.running) > 0 {
		if err := v.exit(); err != nil {
			return err
		}
	}
	tree := v.guard.Tree()
	for _, n := range tree.Resources {
		v.checked.Add(3)
		if got := n.Lifetime; got.Pass != v.passes[n.Name] || got.Block != v.blocks[n.Name] || got.Complete != v.passes[n.Name] {
			return fmt.Errorf("%s: the tree says that %d units passed, %d were refused and %d completed; it was %d, %d and all",
				n.Name, got.Pass, got.Block, got.Complete, v.passes[n.Name], v.blocks[n.Name])
		}
	}
	return nil
}

// at is the time on the stage.
func (v *verdictRound) at() time.Duration { return time.Duration(v.stage.Now() - start.UnixNano()) }
