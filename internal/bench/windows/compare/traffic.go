package main

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// The limit for every kind.
const (
	limit    = 100
	interval = time.Second
)

// call is a call of one of many keys.
type call struct {
	at  int64
	key int32
}

// traffic is the same for every kind.
type traffic struct {
	name  string
	calls []call
}

// began is a whole second that is also a multiple of a sixtieth of a second, cut to whole
// nanoseconds: an edge of every window that has edges.
const began = 212 * 8_333_333 * int64(time.Second)

func traffics() []traffic {
	return []traffic{
		{"steady", steady(150, time.Minute)},
		{"edge", edges(15)},
		{"on/off", onOff(time.Minute)},
		{"Zipf", zipf(10_000, 20_000, 10*time.Second)},
	}
}

// steady returns calls at that rate, at even distances with some jitter.
func steady(rate int, d time.Duration) (calls []call) {
	random := rand.New(rand.NewPCG(1, 1))
	step := int64(time.Second) / int64(rate)
	for at := int64(0); at < int64(d); at += step {
		calls = append(calls, call{at: began + at + random.Int64N(step)})
	}
	return calls
}

// edges returns bursts across an edge, each after a pause: as many calls as the limit in the last
// millisecond of a second, then ten every millisecond. A window that drops the burst too early
// admits more, whenever it does so.
func edges(n int) (calls []call) {
	for i := range int64(n) {
		edge := began + (4*i+1)*int64(time.Second)
		for k := range int64(limit) {
			calls = append(calls, call{at: edge - int64(time.Millisecond) + k*int64(10*time.Microsecond)})
		}
		for k := range int64(12_000) {
			calls = append(calls, call{at: edge + k*int64(100*time.Microsecond)})
		}
	}
	return calls
}

// onOff returns three times the limit for a while, then nothing for a while; its periods share no
// edge with a second.
func onOff(d time.Duration) (calls []call) {
	const on, off = 730 * time.Millisecond, 1310 * time.Millisecond
	step := int64(time.Second) / (3 * limit)
	for at := int64(0); at < int64(d); at += step {
		if at%int64(on+off) < int64(on) {
			calls = append(calls, call{at: began + at})
		}
	}
	return calls
}

// zipf returns the traffic of many keys; a few are called far beyond the limit, and most hardly
// ever.
func zipf(keys uint64, rate int, d time.Duration) []call {
	random := rand.New(rand.NewPCG(2, 2))
	key := rand.NewZipf(random, 1.1, 1, keys-1)
	calls := make([]call, rate*int(d/time.Second))
	for i := range calls {
		calls[i] = call{began + random.Int64N(int64(d)), int32(key.Uint64())}
	}
	slices.SortStableFunc(calls, func(a, b call) int { return cmp.Compare(a.at, b.at) })
	return calls
}
