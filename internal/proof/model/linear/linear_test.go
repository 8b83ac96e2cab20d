package linear

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/stat"
)

func TestMain(m *testing.M) { books.Main(m) }

// recorder records the operations of several clients, their results, and the order of calls and
// returns. It has no lock, which would serialize them.
type recorder struct {
	time  atomic.Int64
	ready atomic.Int64
	ops   [][]porcupine.Operation // by client
}

// do records one operation. Sometimes it yields between the operation and its record, so that there
// is more than one possible order, even on one processor.
func (r *recorder) do(client int, rnd *rand.Rand, in any, f func() any) {
	op := porcupine.Operation{ClientId: client, Input: in, Call: r.time.Add(1)}
	dice := rnd.IntN(6)
	if dice == 0 {
		runtime.Gosched()
	}
	op.Output = f()
	if dice == 1 {
		runtime.Gosched()
	}
	op.Return = r.time.Add(1)
	r.ops[client] = append(r.ops[client], op)
}

// together runs clients, each with its own randomness, and returns their operations.
func together(clients int, seed, number uint64, client func(r *recorder, i int, rnd *rand.Rand)) *recorder {
	r := &recorder{ops: make([][]porcupine.Operation, clients)}
	var done sync.WaitGroup
	for i := range clients {
		done.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, number<<8|uint64(i)))
			r.ready.Add(1)
			for spins := 0; r.ready.Load() < int64(clients); spins++ {
				if spins%1000 == 999 {
					runtime.Gosched()
				}
			}
			client(r, i, rnd)
		})
	}
	done.Wait()
	return r
}

func (r *recorder) history() []porcupine.Operation { return slices.Concat(r.ops...) }

// overlapping returns the number of operations that began before another client's had returned.
func (r *recorder) overlapping() (n int) {
	ops := r.history()
	for i, a := range ops {
		for _, b := range ops[i+1:] {
			if a.ClientId != b.ClientId && a.Call < b.Return && b.Call < a.Return {
				n++
				break
			}
		}
	}
	return n
}

// windowOp is an operation on a window and its result.
type windowOp struct {
	what          string
	now, n, limit int64
	bucket        int64 // to cancel in
	lane          uint32
}

type windowAnswer struct {
	ok     bool
	bucket int64
	wait   time.Duration
	sum    int64
}

func (o windowOp) String() string {
	return fmt.Sprintf("%s %d (limit %d) at %d", o.what, o.n, o.limit, o.now)
}

// windowLike is a window, or a broken one.
type windowLike interface {
	TryAdd(lane uint32, now, n, limit int64) (r stat.Receipt, ok bool)
	TryBorrow(now, n, limit int64, maxWait time.Duration) (wait time.Duration, r stat.Receipt, ok bool)
	Cancel(r stat.Receipt, n int64)
	Sum(now int64) int64
}

const longestLoan = 40 * time.Millisecond

func (o windowOp) on(w windowLike) (a windowAnswer) {
	var r stat.Receipt
	switch o.what {
	case "add":
		r, a.ok = w.TryAdd(o.lane, o.now, o.n, o.limit)
	case "borrow":
		a.wait, r, a.ok = w.TryBorrow(o.now, o.n, o.limit, longestLoan)
	case "cancel":
		w.Cancel(stat.Receipt(o.bucket), o.n)
	case "sum":
		a.sum = w.Sum(o.now)
	}
	if a.bucket = int64(r); !a.ok { // its windows are never handed over
		a.bucket, a.wait = 0, 0 // undefined for a refusal
	}
	return a
}

// windowState is a window between two operations: the number of its newest bucket, and the units in
// each. A history is too short for more.
type windowState struct {
	head  int64
	units [64]int64
}

// between returns the units in the buckets from..to.
func (s *windowState) between(from, to int64) (units int64) {
	for b := max(0, from); b <= min(to, int64(len(s.units)-1)); b++ {
		units += s.units[b]
	}
	return units
}

// windowModel is the sequential meaning of the window.
func windowModel(shape stat.Shape) porcupine.Model {
	width, ahead, span := int64(shape.Width()), int64(shape.Buckets), int64(shape.Buckets)
	if shape.Strict {
		span++
	}
	return porcupine.Model{
		Init: func() any { return windowState{} },
		Step: func(state, in, out any) (bool, any) {
			s, o := state.(windowState), in.(windowOp)
			if o.what != "cancel" {
				s.head = max(s.head, o.now/width)
			}
			sum := func(newest int64) int64 { return s.between(newest-span+1, newest) }
			var a windowAnswer
			switch o.what {
			case "add": // it must fit for as long as the newest bucket counts
				a.ok, a.bucket = true, s.head
				for b := s.head; b < s.head+span; b++ {
					a.ok = a.ok && sum(b)+o.n <= o.limit
				}
			case "borrow": // the first upcoming bucket at whose begin the remaining and borrowed units and these fit
				borrowed := s.between(s.head+1, s.head+ahead)
				for b := s.head + 1; b <= s.head+ahead && borrowed < o.limit && !a.ok; b++ {
					if a.bucket, a.wait = b, time.Duration(b*width-o.now); a.wait >= longestLoan {
						break
					}
					a.ok = s.between(b-span+1, s.head)+borrowed+o.n <= o.limit
				}
			case "cancel":
				if o.bucket > s.head-span && o.bucket <= s.head+ahead {
					s.units[o.bucket] -= o.n
				}
			case "sum":
				a.sum = sum(s.head)
			}
			if a.ok {
				s.units[a.bucket] += o.n
			} else {
				a.bucket, a.wait = 0, 0
			}
			return a == out.(windowAnswer), s
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%v: %+v", in, out) },
	}
}

// useWindow runs one client on a window: all share a clock, but a client may be late.
func useWindow(r *recorder, client int, rnd *rand.Rand, w windowLike, shape stat.Shape, clock *atomic.Int64) {
	width := int64(shape.Width())
	var held []windowOp
	for range 4 {
		now := clock.Load()
		if rnd.IntN(3) == 0 {
			now = clock.Add(rnd.Int64N(width + width/2))
		}
		o := windowOp{now: now, n: 1 + rnd.Int64N(2), limit: 3, lane: uint32(client)}
		switch p := rnd.IntN(10); {
		case p < 5:
			o.what = "add"
		case p < 7:
			o.what = "borrow"
		case p < 9 && len(held) > 0:
			i := rnd.IntN(len(held))
			o = windowOp{what: "cancel", n: held[i].n, bucket: held[i].bucket}
			held = append(held[:i], held[i+1:]...)
		default:
			o.what = "sum"
		}
		r.do(client, rnd, o, func() any {
			a := o.on(w)
			if a.ok {
				held = append(held, windowOp{n: o.n, bucket: a.bucket})
			}
			return a
		})
	}
}

var linearShapes = []stat.Shape{
	{Interval: 40 * time.Millisecond, Buckets: 2}, {Interval: 40 * time.Millisecond, Buckets: 4}, {Interval: 40 * time.Millisecond, Buckets: 2, Strict: true}, {Interval: 10 * time.Millisecond, Buckets: 1},
}

// known bug 1, 10: for any concurrent operations on one window, late callers included, there is a
// serial order in which each would have returned the same result.
func TestWindowIsLinearizable(t *testing.T) {
	histories := figure.Size(200, 2000, 25_000, 1_000_000)
	overlaps := 0
	for i := range histories {
		shape := linearShapes[i%len(linearShapes)]
		w, err := stat.NewWindow(shape)
		require.NoError(t, err)
		var clock atomic.Int64
		r := together(4, *chance.Seed, uint64(i), func(r *recorder, client int, rnd *rand.Rand) { useWindow(r, client, rnd, w, shape, &clock) })
		overlaps += r.overlapping()
		require.True(t, porcupine.CheckOperations(windowModel(shape), r.history()), "-seed=%d, history %d of %+v: %+v", *chance.Seed, i, shape, r.history())
	}
	t.Logf("%d of %d operations overlapped another's", overlaps, 16*histories)
	require.Positive(t, overlaps)
	figure.Report(t, figure.Figure{Name: "window: histories without a serial order", N: int64(histories), Seed: *chance.Seed})
}

// checkThenAct is the window of other libraries: it checks, and counts afterwards.
type checkThenAct struct {
	*stat.Window
	between func()
}

func (w checkThenAct) TryAdd(lane uint32, now, n, limit int64) (r stat.Receipt, ok bool) {
	if w.Sum(now)+n > limit {
		return 0, false
	}
	w.between()
	return w.Window.TryAdd(lane, now, n, 1<<40)
}

// The checker finds the bug that it is for: two callers that both checked before either counted.
func TestBrokenWindowIsFound(t *testing.T) {
	shape := linearShapes[0]
	inner, err := stat.NewWindow(shape)
	require.NoError(t, err)
	var looked sync.WaitGroup
	looked.Add(2)
	w := checkThenAct{inner, func() { looked.Done(); looked.Wait() }}
	r := together(2, 0, 0, func(r *recorder, client int, rnd *rand.Rand) {
		o := windowOp{what: "add", now: 1, n: 2, limit: 3}
		r.do(client, rnd, o, func() any { return o.on(w) })
	})
	assert.Len(t, r.history(), 2)
	assert.False(t, porcupine.CheckOperations(windowModel(shape), r.history()), "%+v", r.history())
}
