//go:build sim

package schedules_test

import (
	"testing"

	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/shared"
)

// The scheduler finds a planted race: of two updates that load, compute and store, one is lost; an
// update in a single step is not.
func TestSchedulerFindsALostUpdate(t *testing.T) {
	for _, tt := range []struct {
		name  string
		add   func(*shared.Int64)
		least int64
	}{
		{"in two steps", func(n *shared.Int64) { n.Store(n.Load() + 1) }, 1},
		{"in one", func(n *shared.Int64) { n.Add(1) }, 2},
	} {
		seen := map[int64]bool{}
		schedules.Exhaustive(t, 100, func(s *schedules.Schedule) {
			var n shared.Int64
			for range 2 {
				s.Go(func() { tt.add(&n) })
			}
			s.Check(func() { seen[n.Load()] = true })
		})
		for n := int64(0); n <= 3; n++ {
			if want := n >= tt.least && n <= 2; seen[n] != want {
				t.Errorf("%s: a sum of %d was seen: %v, want %v", tt.name, n, seen[n], want)
			}
		}
	}
}

// Every order of accesses that matters is played once: three callers that write the same word once
// have six orders, and one order if each has its own word.
func TestSchedulerPlaysEachOrderOnce(t *testing.T) {
	for _, tt := range []struct {
		words int
		want  int
	}{{1, 6}, {3, 1}} {
		n := 0
		orders := map[string]bool{}
		schedules.Exhaustive(t, 100, func(s *schedules.Schedule) {
			var words [3]shared.Int64
			order := ""
			for i := range 3 {
				s.Go(func() {
					words[i%tt.words].Add(1)
					order += string(rune('a' + i))
				})
			}
			s.Check(func() { n++; orders[order] = true })
		})
		if n != tt.want || len(orders) != tt.want {
			t.Errorf("%d words: %d schedules, %d orders, want %d", tt.words, n, len(orders), tt.want)
		}
	}
}

// A mutex excludes other callers, TryLock fails while one holds it, and a waiting caller continues
// when the mutex is free.
func TestSchedulerMutex(t *testing.T) {
	failed := false
	schedules.Exhaustive(t, 1000, func(s *schedules.Schedule) {
		var mu shared.Mutex
		inside := 0
		for i := range 3 {
			s.Go(func() {
				if i == 2 && !mu.TryLock() {
					failed = true
					return
				} else if i < 2 {
					mu.Lock()
				}
				if inside++; inside != 1 {
					s.Failf("%d inside", inside)
				}
				s.Clock().Now()
				inside--
				mu.Unlock()
			})
		}
	})
	if !failed {
		t.Error("TryLock never failed")
	}
}

// The same seed gives the same schedule.
func TestSchedulerRepeats(t *testing.T) {
	run := func() (trace []int) {
		schedules.Random(t, func(s *schedules.Schedule) {
			var n shared.Int64
			for i := range 3 {
				s.Go(func() {
					for range 2 {
						n.Add(1)
						trace = append(trace, i)
					}
				})
			}
		})
		return trace
	}
	t.Setenv("FIGURES", "")
	defer schedules.Fix(3, 200)()
	one, two := run(), run()
	for i := range one {
		if one[i] != two[i] {
			t.Fatalf("step %d was by caller %d at first and by %d later", i, one[i], two[i])
		}
	}
}
