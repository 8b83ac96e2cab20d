package main

import (
	"context"
	"errors"
	"time"

	"github.com/afex/hystrix-go/hystrix"
	eapache "github.com/eapache/go-resiliency/breaker"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/rules"
)

var errDown = errors.New("down")

func failing(context.Context) error { return errDown }

// breakers are closed for an open key and tripped for a closed one.
var breakers = usable([]contender{
	{"penstock", "", penstockBreaker},
	{sentinelGo, "", sentinelBreaker},
	{"failsafe-go, executor", "no tree, no names, no statistics beside its own", failsafeBreaker},
	{"sony/gobreaker/v2", "a breaker alone: no tree, no names, no statistics beside its own", sonyBreaker},
	{"eapache/go-resiliency", "counts errors in a row only: no window, no tree, no names", eapacheBreaker},
	{"afex/hystrix-go", "runs the call on another goroutine, with a timeout; no tree", hystrixBreaker},
})

func penstockBreaker(asked keys) limits {
	var set rules.Set
	list := names(asked.all)
	for _, name := range list {
		set.Breaker = append(set.Breaker, breaker.Rule{
			Resource: name, Strategy: breaker.ErrorCount, Threshold: 1, MinCalls: 1, Interval: 10 * time.Second, Recovery: never,
		})
	}
	g, stop := guardFor(asked, set)
	for key, name := range list {
		if asked.isClosed(key) {
			_ = g.Do(background, name, failing)
		}
	}
	return guarded(g, stop, list)
}

func failsafeBreaker(asked keys) limits {
	s := shelve(asked, func(key int) failsafe.Executor[any] {
		b := circuitbreaker.NewBuilder[any]().WithFailureThresholdPeriod(1, 10*time.Second).WithDelay(never).Build()
		if asked.isClosed(key) {
			b.Open()
		}
		return failsafe.With[any](b)
	})
	return limits{call: func(key int, work func()) bool {
		return s.at(key).Run(func() error { work(); return nil }) == nil
	}}
}

func sonyBreaker(asked keys) limits {
	s := shelve(asked, func(key int) *gobreaker.CircuitBreaker[any] {
		b := gobreaker.NewCircuitBreaker[any](gobreaker.Settings{
			Interval: 10 * time.Second, BucketPeriod: time.Second, Timeout: never,
			ReadyToTrip: func(c gobreaker.Counts) bool { return c.TotalFailures >= 1 },
		})
		if asked.isClosed(key) {
			_, _ = b.Execute(func() (any, error) { return nil, errDown })
		}
		return b
	})
	return limits{call: func(key int, work func()) bool {
		_, err := s.at(key).Execute(func() (any, error) { work(); return nil, nil })
		return err == nil
	}}
}

func eapacheBreaker(asked keys) limits {
	// Its timer can't be stopped, but an hour is longer than any run.
	s := shelve(asked, func(key int) *eapache.Breaker {
		b := eapache.New(1, 1, time.Hour)
		if asked.isClosed(key) {
			_ = b.Run(func() error { return errDown })
		}
		return b
	})
	return limits{call: func(key int, work func()) bool {
		return s.at(key).Run(func() error { work(); return nil }) == nil
	}}
}

func hystrixBreaker(asked keys) limits {
	list := names(asked.all)
	for key, name := range list {
		if asked.isClosed(key) {
			list[key] = "closed " + name
		}
		hystrix.ConfigureCommand(list[key], hystrix.CommandConfig{
			Timeout: 60_000, MaxConcurrentRequests: 10_000, RequestVolumeThreshold: 1, SleepWindow: int(never / time.Millisecond),
		})
		if asked.isClosed(key) {
			// It counts on a separate goroutine, so call until it has counted.
			for errors.Is(hystrix.Do(list[key], func() error { return errDown }, nil), errDown) {
				time.Sleep(time.Millisecond)
			}
		}
	}
	return limits{
		// Its metrics never end: one goroutine for each circuit that was made.
		stop: hystrix.Flush,
		call: func(key int, work func()) bool {
			return hystrix.Do(list[key], func() error { work(); return nil }, nil) == nil
		},
	}
}
