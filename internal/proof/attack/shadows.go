package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
)

// shadows makes the same calls on two guards; one has the rules of the other and some more in
// shadow mode. Both must give every call the same verdict, and have the same nodes, even under low
// caps on values and nodes.
func shadows(r *round) error {
	// An evicted node that is called again is as before, or new if it has been garbage-collected: that
	// must happen to both guards at once.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	sets := drawShadowSets(r)
	caps := pick(r, node.Caps{}, drawCaps(r))
	var sides [2]*shadowSide
	for i := range sides {
		s := &shadowSide{stage: newStage()}
		s.guard, _ = r.guard(api.Config{Clock: s.stage, Caps: caps})
		sides[i] = s
	}
	load := func() error {
		for i, set := range sets.both(r) {
			if err := sides[i].guard.LoadRules(set); err != nil {
				return err
			}
			sides[i].stage.settle()
		}
		r.step("rules:\n%s", say(sides[1].guard.Rules()))
		return nil
	}
	if err := load(); err != nil {
		return err
	}
	r.step("%+v", caps)
	values := pick(r, 4, 8, 16)
	for range 60 + r.IntN(200) {
		var answers [2]string
		switch n := r.IntN(100); {
		case n < 68:
			c, endpoint, fails := drawCall(r, values), pick(r, "", "a", "b", "c"), r.one(4)
			if caps != (node.Caps{}) {
				strange(r, c)
			}
			for i, s := range sides {
				answers[i] = s.call(r, *c, endpoint, fails)
			}
			r.offered.Add(1)
			r.step("%s at %s: %s", c, endpoint, answers[1])
		case n < 83:
			k := r.IntN(1000)
			for i, s := range sides {
				answers[i] = s.exit(k)
			}
			r.step("exit: %s", answers[1])
		case n < 86:
			if sets.change(r, len(sides[0].waiting) > 0) {
				for _, name := range sides[0].resources() {
					for i, s := range sides {
						answers[i] += s.call(r, call{resource: name, units: 1}, "", false)
					}
				}
			}
			if err := load(); err != nil {
				return err
			}
			for i, s := range sides {
				answers[i] += s.look()
			}
		default:
			d, collect := r.between(0, sets.pause*pick[time.Duration](r, 1, 1, 3)), false
			if r.one(6) {
				d, collect = r.between(0, pick(r, 2*time.Minute, time.Hour, 3*time.Hour)), r.one(2)
			}
			for i, s := range sides {
				if err := s.stage.advance(s.stage.Now()+int64(d), func() error { return nil }); err != nil {
					return err
				}
				if collect {
					s.guard.Engine().Tree().Evict(s.stage.Now())
				}
				answers[i] = s.look()
			}
			if collect {
				for range 3 { // pools empty at the second
					runtime.GC()
				}
			}
			r.step("%v later: %s", d, answers[1])
		}
		r.checked.Add(1)
		for i, s := range sides {
			answers[i] += s.places()
		}
		if answers[0] != answers[1] {
			return fmt.Errorf("without the shadow rules: %s\nwith them: %s", answers[0], answers[1])
		}
	}
	var answers [2]string
	for i, s := range sides {
		var err error
		if answers[i], err = s.end(); err != nil {
			return err
		}
	}
	if answers[0] != answers[1] {
		return fmt.Errorf("without the shadow rules, at the end: %s\nwith them: %s", answers[0], answers[1])
	}
	return nil
}

// shadowSide holds one of the two guards.
type shadowSide struct {
	stage            *stage
	guard            *api.Guard
	waiting, running []*shadowCall
	calls            int
}

type shadowCall struct {
	*caller
	number int
	fails  bool
}

func (s *shadowSide) call(r *round, c call, endpoint string, fails bool) string {
	s.calls++
	sc := &shadowCall{number: s.calls, fails: fails}
	opts := append(c.options(), api.Endpoint(endpoint))
	sc.caller = s.stage.enter(r.ctx, func(ctx context.Context) (api.Admitted, error) {
		return s.guard.Entry(from(ctx, c.context, c.origin), c.resource, opts...)
	})
	s.waiting = append(s.waiting, sc)
	// The first sleep is not compared: a call that is queued at a shadow rule may wake to notify
	// the calls behind it, and go back to sleep. The time at which it runs is compared.
	return fmt.Sprintf("%d of %d wait; ", len(s.waiting), s.calls) + s.look()
}

// look returns the outcomes of calls that waited.
func (s *shadowSide) look() (answers string) {
	for _, c := range slices.Clone(s.waiting) {
		if c.waits() {
			continue
		}
		s.waiting = slices.DeleteFunc(s.waiting, func(w *shadowCall) bool { return w == c })
		if c.err != nil {
			answers += fmt.Sprintf("%d %v at %d; ", c.number, c.err, c.at)
			continue
		}
		answers += fmt.Sprintf("%d runs at %d; ", c.number, c.at)
		s.running = append(s.running, c)
	}
	return answers
}

func (s *shadowSide) exit(k int) string {
	if len(s.running) == 0 {
		return "nobody"
	}
	c := s.running[k%len(s.running)]
	s.running = slices.DeleteFunc(s.running, func(w *shadowCall) bool { return w == c })
	if c.fails {
		c.entry.Fail(errBroken)
	}
	s.stage.exit(c.entry)
	s.stage.settle()
	return fmt.Sprintf("%d ends; ", c.number) + s.look()
}

// end lets all waiting calls run or be refused and exit, and returns the outcomes.
func (s *shadowSide) end() (answers string, err error) {
	for range 1000 {
		if len(s.waiting)+len(s.running) == 0 {
			return answers, nil
		}
		if err := s.stage.advance(s.stage.Now()+int64(time.Minute), func() error { return nil }); err != nil {
			return "", err
		}
		answers += s.look()
		for len(s.running) > 0 {
			answers += s.exit(0)
		}
	}
	return "", fmt.Errorf("%d calls wait for a thousand minutes", len(s.waiting))
}

// resources returns the names that have a resource, in order.
func (s *shadowSide) resources() (names []string) {
	s.guard.Engine().EachResource(func(r *engine.Resource) {
		if r.Name() != node.OverflowName {
			names = append(names, r.Name())
		}
	})
	slices.Sort(names)
	return names
}

// places returns the names that have a node, and the number of calls that got none.
func (s *shadowSide) places() string {
	e := s.guard.Engine()
	var names []string
	e.EachResource(func(r *engine.Resource) {
		names = append(names, r.Name())
		for context := range r.Calls().All() {
			names = append(names, r.Name()+" in "+context)
		}
		for origin := range r.Origins().All() {
			names = append(names, r.Name()+" by "+origin)
		}
	})
	for context := range e.Tree().Entrances().All() {
		names = append(names, "in "+context)
	}
	slices.Sort(names)
	var answers strings.Builder
	fmt.Fprintf(&answers, "; nodes: %q", names)
	for _, b := range []*node.Budget{e.Tree().Resources(), e.Tree().Contexts(), e.Tree().Calls(), e.Tree().Origins()} {
		fmt.Fprintf(&answers, ", %d of %d, %d beyond", b.Used(), b.Cap(), b.Overflows())
	}
	return answers.String()
}
