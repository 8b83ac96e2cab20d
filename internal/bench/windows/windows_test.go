package windows_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/bench/windows"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/chance"
)

func TestMain(m *testing.M) { books.Main(m) }

var seed = chance.Seed

const (
	limit    = 20
	interval = 600 * time.Millisecond
)

// twins decide for each kind whether a call at now fits, from the list of all admitted calls: they
// follow the kind's definition, not its code.
var twins = map[string]func(admitted []int64, now int64) bool{
	"fixed counter":          aligned(1, false),
	"ring, 2 buckets":        aligned(2, false),
	"ring, 10 buckets":       aligned(10, false),
	"ring, 60 buckets":       aligned(60, false),
	"strict ring, 10 (ours)": aligned(10, true),
	"strict ring, 60 (ours)": aligned(60, true),
	"list of buckets, 10":    listed(10),
	"list of buckets, 60":    listed(60),
	"sliding log": func(admitted []int64, now int64) bool {
		return since(admitted, now-int64(interval)+1) < limit
	},
	"weighted, two counters": func(admitted []int64, now int64) bool {
		start := now - now%int64(interval)
		used := since(admitted, start)
		before := since(admitted, start-int64(interval)) - used
		share := float64(start+int64(interval)-now) / float64(interval)
		return float64(before)*share+float64(used+1) <= limit+1e-9
	},
	"token bucket":           curve(limit),
	"GCRA, burst of all":     curve(limit),
	"GCRA, burst of a tenth": curve(limit / 10),
	"GCRA, a tenth (ours)":   curve(limit / 10),
}

// since counts the calls at from or later.
func since(admitted []int64, from int64) (n int) {
	for _, at := range admitted {
		if at >= from {
			n++
		}
	}
	return n
}

// aligned counts the calls in the current bucket and in those before it.
func aligned(buckets int64, strict bool) func([]int64, int64) bool {
	width := int64(interval) / buckets
	if strict {
		buckets++
	}
	return func(admitted []int64, now int64) bool {
		return since(admitted, (now/width-buckets+1)*width) < limit
	}
}

// listed finds again where each bucket began, and counts the buckets that are kept.
func listed(buckets int64) func([]int64, int64) bool {
	width := int64(interval) / buckets
	return func(admitted []int64, now int64) bool {
		n, start := 0, int64(-1)
		for _, at := range admitted {
			if start < 0 || at-start >= width {
				start = at
			}
			if now-start < int64(interval)+width {
				n++
			}
		}
		return n < limit
	}
}

// curve checks the promise of a bucket with this burst: from any call on, no more calls than the
// burst and the rate's share until now.
func curve(burst int64) func([]int64, int64) bool {
	cost := int64(interval) / limit
	return func(admitted []int64, now int64) bool {
		for i, from := range admitted {
			if calls := int64(len(admitted)-i) + 1; calls*cost > burst*cost+now-from {
				return false
			}
		}
		return cost <= burst*cost
	}
}

// calls returns times that don't go back: bursts, trickles, pauses, edges of buckets.
func calls(random *rand.Rand) (times []int64) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	for range limit + 1 {
		times = append(times, now)
	}
	for _, later := range []int64{-1, 0, 1} { // when those are an interval old, and right before
		times = append(times, now+int64(interval)+later)
	}
	now = times[len(times)-1]
	for range 200 {
		switch random.IntN(12) {
		case 0:
			now += random.Int64N(3 * int64(interval))
		case 1: // right on, before or after an edge of a sixtieth
			edge := int64(interval) / 60
			now += edge - now%edge + random.Int64N(3) - 1
		case 2, 3, 4, 5:
			now += random.Int64N(int64(interval) / 5)
		case 6, 7:
			now += random.Int64N(int64(interval) / limit)
		case 9: // an interval after an earlier call, give or take a nanosecond
			now = max(now, times[max(0, len(times)-1-random.IntN(2*limit))]+int64(interval)+random.Int64N(3)-1)
		case 8:
			for range random.IntN(limit) {
				times = append(times, now)
			}
		}
		times = append(times, now)
	}
	return times
}

func TestKindsAreTheirTwins(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 5
	}
	for _, kind := range windows.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			twin := twins[kind.Name]
			require.NotNil(t, twin)
			for round := range rounds {
				chosen := *seed + uint64(round)
				limiter := kind.New(limit, interval)
				var admitted []int64
				refused := 0
				for i, now := range calls(rand.New(rand.NewPCG(chosen, 0))) {
					want := twin(admitted, now)
					require.Equal(t, want, limiter.Allow(now), "call %d of round %d: -seed %d", i, round, chosen)
					if want {
						admitted = append(admitted, now)
					} else {
						refused++
					}
				}
				require.NotZero(t, refused, "nothing was limited: -seed %d", chosen)
			}
		})
	}
}

// At one instant, each kind admits exactly its burst, regardless of the number of callers.
func TestKindsAreExactForACrowd(t *testing.T) {
	for _, kind := range windows.Kinds {
		limiter := kind.New(1000, time.Second)
		want := int64(1000)
		if strings.Contains(kind.Name, "a tenth") {
			want = 100
		}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
		var admitted atomic.Int64
		var crowd sync.WaitGroup
		for range 8 {
			crowd.Go(func() {
				for range 500 {
					if limiter.Allow(now) {
						admitted.Add(1)
					}
				}
			})
		}
		crowd.Wait()
		assert.Equal(t, want, admitted.Load(), kind.Name)
	}
}
