package stat

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lineage is a chain of windows, each handed over to the next, and all their units with their
// origins.
type lineage struct {
	now     int64
	windows []*Window
	twins   []*naive
	placed  []*placed
	held    []*placed
	marks   map[*placed]Receipt // the callers' receipts
}

// placed is a number of units in a bucket of a window, and the part that was handed over.
type placed struct {
	in         int
	bucket, n  int64
	successors []*placed
	removed    bool
}

func (l *lineage) twin(i int) *naive {
	m := l.twins[i]
	m.units = m.units[:0]
	for _, p := range l.placed {
		if p.in == i && !p.removed {
			m.add(p.bucket, p.n)
		}
	}
	return m
}

func (l *lineage) place(in int, bucket, n int64) *placed {
	p := &placed{in: in, bucket: bucket, n: n}
	l.placed = append(l.placed, p)
	return p
}

func (l *lineage) hold(p *placed, receipt Receipt) {
	l.held = append(l.held, p)
	l.marks[p] = receipt
}

func (p *placed) remove() {
	p.removed = true
	for _, successor := range p.successors {
		successor.remove()
	}
}

// handOver makes a window that continues window i, and may have counted before.
func (l *lineage) handOver(t testing.TB, r *rand.Rand, i int) {
	shapes := twinShapes()
	s := shapes[r.IntN(len(shapes))]
	next := newPair(t, s, l.now)
	j := len(l.windows)
	l.windows, l.twins = append(l.windows, next.w), append(l.twins, next.m)
	l.twins[i].roll(l.now)
	reseed := r.IntN(2) == 0
	var before *placed
	if reseed {
		receipt := next.w.AddAt(0, l.now, l.now, 3)
		before = l.place(j, next.m.head, 3)
		l.hold(before, receipt)
	}
	old, m := l.twins[i], next.m
	now := max(l.now, old.head*old.width)
	m.roll(now)
	if reseed {
		before.removed = true
		next.w.Reseed(l.windows[i], l.now, func() {})
	} else {
		next.w.SeedFrom(l.windows[i], l.now)
	}
	for _, p := range slices.Clone(l.placed) {
		if p.in != i || p.removed {
			continue
		}
		successor := l.place(j, nowhere, p.n)
		if old.keeps(p.bucket) {
			at := p.bucket * old.width
			if p.bucket <= old.head {
				at = min(at+old.width-1, now)
			}
			successor.bucket = min(m.number(at), m.head+m.ahead)
		}
		p.successors = append(p.successors, successor)
	}
}

// step performs a random operation, and returns a description with the result.
func (l *lineage) step(t testing.TB, r *rand.Rand) (did string) {
	if r.IntN(3) == 0 {
		l.now += r.Int64N(ms(8))
	}
	if r.IntN(40) == 0 {
		l.now += r.Int64N(ms(200))
	}
	i := r.IntN(len(l.windows))
	w, m := l.windows[i], l.twin(i)
	n, limit := r.Int64N(4), r.Int64N(14)
	most := r.Int64N(m.width * (m.ahead + 2))
	if len(l.held) == 0 || r.IntN(3) == 0 {
		switch r.IntN(8) {
		case 0:
			l.handOver(t, r, i)
			return fmt.Sprintf("%d continues %d", len(l.windows)-1, i)
		case 1:
			at := l.now + r.Int64N(m.width*(m.ahead+3))
			receipt := w.AddAt(0, l.now, at, n)
			m.roll(l.now)
			l.hold(l.place(i, m.clamp(m.number(at)), n), receipt)
			return fmt.Sprintf("AddAt in %d", i)
		case 2:
			wait, receipt, ok := w.TryBorrow(l.now, n, limit, time.Duration(most))
			m.roll(l.now)
			mwait, bucket, mok := m.borrow(l.now, n, limit, most)
			assert.Equal(t, []any{mwait, mok}, []any{int64(wait), ok})
			if ok {
				l.hold(l.place(i, bucket, n), receipt)
			}
			return fmt.Sprintf("TryBorrow in %d", i)
		}
		receipt, ok := w.TryAdd(0, l.now, n, limit)
		m.roll(l.now)
		assert.Equal(t, m.fits(m.head, n, limit), ok)
		if ok {
			l.hold(l.place(i, m.head, n), receipt)
		}
		return fmt.Sprintf("TryAdd in %d", i)
	}
	pick := r.IntN(len(l.held))
	p := l.held[pick]
	receipt, w, m := l.marks[p], l.windows[p.in], l.twin(p.in)
	void := p.removed // by a window that replaced its window
	switch op := r.IntN(6); op {
	case 5:
		l.charge(t, w, receipt, n, limit)
		l.chargeTwin(p, n, limit)
		return fmt.Sprintf("Charge in %d", p.in)
	case 0:
		w.Cancel(receipt, p.n)
		p.remove()
		l.held = slices.Delete(l.held, pick, pick+1)
		return fmt.Sprintf("Cancel in %d", p.in)
	case 1:
		if !void {
			assert.Equal(t, len(p.successors) > 0, w.HandedOver(receipt))
		}
		here, elsewhere := w.Follow(receipt)
		l.marks[p] = here
		for _, successor := range p.successors {
			if len(elsewhere) > 0 && elsewhere[0].Window == l.windows[successor.in] {
				l.hold(successor, elsewhere[0].Receipt)
				elsewhere = elsewhere[1:]
			} else {
				assert.True(t, l.expired(successor), "missing %+v", successor)
			}
		}
		if !void { // units that count nowhere may be missing in other windows too
			assert.Empty(t, elsewhere)
		}
		p.successors = nil
		if !void {
			assert.False(t, w.HandedOver(here))
		}
		return fmt.Sprintf("Follow in %d", p.in)
	case 2:
		assert.Equal(t, void || !m.keeps(p.bucket) || m.fits(p.bucket, 0, limit), w.Within(receipt, limit))
		return fmt.Sprintf("Within in %d", p.in)
	case 3:
		at := l.now + r.Int64N(m.width*(m.ahead+2))
		l.marks[p] = w.Move(receipt, at, p.n, limit)
		if to := m.clamp(m.number(at)); !void && m.keeps(p.bucket) && to > p.bucket && len(p.successors) == 0 {
			m.add(p.bucket, -p.n)
			if m.fits(to, p.n, limit) {
				p.bucket = to
			}
		}
		return fmt.Sprintf("Move in %d", p.in)
	default:
		wait, now, ok := w.Rebook(l.now, receipt, p.n, limit, time.Duration(most))
		m.roll(l.now)
		switch {
		case void || !m.keeps(p.bucket):
			assert.Equal(t, []any{time.Duration(0), receipt, true}, []any{wait, now, ok})
		case len(p.successors) > 0:
			assert.Equal(t, []any{time.Duration(0), receipt, false}, []any{wait, now, ok})
		default:
			m.add(p.bucket, -p.n)
			mwait, bucket, mok := m.borrow(l.now, p.n, limit, most)
			assert.Equal(t, []any{mwait, mok}, []any{int64(wait), ok})
			if mok {
				p.bucket = bucket
			}
		}
		l.marks[p] = now
		return fmt.Sprintf("Rebook in %d", p.in)
	}
}

// charge counts more units for a call in a window, and wherever else the call's units are.
func (l *lineage) charge(t testing.TB, w *Window, receipt Receipt, n, most int64) {
	counted, elsewhere, ok := w.Charge(receipt, l.now, n, most)
	if !ok {
		assert.Zero(t, counted)
		return
	}
	for _, h := range elsewhere {
		l.charge(t, h.Window, h.Receipt, n, most)
	}
}

// chargeTwin does the same for the twins. A window that replaced another counts nothing for units
// taken before.
func (l *lineage) chargeTwin(p *placed, n, most int64) {
	if p.removed {
		return
	}
	m := l.twin(p.in)
	m.roll(l.now)
	l.place(p.in, m.head, max(0, min(n, most-m.total())))
	for _, successor := range p.successors {
		l.chargeTwin(successor, n, most)
	}
}

// expired reports whether neither the units nor the parts that were handed over count anywhere.
func (l *lineage) expired(p *placed) bool {
	m := l.twins[p.in]
	return p.bucket <= m.number(l.now)-m.span && !slices.ContainsFunc(p.successors, func(successor *placed) bool { return !l.expired(successor) })
}

func (l *lineage) same(t testing.TB) {
	for i, w := range l.windows {
		m := l.twin(i)
		m.roll(l.now)
		w.Sum(l.now)
		w.lock()
		assert.Equal(t, m.head, w.head, "window %d", i)
		for b := m.head - m.span + 1; b <= m.head+m.ahead && w.head == m.head; b++ {
			assert.Equal(t, m.between(b, b), *w.atLocked(b), "window %d, bucket head%+d", i, b-m.head)
		}
		w.unlock()
	}
}

// Units follow their windows through any number of hand-overs in any order: each window counts the
// same as its twin, which knows the origin of every unit. known bug 123
func TestWindowLineageIsItsTwin(t *testing.T) {
	r := random(t)
	for range rounds(300) {
		l := &lineage{now: epoch, marks: make(map[*placed]Receipt)}
		shapes := twinShapes()
		first := newPair(t, shapes[r.IntN(len(shapes))], l.now)
		l.windows, l.twins = []*Window{first.w}, []*naive{first.m}
		var log []string
		for range 80 {
			log = append(log, l.step(t, r))
			l.same(t)
			if t.Failed() {
				t.Fatalf("%s", tail(log))
			}
		}
	}
}

// Among many eras, the era in which units were counted is known by its last bits. If these are
// ambiguous, no unit is given back twice.
func TestWindowOfManyEras(t *testing.T) {
	for _, handed := range []int{0, 1, 6, 7, 8, 100, eras - 1, eras, eras + 1, 2*eras + 5} {
		w := newWindow(t, time.Second, 2, false)
		var last *Window
		handOver := func(times int) {
			for range times {
				last = newWindow(t, time.Minute, 1, false)
				last.Reseed(w, epoch, func() {})
			}
		}
		handOver(3)
		bucket, ok := w.TryAdd(0, epoch, 1, 10)
		require.True(t, ok)
		_, borrowed, ok := w.TryBorrow(epoch, 1, 10, time.Second)
		require.True(t, ok)
		handOver(handed)
		before := int64(0)
		if handed > 0 {
			before = last.Sum(epoch + ms(500))
		}
		assert.Equal(t, handed%eras != 0, w.HandedOver(bucket))
		w.Cancel(bucket, 1)
		w.Cancel(borrowed, 1)
		assert.Zero(t, w.Sum(epoch+ms(500)))
		switch left := last.Sum(epoch + ms(500)); {
		case handed == 0:
			assert.Zero(t, left)
		case handed < eras:
			assert.Equal(t, []int64{2, 0}, []int64{before, left}, "after %d", handed)
		default:
			assert.GreaterOrEqual(t, left, int64(0), "after %d", handed)
		}
	}
}

// Successors that decide no calls are forgotten, unless one that continued them decides calls.
func TestWindowForgetsItsSuccessors(t *testing.T) {
	w := newWindow(t, time.Second, 2, false)
	now := epoch
	long := newWindow(t, 24*time.Hour, 1, false)
	long.Reseed(w, now, func() {})
	for i := range 100 {
		now += ms(100)
		next := newWindow(t, time.Second, 10, false)
		next.SeedFrom(w, now)
		next.Retire()
		require.LessOrEqual(t, len(w.successors), 2, "after %d", i)
	}
	require.Same(t, long, w.successors[0].to)
	further := newWindow(t, time.Second, 10, false)
	further.SeedFrom(long, now)
	long.Retire()
	next := newWindow(t, time.Second, 10, false)
	next.SeedFrom(w, now)
	require.Same(t, long, w.successors[0].to)
	further.Retire()
	next.SeedFrom(w, now)
	require.Len(t, w.successors, 1)
}
