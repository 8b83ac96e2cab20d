package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// heldUp is a clock that a load has to wait for: the first who reads it once it is armed
// gets no time until it is let go on.
type heldUp struct {
	*clocks.Manual
	armed   atomic.Bool
	reached chan struct{}
	goOn    chan struct{}
}

// Now makes it a [clocks.Clock].
func (c *heldUp) Now() int64 {
	if c.armed.CompareAndSwap(true, false) {
		close(c.reached)
		<-c.goOn
	}
	return c.Manual.Now()
}

// callsInALoad holds a load up in its midst, and calls names that are known, and new ones,
// beyond the caps too. None of them may wait for the load to go on.
func callsInALoad(r *round) error {
	const n, most = 20, 10 * time.Second
	h := pick(r, heaps...)
	clock := &heldUp{Manual: clocks.NewManual(start), reached: make(chan struct{}), goOn: make(chan struct{})}
	clock.SetSleep(clocks.SleepAdvance)
	g, _ := r.bareGuard(api.Config{Clock: clock, Caps: node.Caps{Resources: n + n/2}})
	if err := g.LoadRules(heapOf(h, n)); err != nil {
		return err
	}
	call := func(name, context, origin string) {
		r.offered.Add(1)
		e, _ := g.Entry(from(r.ctx, context, origin), name, api.Inbound())
		e.Exit()
	}
	for i := range n {
		call(h.call(i))
	}
	next := heapOf(h, n+1)
	otherLimits(&next)
	clock.armed.Store(true)
	loaded := make(chan error, 1)
	go func() { loaded <- g.LoadRules(next) }()
	<-clock.reached
	var all sync.WaitGroup
	for i := range 2 * n {
		all.Go(func() {
			call(fmt.Sprint("new ", i), "", "")
			call(h.call(i % n))
		})
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-time.After(most): // for as long as it likes, if it weren't for this attack
		err = fmt.Errorf("%s: a load is held up for %v, and calls wait for it", h.name, most)
	}
	close(clock.goOn)
	<-done
	r.checked.Add(2 * n)
	if failed := <-loaded; err == nil {
		err = failed
	}
	return err
}

// matchesAreLeft loads expressions that are dear to match, where many long names are known.
// Whatever the machine, to match all names takes as long as their next calls take, which do
// that: a load that takes longer than those has matched names that may never come again. If
// it hasn't, it takes a small part of that.
func matchesAreLeft(r *round) error {
	const n, attempts = 60, 3
	g, _ := r.bareGuard(api.Config{Caps: node.Caps{Resources: n}})
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("resource ", i, " ", strings.Repeat("ab", 400)))
	}
	calls := func() time.Duration {
		began := time.Now()
		for _, name := range names {
			r.offered.Add(1)
			e, _ := g.Entry(r.ctx, name)
			e.Exit()
		}
		return time.Since(began)
	}
	calls()
	var shares []float64
	for k := range attempts {
		var set rules.Set
		for i := range n {
			set.Flow = append(set.Flow, flow.Rule{
				ID: fmt.Sprint(i), Resource: fmt.Sprintf("(a|b|.)*[ab]+(x|y)%d %d", k, i), Match: spec.MatchRegex, Threshold: 1000,
			})
		}
		began := time.Now()
		if err := g.LoadRules(set); err != nil {
			return err
		}
		load := time.Since(began)
		shares = append(shares, float64(load)/float64(calls()))
	}
	r.checked.Add(1)
	r.step("a load takes %.3f times as long as the calls that come next", shares)
	if least := slices.Min(shares); least > 1 {
		return fmt.Errorf("each of %d loads of %d expressions takes at least %.1f times as long as the next calls of all %d names: it has matched them",
			attempts, n, least, n)
	}
	return nil
}
