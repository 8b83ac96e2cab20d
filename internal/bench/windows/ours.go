package windows

import (
	"sync"
	"time"

	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/stat"
)

// Ours is Penstock's window, with one limit.
type Ours struct {
	window *stat.Window
	limit  int64
}

// NewOurs returns a window of that many buckets, one more if it is strict.
func NewOurs(limit int64, interval time.Duration, buckets int, strict bool) *Ours {
	interval -= interval % time.Duration(buckets) // whole nanoseconds per bucket
	w, err := stat.NewWindow(stat.Shape{Interval: interval, Buckets: buckets, Strict: strict})
	if err != nil {
		panic(err) // the shapes here are valid
	}
	return &Ours{w, limit}
}

// Allow counts a call at now if there is room for it.
func (o *Ours) Allow(now int64) bool {
	_, ok := o.window.TryAdd(0, now, 1, o.limit)
	return ok
}

// OurTokens is Penstock's token bucket, under a lock as in a rule.
type OurTokens struct {
	mu     sync.Mutex
	tokens meter.TokenBucket
	size   int64
}

// NewOurTokens returns a full bucket that holds size.
func NewOurTokens(limit int64, interval time.Duration, size int64) *OurTokens {
	t := &OurTokens{tokens: meter.MakeTokenBucket(), size: size}
	t.tokens.SetUnit(0, meter.UnitCost(interval, float64(limit)))
	return t
}

// Allow takes a token if there is one.
func (t *OurTokens) Allow(now int64) bool {
	t.mu.Lock()
	_, ok := t.tokens.Take(now, 1, t.size)
	t.mu.Unlock()
	return ok
}
