package clustersim

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/stat"
)

// bill records the units that calls with costs have reserved, and not given back, in true time.
type bill struct {
	world    *World
	interval time.Duration
	limit    int64
	reserved []*admission
	over     int64 // the most beyond the limit, by the time of an admission
	most     int64
}

// admit counts a reservation, and looks at the interval that ends with it.
func (b *bill) admit(units int64) *admission {
	a := &admission{b.world.now, units}
	b.reserved = append(b.reserved, a)
	sum := int64(0)
	for _, x := range b.reserved {
		if x.at > a.at-int64(b.interval) {
			sum += x.units
		}
	}
	b.most, b.over = max(b.most, sum), max(b.over, sum-b.limit)
	return a
}

// exactCosts is exact for calls that settle: in the interval before each admission, calls have reserved
// no more than the limit, less the units that they have given back. Some use more than they reserved,
// and are charged.
func exactCosts(seed uint64) (over, most int64) {
	w := NewWorld(seed)
	defer w.End()
	r := w.Random
	s := w.NewServer(0)
	buckets := []int{1, 2, 10}[r.IntN(3)]
	width := []time.Duration{80, 100, 250}[r.IntN(3)] * time.Millisecond
	limit := []int64{5, 60, 1000, 1 << 34, 1_000_000_000_000}[r.IntN(5)]
	cfg := sharing.WindowConfig{
		Shape:     stat.Shape{Interval: time.Duration(buckets) * width, Buckets: buckets, Strict: r.IntN(2) == 0},
		Threshold: float64(limit), Rule: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed},
	}
	book := s.NewBook("w", cfg)
	b := &bill{world: w, interval: cfg.Shape.Interval, limit: limit}
	if !cfg.Shape.Strict {
		b.interval -= width
	}
	callers := s.crowd(book)
	for _, caller := range callers {
		c := caller.node.Clock
		caller.Then = func(token, units int64) {
			a := b.admit(units)
			used := r.Int64N(units + units/2 + 1)
			w.After(time.Duration(r.Int64N(2*int64(cfg.Shape.Interval))), func() {
				switch {
				case c.Stopped() || r.IntN(10) == 0: // it has died, or forgets
				case used > units:
					caller.Window.Charge(c.Now(), used-units)
				default:
					a.units = used
					caller.Window.Cancel(token, units-used)
				}
				c.wake()
			})
		}
	}
	s.play(callers, limit, int64(3*cfg.Shape.Interval+4*width), int64(width))
	return b.over, b.most
}

// Members share costs, over a bad network.
func TestExactCosts(t *testing.T) {
	some := int64(0)
	for i := range uint64(size()) {
		over, most := exactCosts(*seed + i)
		if over > 0 {
			t.Fatalf("seed %d: %d beyond the limit", *seed+i, over)
		}
		some += min(most, 1)
	}
	if some == 0 {
		t.Fatal("nothing was admitted")
	}
	figure.Report(t, figure.Figure{Name: "schedules of members with costs that went beyond a limit they share", N: int64(size()), Seed: *seed})
}

// Units that calls give back are admitted again: under twice the load that fits, members with costs that are
// settled after many leases admit nearly as many calls as one window in one process.
func TestRefundsAreAdmittedAgain(t *testing.T) {
	const reserved, used, interval, length = 10, 2, 10 * time.Second, time.Minute
	w := NewWorld(1)
	defer w.End()
	s := w.NewServer(0)
	shape := stat.Shape{Interval: interval, Buckets: 10, Strict: true}
	book := s.NewBook("w", sharing.WindowConfig{Shape: shape, Threshold: 20_000, Rule: cluster.Rule{Scope: cluster.Global}})
	local, ran, alone := book.Local(), 0, 0
	for range 4 {
		c := w.NewClock(0, 1)
		l := s.NewLink(c)
		l.Latency, l.Jitter = 300*time.Microsecond, 300*time.Microsecond
		caller := s.NewNode(c, l, 0).Share(book)
		caller.Then = func(token, units int64) {
			ran++
			w.After(time.Duration(w.Random.Int64N(int64(4*time.Second))), func() {
				caller.Window.Cancel(token, units-used)
				c.wake()
			})
		}
		var next func()
		next = func() {
			caller.Take(reserved, 0)
			if receipt, ok := local.TryAdd(0, w.now, reserved, book.limit); ok {
				alone++
				w.After(time.Duration(w.Random.Int64N(int64(4*time.Second))), func() { local.Cancel(receipt, reserved-used) })
			}
			w.After(time.Duration(w.Random.ExpFloat64()/500*float64(time.Second)), next)
		}
		next()
	}
	w.Run(length)
	without := int(length/interval) * int(book.limit) / reserved
	if ran < alone*9/10 || alone < 3*without/2 {
		t.Errorf("%d calls ran, of %d in one process; without refunds %d", ran, alone, without)
	}
	t.Logf("%d calls ran, of %d in one process; without refunds %d", ran, alone, without)
}
