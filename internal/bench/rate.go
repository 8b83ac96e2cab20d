package main

import (
	"time"

	"github.com/RussellLuo/slidingwindow"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	juju "github.com/juju/ratelimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// rates limit calls per time: 10⁹ per second for an open key, one per day for a closed one.
var rates = usable([]contender{
	{"penstock", "", penstockRate},
	{sentinelGo, "check and count are two steps: not exact under concurrency", sentinelRate},
	{"failsafe-go, executor", "no tree, no names, no statistics; resets each second", failsafeRate},
	{"failsafe-go, limiter alone", "as above, and nothing runs or is recorded", failsafeRateAlone},
	{"x/time/rate", "a token bucket alone: no tree, no names, no statistics", timeRate},
	{"juju/ratelimit", "a token bucket alone: no tree, no names, no statistics", jujuRate},
	{"RussellLuo/slidingwindow", "a weighted window alone: no tree, no names, no statistics", slidingRate},
	{"sethvargo/go-limiter", "keys, but no tree, no statistics; resets each interval", sethvargoRate},
	{"throttled/v2, memstore", "GCRA with keys, but no tree, no statistics", throttledRate},
	{"ulule/limiter/v3, memory", "keys, but no tree, no statistics; resets each interval", ululeRate},
	{"uber-go/ratelimit", "waits only, refuses nobody; no tree, no names, no statistics", uberRate},
})

func penstockRate(asked keys) limits {
	var set rules.Set
	list := names(asked.all)
	for key, name := range list {
		rule := flow.Rule{Resource: name, Threshold: enough}
		if asked.isClosed(key) {
			rule.Threshold, rule.Interval = 1, never
		}
		set.Flow = append(set.Flow, rule)
	}
	return penstock(asked, list, set)
}

func penstock(asked keys, list []string, set rules.Set) limits {
	g, stop := guardFor(asked, set)
	return guarded(g, stop, list)
}

// guarded guards calls by the names of their keys.
func guarded(g *api.Guard, stop func(), list []string) limits {
	return limits{stop: stop, call: func(key int, work func()) bool {
		e, err := g.Entry(background, list[key])
		if err != nil {
			return false
		}
		work()
		e.Exit()
		return true
	}}
}

// guardFor returns a guard with the requested clock.
func guardFor(asked keys, set rules.Set) (g *api.Guard, stop func()) {
	cfg, done := api.Config{}, func() {}
	if asked.cached {
		cfg, done = coarse()
	}
	g = guard(cfg, set)
	return g, func() {
		g.Close()
		done()
	}
}

func failsafeLimiter(asked keys, key int) ratelimiter.RateLimiter[any] {
	if asked.isClosed(key) {
		return ratelimiter.NewBursty[any](1, never)
	}
	return ratelimiter.NewBursty[any](enough, time.Second)
}

func failsafeRate(asked keys) limits {
	s := shelve(asked, func(key int) failsafe.Executor[any] {
		return failsafe.With[any](failsafeLimiter(asked, key))
	})
	return limits{call: func(key int, work func()) bool {
		return s.at(key).Run(func() error { work(); return nil }) == nil
	}}
}

func failsafeRateAlone(asked keys) limits {
	s := shelve(asked, func(key int) ratelimiter.RateLimiter[any] { return failsafeLimiter(asked, key) })
	return limits{call: func(key int, work func()) bool {
		if !s.at(key).TryAcquirePermit() {
			return false
		}
		work()
		return true
	}}
}

func timeRate(asked keys) limits {
	s := shelve(asked, func(key int) *rate.Limiter {
		if asked.isClosed(key) {
			return rate.NewLimiter(rate.Every(never), 1)
		}
		return rate.NewLimiter(enough, enough)
	})
	return limits{call: func(key int, work func()) bool {
		if !s.at(key).Allow() {
			return false
		}
		work()
		return true
	}}
}

func jujuRate(asked keys) limits {
	s := shelve(asked, func(key int) *juju.Bucket {
		if asked.isClosed(key) {
			return juju.NewBucket(never, 1)
		}
		return juju.NewBucket(1, enough)
	})
	return limits{call: func(key int, work func()) bool {
		if s.at(key).TakeAvailable(1) == 0 {
			return false
		}
		work()
		return true
	}}
}

func slidingRate(asked keys) limits {
	local := func() (slidingwindow.Window, slidingwindow.StopFunc) { return slidingwindow.NewLocalWindow() }
	s := shelve(asked, func(key int) *slidingwindow.Limiter {
		size, limit := time.Second, int64(enough)
		if asked.isClosed(key) {
			size, limit = never, 1
		}
		l, _ := slidingwindow.NewLimiter(size, limit, local)
		return l
	})
	return limits{call: func(key int, work func()) bool {
		if !s.at(key).Allow() {
			return false
		}
		work()
		return true
	}}
}

func sethvargoRate(asked keys) limits {
	// As many as there are nanoseconds per token: beyond that, the library refills too slowly.
	const tokens = 100_000_000
	store := must(memorystore.New(&memorystore.Config{Tokens: tokens, Interval: tokens * tokens}))
	list := names(asked.all)
	for key, name := range list {
		if asked.isClosed(key) {
			must(0, store.Set(background, name, 1, never))
		}
	}
	return limits{
		stop: func() { must(0, store.Close(background)) },
		call: func(key int, work func()) bool {
			_, _, _, ok, err := store.Take(background, list[key])
			if err != nil || !ok {
				return false
			}
			work()
			return true
		},
	}
}

func throttledRate(asked keys) limits {
	limiter := func(quota throttled.RateQuota) *throttled.GCRARateLimiterCtx {
		l := must(throttled.NewGCRARateLimiterCtx(must(memstore.NewCtx(0)), quota))
		l.SetMaxCASAttemptsLimit(1000) // it gives up after ten attempts, with an error
		return l
	}
	open := limiter(throttled.RateQuota{MaxRate: throttled.PerSec(enough), MaxBurst: 1_000_000})
	closed := limiter(throttled.RateQuota{MaxRate: throttled.PerDay(1)})
	list := names(asked.all)
	return limits{call: func(key int, work func()) bool {
		l := open
		if asked.isClosed(key) {
			l = closed
		}
		limited, _, err := l.RateLimitCtx(background, list[key], 1)
		if err != nil || limited {
			return false
		}
		work()
		return true
	}}
}

func ululeRate(asked keys) limits {
	store := memory.NewStore()
	open := ulule.New(store, ulule.Rate{Period: time.Second, Limit: enough})
	closed := ulule.New(store, ulule.Rate{Period: never, Limit: 1})
	list := names(asked.all)
	return limits{call: func(key int, work func()) bool {
		l := open
		if asked.isClosed(key) {
			l = closed
		}
		state, err := l.Get(background, list[key])
		if err != nil || state.Reached {
			return false
		}
		work()
		return true
	}}
}

func uberRate(asked keys) limits {
	s := shelve(asked, func(int) uber.Limiter { return uber.New(enough) })
	return limits{call: func(key int, work func()) bool {
		s.at(key).Take()
		work()
		return true
	}}
}
