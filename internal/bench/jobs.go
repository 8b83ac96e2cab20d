package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/internal/bench/measure"
)

// contender is a library doing a job that several can do, used as its users would.
type contender struct {
	name string
	less string // work that Penstock does but it doesn't
	// open makes limits for the keys.
	open func(asked keys) limits
}

// keys are limited separately. The last ones are closed: nearly all of their calls are refused.
type keys struct {
	all, closed int
	named       bool // a key's limit is looked up by name
	cached      bool // the library reads a cached clock, not the machine's
}

func (k keys) isClosed(key int) bool { return key >= k.all-k.closed }

// limits is a contender at work.
type limits struct {
	// call runs work as a guarded call of a key, or returns false.
	call func(key int, work func()) bool
	stop func() // may be nil
}

func nothing() {}

// usable leaves out contenders that don't work on this machine: on 32 bits, sentinel-golang's index
// of a bucket is negative, and a call never returns.
func usable(list []contender) []contender {
	if strconv.IntSize == 64 {
		return list
	}
	return without(list, sentinelGo)
}

// cases are the three measurements of a contender: alone on one processor, n callers on one key, and n
// callers with a key each.
func (c contender) cases(asked keys, procs int, t *tally) []measure.Case {
	parallel := func(key func(caller int) int) measure.Case {
		return measure.Case{Procs: procs, Callers: procs, Start: c.start(asked, t, key)}
	}
	return []measure.Case{
		{Procs: 1, Start: c.start(asked, t, func(int) int { return 0 })},
		parallel(func(int) int { return 0 }),
		parallel(func(caller int) int { return caller }),
	}
}

func (c contender) start(asked keys, t *tally, key func(caller int) int) func() measure.Work {
	return func() measure.Work {
		l := c.open(asked)
		return measure.Work{
			Stop: l.stop,
			Call: func(caller, n int) {
				key, passed := key(caller), 0
				for range n {
					if l.call(key, nothing) {
						passed++
					}
				}
				t.add(n, passed)
			},
		}
	}
}

// tally counts the calls of a contender, and how many passed, while it was timed: a contender
// that refuses calls that should pass does different work.
type tally struct{ calls, passed atomic.Int64 }

func (t *tally) add(calls, passed int) {
	t.calls.Add(int64(calls))
	t.passed.Add(int64(passed))
}

func (t *tally) share() float64 { return float64(t.passed.Load()) / float64(t.calls.Load()) }

// differs returns a note if the share that passed is wrong. The first calls of closed keys may
// pass.
func (t *tally) differs(should float64, first int) string {
	calls, passed := float64(t.calls.Load()), float64(t.passed.Load())
	if passed > should*calls-0.001*calls && passed < should*calls+0.001*calls+float64(first) {
		return ""
	}
	return fmt.Sprintf("NOT THE SAME WORK: %.1f %% of its calls passed, not %.1f %%", 100*passed/calls, 100*should)
}

// shelf keeps one limit for each key: by number if the caller would hold it in a variable, by name
// if they would look it up, as in a map of paths or users.
type shelf[T any] struct {
	asked    keys
	names    []string
	byNumber []T
	byName   sync.Map
}

func shelve[T any](asked keys, limit func(key int) T) *shelf[T] {
	s := &shelf[T]{asked: asked, names: names(asked.all)}
	for key, name := range s.names {
		s.byNumber = append(s.byNumber, limit(key))
		s.byName.Store(name, s.byNumber[key])
	}
	return s
}

func (s *shelf[T]) at(key int) T {
	if !s.asked.named {
		return s.byNumber[key]
	}
	v, _ := s.byName.Load(s.names[key])
	return v.(T)
}

var background = context.Background()

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // the arguments are fixed, so this is a bug in this program
	}
	return v
}
