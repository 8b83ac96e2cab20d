package main

import (
	"crypto/sha256"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/internal/bench/measure"
)

// The realistic mix: 200 resources, some called much more than others, every twentieth call
// refused, and 20 µs of work in calls that pass.
const (
	mixKeys    = 200
	mixClosed  = 10
	mixRefused = 0.05
	mixWork    = 20 * time.Microsecond
	mixOrder   = 1 << 14 // calls, before they repeat
)

// mixers returns the contenders that find a limit by the name of its key.
func mixers() (chosen []contender) {
	for _, c := range rates {
		switch c.name {
		case "penstock", sentinelGo, "sethvargo/go-limiter", "throttled/v2, memstore":
			chosen = append(chosen, c)
		case "failsafe-go, executor", "x/time/rate":
			c.less += "; here found in a sync.Map"
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// mixed returns the order of the keys.
func mixed() []int32 {
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 1, mixKeys-mixClosed-1)
	order := make([]int32, mixOrder)
	for i := range order {
		if random.Float64() < mixRefused {
			order[i] = int32(mixKeys - mixClosed + random.IntN(mixClosed))
		} else {
			order[i] = int32(zipf.Uint64())
		}
	}
	return order
}

// worker returns the work of a call: the same steps each time rather than the same time, since a
// clock that says when to stop would itself disturb.
func worker(d time.Duration) func() {
	const most = 1 << 16
	data := make([]byte, most)
	size := most
	best := time.Duration(1 << 62)
	for range 50 {
		start := time.Now()
		_ = sha256.Sum256(data)
		best = min(best, time.Since(start))
	}
	size = min(most, int(float64(size)*float64(d)/float64(best)))
	return func() { _ = sha256.Sum256(data[:size]) }
}

// bare is the work of the mix without a guard.
var bare = contender{name: "nobody", open: func(asked keys) limits {
	return limits{call: func(key int, work func()) bool {
		if asked.isClosed(key) {
			return false
		}
		work()
		return true
	}}
}}

// mixCase is a contender in the mix, with that many callers on as many processors. A batch has the
// same calls for each contender, whichever caller makes them.
func mixCase(c contender, procs, calls int, work func(), order []int32, t *tally) measure.Case {
	return measure.Case{Procs: procs, Callers: procs, Calls: procs * calls, Start: func() measure.Work {
		l := c.open(keys{all: mixKeys, closed: mixClosed, named: true})
		var next atomic.Int64
		return measure.Work{
			Stop: l.stop,
			Call: func(_, n int) {
				passed := 0
				first := int(next.Add(int64(n))) - n
				for i := range n {
					if l.call(int(order[(first+i)%len(order)]), work) {
						passed++
					}
				}
				t.add(n, passed)
			},
		}
	}}
}
