package main

import (
	"sync"

	sentinel "github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/circuitbreaker"
	"github.com/alibaba/sentinel-golang/core/config"
	"github.com/alibaba/sentinel-golang/core/flow"
	"github.com/alibaba/sentinel-golang/core/isolation"
	"github.com/alibaba/sentinel-golang/logging"
	"github.com/alibaba/sentinel-golang/util"
)

const sentinelGo = "sentinel-golang"

// startSentinel sets up sentinel-golang, once per process. Its work besides calls is off: the
// metric log and the samplers of the machine.
var startSentinel = sync.OnceFunc(func() {
	cfg := config.NewDefaultConfig()
	cfg.Sentinel.Log.Logger = logging.NewConsoleLogger()
	cfg.Sentinel.Log.Metric.FlushIntervalSec = 0
	cfg.Sentinel.Stat.System = config.SystemStatConfig{}
	logging.ResetGlobalLoggerLevel(logging.ErrorLevel)
	must(0, sentinel.InitWithConfig(cfg))
})

// sentinelLimits guards calls by the names of their keys. Rules belong to the process, so each job
// uses its own names.
func sentinelLimits(list []string) limits {
	return limits{call: func(key int, work func()) bool {
		e, refused := sentinel.Entry(list[key])
		if refused != nil {
			return false
		}
		work()
		e.Exit()
		return true
	}}
}

// cacheTime does what UseCacheTime does at its start: from then on a goroutine reads the clock each
// millisecond, and calls use that reading. Nothing ends it, so measurements without it must come
// first.
var cacheTime = sync.OnceFunc(util.StartTimeTicker)

func sentinelNames(job string, asked keys) []string {
	startSentinel()
	if asked.cached {
		cacheTime()
	}
	list := names(asked.all)
	for key, name := range list {
		list[key] = job + " " + name
		if asked.isClosed(key) {
			list[key] = job + " closed " + name
		}
	}
	return list
}

func sentinelRate(asked keys) limits {
	list := sentinelNames("rate", asked)
	for key, name := range list {
		rule := &flow.Rule{Resource: name, Threshold: enough, StatIntervalInMs: 1000}
		if asked.isClosed(key) {
			rule.Threshold = 0 // with an interval of a day it has no window
		}
		must(flow.LoadRulesOfResource(name, []*flow.Rule{rule}))
	}
	return sentinelLimits(list)
}

func sentinelConcurrency(asked keys) limits {
	list := sentinelNames("concurrency", asked)
	for key, name := range list {
		if asked.isClosed(key) {
			// It has no limit of zero; a rate of zero refuses as early.
			must(flow.LoadRulesOfResource(name, []*flow.Rule{{Resource: name, StatIntervalInMs: 1000}}))
			continue
		}
		must(isolation.LoadRulesOfResource(name, []*isolation.Rule{{Resource: name, Threshold: uint32(permits(asked, key))}}))
	}
	return sentinelLimits(list)
}

func sentinelBreaker(asked keys) limits {
	list := sentinelNames("breaker", asked)
	for key, name := range list {
		must(circuitbreaker.LoadRulesOfResource(name, []*circuitbreaker.Rule{{
			Resource: name, Strategy: circuitbreaker.ErrorCount, Threshold: 1, MinRequestAmount: 1,
			StatIntervalMs: 10_000, StatSlidingWindowBucketCount: 10, RetryTimeoutMs: uint32(never.Milliseconds()),
		}}))
		if asked.isClosed(key) {
			if e, refused := sentinel.Entry(name); refused == nil {
				sentinel.TraceError(e, errDown)
				e.Exit()
			}
		}
	}
	return sentinelLimits(list)
}
