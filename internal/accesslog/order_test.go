package accesslog

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func at(seconds float64) int64 { return int64(seconds * 1e9) }

// The Sorter agrees with a sort of the whole input, for everything that comes within the window.
func TestSorter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		s := NewSorter[int](10)
		var in []Event[int]
		newest := int64(0)
		for i := range random.IntN(200) {
			e := Event[int]{At: max(0, newest-random.Int64N(10)+random.Int64N(3)), Value: i}
			newest = max(newest, e.At)
			in = append(in, e)
		}
		var got []Event[int]
		for _, e := range in {
			s.Push(e)
			for e, ok := s.Pop(false); ok; e, ok = s.Pop(false) {
				got = append(got, e)
			}
		}
		for e, ok := s.Pop(true); ok; e, ok = s.Pop(true) {
			got = append(got, e)
		}
		slices.SortStableFunc(in, func(a, b Event[int]) int { return int(a.At - b.At) })
		require.Equal(t, in, got)
		require.Zero(t, s.Late())
	}
	s := NewSorter[int](10)
	for _, at := range []int64{100, 89, 111, 99, 100, 101} {
		s.Push(Event[int]{At: at})
		for _, ok := s.Pop(false); ok; _, ok = s.Pop(false) {
		}
	}
	assert.EqualValues(t, 1, s.Late(), "99, after 100 has been passed on at 111")
	for i := range int64(maxSorted + 10) {
		s.Push(Event[int]{At: 200 + i%5})
		s.Pop(false)
	}
	assert.LessOrEqual(t, len(s.items), maxSorted)
}

type list struct {
	events []Event[string]
	opened *[]string
}

func (l *list) First() int64 { return l.events[0].At }
func (l *list) Next() (e Event[string], ok bool, err error) {
	if len(l.events) == 0 {
		return e, false, nil
	}
	e, l.events = l.events[0], l.events[1:]
	*l.opened = append(*l.opened, e.Value)
	return e, true, nil
}

// Files are joined by time, whatever their order, and opened when their time has come.
func TestMerger(t *testing.T) {
	var read []string
	source := func(name string, times ...int64) Source[string] {
		l := &list{opened: &read}
		for _, at := range times {
			l.events = append(l.events, Event[string]{At: at, Value: name})
		}
		return l
	}
	m := NewMerger([]Source[string]{source("new", 20, 30), source("old", 1, 5, 9), source("other", 4, 20)})
	var got []string
	for {
		e, ok, err := m.Next()
		require.NoError(t, err)
		if !ok {
			break
		}
		got = append(got, e.Value)
		if e.At < 20 && len(m.waiting) == 0 {
			t.Errorf("new is open at %d", e.At)
		}
	}
	assert.Equal(t, []string{"old", "other", "old", "old", "other", "new", "new"}, got)
}

func spreadAll(p Placement, events ...Event[string]) (got []Event[string]) {
	next := func() (e Event[string], ok bool, err error) {
		if len(events) == 0 {
			return e, false, nil
		}
		e, events = events[0], events[1:]
		return e, true, nil
	}
	_ = Spread(p, next, func(e Event[string]) bool { got = append(got, e); return true })
	return got
}

// Events of a whole second are spread over it, and keep their order; others stay where they are.
func TestSpread(t *testing.T) {
	got := spreadAll(Evenly,
		Event[string]{at(1), true, "a"}, Event[string]{at(1), true, "b"}, Event[string]{at(1), true, "c"}, Event[string]{at(1), true, "d"},
		Event[string]{at(2), true, "e"}, Event[string]{at(2.1), false, "x"}, Event[string]{at(2.9), false, "y"}, Event[string]{at(2.95), true, "f"},
		Event[string]{at(7.5), false, "z"},
	)
	want := []Event[string]{
		{at(1), true, "a"}, {at(1.25), true, "b"}, {at(1.5), true, "c"}, {at(1.75), true, "d"},
		{at(2), true, "e"}, {at(2.1), false, "x"}, {at(2.5), true, "f"}, {at(2.9), false, "y"}, {at(7.5), false, "z"},
	}
	assert.Equal(t, want, got)
	n := 0
	_ = Spread(Evenly, func() (Event[int], bool, error) { n++; return Event[int]{At: at(float64(n))}, true, nil }, func(Event[int]) bool { return n < 5 })
	assert.Equal(t, 5, n, "it ends when its consumer does")
}

func TestPlacements(t *testing.T) {
	second := []Event[string]{{at(3), true, "a"}, {at(3), true, "b"}, {at(3.2), false, "x"}, {at(3), true, "c"}}
	assert.Equal(t, []Event[string]{{at(3), true, "a"}, {at(3), true, "b"}, {at(3), true, "c"}, {at(3.2), false, "x"}}, spreadAll(AtOnce, second...))
	random := spreadAll(Randomly, second...)
	assert.Equal(t, random, spreadAll(Randomly, second...))
	order := ""
	for i, e := range random {
		if order += e.Value; i > 0 {
			assert.GreaterOrEqual(t, e.At, random[i-1].At)
		}
		assert.Less(t, e.At, at(4))
	}
	assert.Equal(t, "abc", strings.ReplaceAll(order, "x", ""))
	assert.NotEqual(t, at(3), random[0].At)
}

// A second with more events than fit is spread in parts, in order.
func TestSpreadOfAFullSecond(t *testing.T) {
	n, last := 0, int64(0)
	err := Spread(Evenly, func() (Event[int], bool, error) {
		n++
		return Event[int]{At: at(5), Coarse: true, Value: n}, n <= maxSorted+1000, nil
	}, func(e Event[int]) bool {
		if e.At < last || e.At >= at(6) {
			t.Fatalf("%d after %d", e.At, last)
		}
		last = e.At
		return true
	})
	require.NoError(t, err)
}
