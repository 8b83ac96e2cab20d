package windows

import "time"

// Limiter admits calls up to a limit in an interval.
type Limiter interface {
	// Allow counts a call at now if there is room for it.
	Allow(now int64) bool
}

// Kind is one way to keep a limit.
type Kind struct {
	Name string
	New  func(limit int64, interval time.Duration) Limiter
}

// Kinds lists all ways, in the order of the page.
var Kinds = []Kind{
	{"fixed counter", func(limit int64, interval time.Duration) Limiter { return NewRing(limit, interval, 1) }},
	{"ring, 2 buckets", func(limit int64, interval time.Duration) Limiter { return NewRing(limit, interval, 2) }},
	{"ring, 10 buckets", func(limit int64, interval time.Duration) Limiter { return NewRing(limit, interval, 10) }},
	{"ring, 60 buckets", func(limit int64, interval time.Duration) Limiter { return NewRing(limit, interval, 60) }},
	{"strict ring, 10 (ours)", func(limit int64, interval time.Duration) Limiter { return NewOurs(limit, interval, 10, true) }},
	{"strict ring, 60 (ours)", func(limit int64, interval time.Duration) Limiter { return NewOurs(limit, interval, 60, true) }},
	{"list of buckets, 10", func(limit int64, interval time.Duration) Limiter { return NewList(limit, interval, 10) }},
	{"list of buckets, 60", func(limit int64, interval time.Duration) Limiter { return NewList(limit, interval, 60) }},
	{"sliding log", func(limit int64, interval time.Duration) Limiter { return NewLog(limit, interval) }},
	{"weighted, two counters", func(limit int64, interval time.Duration) Limiter { return NewWeighted(limit, interval) }},
	{"token bucket", func(limit int64, interval time.Duration) Limiter { return NewTokens(limit, interval, limit) }},
	{"GCRA, burst of all", func(limit int64, interval time.Duration) Limiter { return NewGCRA(limit, interval, limit) }},
	{"GCRA, burst of a tenth", func(limit int64, interval time.Duration) Limiter { return NewGCRA(limit, interval, max(1, limit/10)) }},
	{"GCRA, a tenth (ours)", func(limit int64, interval time.Duration) Limiter {
		return NewOurTokens(limit, interval, max(1, limit/10))
	}},
}
