package accesslog

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"
)

// Event is something that happened at a time.
type Event[T any] struct {
	At     int64
	Coarse bool // At is known to the second only
	Value  T
}

// maxSorted is the highest number of events that a Sorter or a second of [Spread] holds. A Sorter
// that is full passes the earliest event on.
const maxSorted = 1 << 19

// Sorter sorts events that are at most a window late. Events at the same time keep their order.
type Sorter[T any] struct {
	window int64
	items  items[T]
	order  int64
	newest int64
	passed int64 // time of the last event that Pop returned
	late   int64
}

type item[T any] struct {
	Event[T]
	order int64
}

type items[T any] []item[T]

func (s items[T]) Len() int { return len(s) }
func (s items[T]) Less(i, j int) bool {
	return s[i].At < s[j].At || s[i].At == s[j].At && s[i].order < s[j].order
}
func (s items[T]) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *items[T]) Push(x any)   { *s = append(*s, x.(item[T])) }
func (s *items[T]) Pop() any {
	last := len(*s) - 1
	x := (*s)[last]
	(*s)[last] = item[T]{}
	*s = (*s)[:last]
	return x
}

// NewSorter returns a Sorter with a window.
func NewSorter[T any](window time.Duration) *Sorter[T] {
	return &Sorter[T]{window: int64(window)}
}

// Push adds an event, or counts it as late if a later one has been passed on.
func (s *Sorter[T]) Push(e Event[T]) {
	if e.At < s.passed {
		s.late++
		return
	}
	s.newest = max(s.newest, e.At)
	s.order++
	heap.Push(&s.items, item[T]{e, s.order})
}

// Pop returns the earliest event once no event within the window can precede it, or without a wait
// if the input has ended.
func (s *Sorter[T]) Pop(ended bool) (e Event[T], ok bool) {
	if len(s.items) == 0 || !ended && s.newest-s.items[0].At < s.window && len(s.items) < maxSorted {
		return e, false
	}
	e = heap.Pop(&s.items).(item[T]).Event
	s.passed = e.At
	return e, true
}

// Late returns the number of events that were left out, because they were later than the window.
func (s *Sorter[T]) Late() int64 { return s.late }

// Source yields events in order. Next returns false after the last one.
type Source[T any] interface {
	// First returns the time before which no event of the source lies.
	First() int64
	Next() (e Event[T], ok bool, err error)
}

// Merger joins sources. It calls Next of a source only when its first event may be next: so of many
// files that follow each other, one or two are open.
type Merger[T any] struct {
	waiting []Source[T] // by First, the earliest last
	open    []opened[T]
}

type opened[T any] struct {
	Source[T]
	next Event[T]
}

// NewMerger returns a Merger of sources. Events at the same time come in the order of the sources.
func NewMerger[T any](sources []Source[T]) *Merger[T] {
	waiting := slices.Clone(sources)
	slices.SortStableFunc(waiting, func(a, b Source[T]) int { return cmp.Compare(a.First(), b.First()) })
	slices.Reverse(waiting)
	return &Merger[T]{waiting: waiting}
}

// Next returns the next event, and false after the last one.
func (m *Merger[T]) Next() (e Event[T], ok bool, err error) {
	for {
		first := -1
		for i := range m.open {
			if first < 0 || m.open[i].next.At < m.open[first].next.At {
				first = i
			}
		}
		if last := len(m.waiting) - 1; last >= 0 && (first < 0 || m.waiting[last].First() <= m.open[first].next.At) {
			source := m.waiting[last]
			m.waiting = m.waiting[:last]
			next, ok, err := source.Next()
			if err != nil {
				return e, false, err
			}
			if ok {
				m.open = append(m.open, opened[T]{source, next})
			}
			continue
		}
		if first < 0 {
			return e, false, nil
		}
		e = m.open[first].next
		next, ok, err := m.open[first].Source.Next()
		if err != nil {
			return e, false, err
		}
		if m.open[first].next = next; !ok {
			m.open = slices.Delete(m.open, first, first+1)
		}
		return e, true, nil
	}
}

// Placement places events within their second, if nothing closer is known.
type Placement uint8

// The placements. All keep the order of the events.
const (
	Evenly   Placement = iota
	AtOnce             // at the beginning
	Randomly           // the same for the same second and number of events
)

// offsets returns the times of n events after the beginning of their second.
func (p Placement) offsets(second int64, n int) []int64 {
	all := make([]int64, n)
	switch p {
	case Evenly:
		for i := range all {
			all[i] = int64(i) * int64(time.Second) / int64(n)
		}
	case Randomly:
		random := rand.New(rand.NewPCG(uint64(second), uint64(n)))
		for i := range all {
			all[i] = random.Int64N(int64(time.Second))
		}
		slices.Sort(all)
	}
	return all
}

// Spread passes events on, in order, and places the ones that are known to lie in one second, and no
// closer, within it. next returns false after the last event. Spread returns early if yield returns
// false.
func Spread[T any](p Placement, next func() (Event[T], bool, error), yield func(Event[T]) bool) error {
	var group []Event[T]
	flush := func() bool {
		coarse := 0
		for _, e := range group {
			if e.Coarse {
				coarse++
			}
		}
		if coarse > 0 {
			second := group[0].At - floorMod(group[0].At, int64(time.Second))
			offsets := p.offsets(second, coarse)
			for i := range group {
				if group[i].Coarse {
					group[i].At = second + offsets[0]
					offsets = offsets[1:]
				}
			}
		}
		if coarse > 0 && coarse < len(group) {
			slices.SortStableFunc(group, func(a, b Event[T]) int { return cmp.Compare(a.At, b.At) })
		}
		for _, e := range group {
			if !yield(e) {
				return false
			}
		}
		clear(group)
		group = group[:0]
		return true
	}
	var last int64 // no event is before it
	for {
		e, ok, err := next()
		if err != nil || !ok {
			if err == nil {
				flush()
			}
			return err
		}
		second := e.At - floorMod(e.At, int64(time.Second))
		if len(group) > 0 && (second > group[0].At-floorMod(group[0].At, int64(time.Second)) || len(group) == maxSorted) {
			full := len(group) == maxSorted
			end := group[len(group)-1].At
			if !flush() {
				return nil
			}
			if full { // the rest of the second comes after these
				last = max(last, end, second+int64(time.Second)-1)
			}
		}
		if e.At = max(e.At, last); e.At == last && last != 0 {
			e.Coarse = false
		}
		group = append(group, e)
	}
}
