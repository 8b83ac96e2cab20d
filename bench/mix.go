package main

import (
	"crypto/sha256"
	"math/rand/v2"
	"time"

	"github.com/penstock-go/penstock/bench/measure"
)

// The realistic mix: 200 resources, of which some are called much more than others,
// every twentieth call refused, and 20 µs of work in those that pass.
const (
	mixKeys    = 200
	mixClosed  = 10
	mixRefused = 0.05
	mixWork    = 20 * time.Microsecond
	mixCalls   = 1 << 14 // then they come again
)

// mixers are the contenders that find a limit by the name of its key.
func mixers() (chosen []contender) {
	for _, c := range rates {
		switch c.name {
		case "penstock", "sentinel-golang", "sethvargo/go-limiter", "throttled/v2, memstore":
			chosen = append(chosen, c)
		case "failsafe-go, executor", "x/time/rate":
			c.less += "; here found in a sync.Map"
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// mixed is the order of the keys.
func mixed() []int32 {
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 1, mixKeys-mixClosed-1)
	order := make([]int32, mixCalls)
	for i := range order {
		if random.Float64() < mixRefused {
			order[i] = int32(mixKeys - mixClosed + random.IntN(mixClosed))
		} else {
			order[i] = int32(zipf.Uint64())
		}
	}
	return order
}

// worker is the work of a call: the same steps each time, not the same time, as a
// clock that is asked when to stop would itself be in the way.
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

// bare is the work of the mix without anybody who guards it.
var bare = contender{name: "nobody", open: func(asked keys) limits {
	return limits{call: func(key int, work func()) bool {
		if asked.isClosed(key) {
			return false
		}
		work()
		return true
	}}
}}

// mixCase is a contender in the mix, with so many callers on as many processors.
func mixCase(c contender, procs int, work func(), order []int32) measure.Case {
	return measure.Case{Procs: procs, Callers: procs, Start: func() measure.Work {
		l := c.open(keys{all: mixKeys, closed: mixClosed, named: true})
		at := make([]struct {
			next int
			_    [7]int64 // a cache line each
		}, procs)
		return measure.Work{
			Stop: l.stop,
			Call: func(caller, n int) {
				i := at[caller].next + caller*len(order)/procs
				for range n {
					l.call(int(order[i%len(order)]), work)
					i++
				}
				at[caller].next += n
			},
		}
	}}
}
