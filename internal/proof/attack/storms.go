package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// storms runs 64 callers on the machine's own clock, under random rules that change all the time.
// The callers cancel waits, fail, panic, end their goroutine or exit twice. Admitted calls are
// logged with the times before and after, and compared with the most that the rules allowed at any
// time; in the end every count must match the callers' own.
func storms(r *round) error {
	s := &storm{round: r, entered: make([][]stormEntry, callers)}
	cfg := api.Config{Clock: clocks.NewSystem(), Failure: func(err error) bool {
		if errors.Is(err, errPanics) {
			panic("the user's idea of a failure panics")
		}
		return !errors.Is(err, context.Canceled)
	}}
	s.guard, _ = r.bareGuard(cfg)
	s.guard.OnBreaker(func(breaker.Change) {
		if s.nervous.Add(1)%7 == 0 {
			panic("a listener panics")
		}
	})
	s.set = stormSet(r)
	if err := s.guard.LoadRules(s.set); err != nil {
		return err
	}
	s.sets = append(s.sets, s.guard.Rules())
	if err := s.blow(); err != nil {
		return err
	}
	return errors.Join(s.limits(), s.counts(), settled(s.guard))
}

type storm struct {
	*round
	guard   *api.Guard
	set     rules.Set
	sets    []rules.Set // every set that was in effect
	nervous atomic.Int64

	calls, left, passed, refused atomic.Int64
	entered                      [][]stormEntry // of each caller

	mu     sync.Mutex
	broken error
}

// stormEntry is an admitted call: it was decided between two times, and ended after a third.
type stormEntry struct {
	*call
	before, after, ended int64
}

var errPanics = errors.New("an error that makes panic")

// stormSet returns rules with limits that 64 callers reach within milliseconds, and with queues
// short enough for their patience.
func stormSet(r *round) rules.Set {
	set := drawSet(r, 2)
	for i := range set.Flow {
		rule := &set.Flow[i]
		rule.Interval, rule.Buckets = pick(r, 10*ms, 20*ms, 100*ms), pick(r, 1, 2, 5)
		rule.MaxWait = min(rule.MaxWait, 20*ms)
		rule.Origin, rule.Relation, rule.Ref = flow.OriginDefault, flow.Direct, ""
		if rule.Behavior == flow.Throttle || rule.Behavior == flow.WarmUpThrottle {
			rule.Threshold, rule.Buckets = max(rule.Threshold, 5), 0
		}
	}
	for i := range set.Hotspot {
		set.Hotspot[i].Interval, set.Hotspot[i].MaxWait = pick(r, 10*ms, 20*ms), min(set.Hotspot[i].MaxWait, 20*ms)
	}
	for i := range set.System {
		set.System[i].Interval, set.System[i].Buckets = pick(r, 10*ms, 100*ms), pick(r, 1, 2, 5)
	}
	for i := range set.Isolation {
		set.Isolation[i].MaxWait = min(set.Isolation[i].MaxWait, 20*ms)
	}
	set.Outlier = nil
	return onlyRead(set)
}

// blow starts the callers, and keeps loading rules while they run.
func (s *storm) blow() error {
	var over atomic.Bool
	var all sync.WaitGroup
	seeds := make([]uint64, callers)
	for i := range seeds {
		seeds[i] = s.Uint64()
	}
	for i := range callers {
		all.Go(func() {
			c := &stormCaller{storm: s, number: i, rand: rand.New(rand.NewPCG(seeds[i], 0))}
			for !over.Load() {
				c.one()
			}
		})
	}
	steady := !s.one(3) // every rule stays in effect
	until := time.Now().Add(s.between(20*ms, 80*ms))
	var err error
	for time.Now().Before(until) && err == nil {
		next := reshape(s.round, s.set)
		if next = tame(next); steady {
			next = withMode(s.round, next, spec.Enforce, "")
		}
		if err = s.guard.LoadRules(next); err == nil {
			s.set = next
			s.sets = append(s.sets, s.guard.Rules())
		}
		if s.one(4) {
			_ = s.guard.Tree()
		}
		time.Sleep(s.between(0, 3*ms)) // real callers need real time
	}
	over.Store(true)
	all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(err, s.broken)
}

// tame keeps reshape's changes within the needs of a storm.
func tame(set rules.Set) rules.Set {
	for i := range set.Flow {
		set.Flow[i].MaxWait = min(set.Flow[i].MaxWait, 20*ms)
		if set.Flow[i].Behavior == flow.Throttle || set.Flow[i].Behavior == flow.WarmUpThrottle {
			set.Flow[i].Interval = 10 * ms
		}
	}
	for i := range set.Hotspot {
		set.Hotspot[i].MaxWait = min(set.Hotspot[i].MaxWait, 20*ms)
	}
	for i := range set.Isolation {
		set.Isolation[i].MaxWait = min(set.Isolation[i].MaxWait, 20*ms)
	}
	return onlyRead(set)
}
