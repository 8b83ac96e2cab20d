package main

import (
	"time"

	"github.com/penstock-go/penstock/internal/bench/windows"
)

// outcome holds the calls of a traffic that a kind admitted.
type outcome struct {
	admitted map[int32][]int64 // by key, in order
	refused  map[int32]int
}

func play(kind windows.Kind, calls []call) outcome {
	o := outcome{make(map[int32][]int64), make(map[int32]int)}
	limiters := make(map[int32]windows.Limiter)
	for _, c := range calls {
		l := limiters[c.key]
		if l == nil {
			l = kind.New(limit, interval)
			limiters[c.key] = l
		}
		if l.Allow(c.at) {
			o.admitted[c.key] = append(o.admitted[c.key], c.at)
		} else {
			o.refused[c.key]++
		}
	}
	return o
}

// worst returns the most calls admitted in any real second, of any key.
func (o outcome) worst() (most int) {
	for _, times := range o.admitted {
		most = max(most, busiest(times))
	}
	return most
}

// busiest returns the maximum number of these times within one second.
func busiest(times []int64) (most int) {
	first := 0
	for i, at := range times {
		for at-times[first] >= int64(time.Second) {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// used returns the admitted calls as a share of best's, counting only keys whose calls best
// refused: every kind admits all calls of the others.
func (o outcome) used(best outcome) float64 {
	var mine, most int
	for key := range best.refused {
		mine += len(o.admitted[key])
		most += len(best.admitted[key])
	}
	return float64(mine) / float64(most)
}

// forward returns the most calls in a real second if the clock is set forward by a minute, at the
// worst of several moments.
func forward(limiter func() func(now int64) bool) (most int) {
	for moment := 5 * time.Second; moment < 6*time.Second; moment += 70 * time.Millisecond {
		times := set(limiter(), time.Minute, moment, 8*time.Second)
		most = max(most, busiest(times))
	}
	return most
}

// outage returns the longest real time without an admission if the clock is set back by a minute.
func outage(limiter func() func(now int64) bool) (longest time.Duration) {
	const long = 100 * time.Second
	last := began
	for _, at := range append(set(limiter(), -time.Minute, 5500*time.Millisecond, long), began+int64(long)) {
		longest = max(longest, time.Duration(at-last))
		last = at
	}
	return longest
}

// set returns the calls admitted of traffic far above the limit while the clock is set by d at a
// moment.
func set(allow func(now int64) bool, d, moment, long time.Duration) (admitted []int64) {
	for _, c := range steady(5*limit, long) {
		shown := c.at
		if c.at-began >= int64(moment) {
			shown += int64(d)
		}
		if allow(shown) {
			admitted = append(admitted, c.at)
		}
	}
	return admitted
}
