package main

import (
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"golang.org/x/sync/semaphore"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// concurrencies limit concurrent calls.
var concurrencies = usable([]contender{
	{"penstock, isolation", "", func(asked keys) limits {
		var set rules.Set
		list := names(asked.all)
		for key, name := range list {
			set.Isolation = append(set.Isolation, isolation.Rule{Resource: name, Threshold: permits(asked, key)})
		}
		return penstock(asked, list, set)
	}},
	{"penstock, flow", "", func(asked keys) limits {
		var set rules.Set
		list := names(asked.all)
		for key, name := range list {
			set.Flow = append(set.Flow, flow.Rule{Resource: name, Threshold: float64(permits(asked, key)), Metric: flow.Concurrency})
		}
		return penstock(asked, list, set)
	}},
	{sentinelGo, "check and count are two steps: not exact under concurrency", sentinelConcurrency},
	{"failsafe-go, executor", "no tree, no names, no statistics", func(asked keys) limits {
		s := shelve(asked, func(key int) failsafe.Executor[any] {
			return failsafe.With[any](bulkhead.New[any](uint(permits(asked, key))))
		})
		return limits{call: func(key int, work func()) bool {
			return s.at(key).Run(func() error { work(); return nil }) == nil
		}}
	}},
	{"failsafe-go, bulkhead alone", "as above, and nothing runs or is recorded", func(asked keys) limits {
		s := shelve(asked, func(key int) bulkhead.Bulkhead[any] { return bulkhead.New[any](uint(permits(asked, key))) })
		return limits{call: func(key int, work func()) bool {
			b := s.at(key)
			if !b.TryAcquirePermit() {
				return false
			}
			work()
			b.ReleasePermit()
			return true
		}}
	}},
	{"x/sync/semaphore", "a semaphore alone: no tree, no names, no statistics", func(asked keys) limits {
		s := shelve(asked, func(key int) *semaphore.Weighted { return semaphore.NewWeighted(int64(permits(asked, key))) })
		return limits{call: func(key int, work func()) bool {
			w := s.at(key)
			if !w.TryAcquire(1) {
				return false
			}
			work()
			w.Release(1)
			return true
		}}
	}},
	{"a channel as a semaphore", "a semaphore alone: no tree, no names, no statistics", func(asked keys) limits {
		s := shelve(asked, func(key int) chan struct{} { return make(chan struct{}, permits(asked, key)) })
		return limits{call: func(key int, work func()) bool {
			c := s.at(key)
			select {
			case c <- struct{}{}:
			default:
				return false
			}
			work()
			<-c
			return true
		}}
	}},
})

// permits returns a key's permits: more than there are callers, or none.
func permits(asked keys, key int) int {
	if asked.isClosed(key) {
		return 0
	}
	return 10_000
}
