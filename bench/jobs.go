package main

import (
	"context"
	"strconv"
	"sync"

	"github.com/penstock-go/penstock/bench/measure"
)

// contender is a library at a job that several can do, used as its users would.
type contender struct {
	name string
	less string // what it does less than Penstock
	// open makes limits for the keys that are asked for.
	open func(asked keys) limits
}

// keys are what is limited, each by itself. The last ones are closed: nearly every
// call of theirs is refused.
type keys struct {
	all, closed int
	named       bool // the limit of a key is found by its name
}

func (k keys) isClosed(key int) bool { return key >= k.all-k.closed }

// limits are a contender at work.
type limits struct {
	// call runs work as a guarded call of a key, or returns false.
	call func(key int, work func()) bool
	stop func() // may be nil
}

func nothing() {}

// usable leaves out what doesn't work on this machine: on 32 bits, sentinel-golang's
// index of a bucket is negative, and a call never returns.
func usable(list []contender) []contender {
	if strconv.IntSize == 64 {
		return list
	}
	return without(list, "sentinel-golang")
}

// cases are the four ways in which a contender is measured: alone on one processor,
// alone on n, n callers on one key, and n callers with a key each.
func (c contender) cases(asked keys, procs int) []measure.Case {
	serial := func(procs int) measure.Case {
		return measure.Case{Procs: procs, Start: c.start(asked, func(int) int { return 0 })}
	}
	parallel := func(key func(caller int) int) measure.Case {
		return measure.Case{Procs: procs, Callers: procs, Start: c.start(asked, key)}
	}
	return []measure.Case{
		serial(1), serial(procs),
		parallel(func(int) int { return 0 }),
		parallel(func(caller int) int { return caller }),
	}
}

func (c contender) start(asked keys, key func(caller int) int) func() measure.Work {
	return func() measure.Work {
		l := c.open(asked)
		return measure.Work{
			Stop: l.stop,
			Call: func(caller, n int) {
				key := key(caller)
				for range n {
					l.call(key, nothing)
				}
			},
		}
	}
}

// shelf keeps one limit for each key: by number where the caller would hold it in a
// variable, by name where he would look it up, as in a map of paths or users.
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
		panic(err) // a mistake in this program: what it asks for is fixed
	}
	return v
}
