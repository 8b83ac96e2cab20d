package clustersim

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/internal/sharing"
)

// members returns members that share through links that delay and lose messages.
func members(w *World, s *Server, most int) []*Node {
	r := w.Random
	nodes := make([]*Node, 1+r.IntN(most))
	for i := range nodes {
		c := w.NewClock(time.Duration(r.Int64N(int64(time.Hour))), 1+(r.Float64()-0.5)/1000)
		l := s.NewLink(c)
		l.Latency = time.Duration(r.Int64N(int64(3 * time.Millisecond)))
		l.Jitter = time.Duration(1 + r.Int64N(int64(3*time.Millisecond)))
		l.LostBefore, l.LostAfter, l.Repeated = r.Float64()/10, r.Float64()/10, r.Float64()/10
		nodes[i] = s.NewNode(c, l, 0)
	}
	return nodes
}

// permits simulates calls that run for a while, and returns the permits granted beyond the limit.
func permits(t *testing.T, seed uint64) (over, most int64) {
	w := NewWorld(seed)
	defer w.End()
	r := w.Random
	s := w.NewServer(0)
	limit := []int64{1, 6, 40}[r.IntN(3)]
	running := int64(0)
	for _, n := range members(w, s, 4) {
		g, err := n.Member.Semaphore("g", sharing.SemaphoreConfig{Threshold: float64(limit), Rule: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed}})
		if err != nil {
			t.Fatal(err)
		}
		run := func(units int64) {
			running += units
			most = max(most, running)
			_ = n.Clock.Sleep(context.Background(), time.Duration(r.Int64N(int64(200*time.Millisecond))))
			running -= units
			g.Release(0, units)
		}
		for range 10 + r.IntN(60) {
			units := 1 + r.Int64N(3)
			w.After(time.Duration(r.Int64N(int64(1500*time.Millisecond))), func() {
				n.Clock.Call(func() {
					switch now := n.Clock.Now(); g.Ask(now, units) {
					case sharing.Fits:
						if g.TryAcquire(0, now, units) {
							run(units)
						}
					case sharing.NeedsMore:
						need := []sharing.Need{{Limit: g, Units: units}}
						if err := n.Member.Fetch(context.Background(), g.Timeout(), need); err != nil {
							t.Error(err)
						}
						if need[0].Got {
							run(units)
						}
					}
				})
			})
		}
		if r.IntN(3) == 0 {
			at, d := time.Duration(r.Int64N(int64(time.Second))), time.Duration(r.Int64N(int64(time.Second)))
			w.After(at, func() { n.Link.Cut = true })
			w.After(at+d, func() { n.Link.Cut = false })
		}
	}
	w.Run(3 * time.Second)
	if running != 0 {
		t.Errorf("seed %d: %d run in the end", seed, running)
	}
	return max(0, most-limit), most
}

func TestPermits(t *testing.T) {
	some := int64(0)
	for i := range uint64(size()) / 4 {
		over, most := permits(t, *seed+i)
		if over > 0 {
			t.Fatalf("seed %d: %d permits beyond the limit", *seed+i, over)
		}
		some += most
	}
	if some == 0 {
		t.Fatal("nobody ran")
	}
}

// A call keeps a distance of its cost from other calls of its member, and at most a round trip less
// from calls of other members; and no more calls run than the rate has turns for.
func TestTurns(t *testing.T) {
	some := 0
	for i := range uint64(size()) / 4 {
		seed := *seed + i
		w := NewWorld(seed)
		r := w.Random
		s := w.NewServer(0)
		spacing := []time.Duration{500 * time.Microsecond, 5 * time.Millisecond, 50 * time.Millisecond}[r.IntN(3)]
		var ran []int64
		nodes := members(w, s, 4)
		for _, n := range nodes {
			g, err := n.Member.Throttle("t", sharing.ThrottleConfig{Interval: time.Second, Threshold: float64(time.Second / spacing),
				Rule: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed}})
			if err != nil {
				t.Fatal(err)
			}
			run := func(wait time.Duration) {
				_ = n.Clock.Sleep(context.Background(), wait)
				ran = append(ran, w.Now())
			}
			for range 10 + r.IntN(60) {
				maxWait := time.Duration(r.Int64N(int64(100 * time.Millisecond)))
				w.After(time.Duration(r.Int64N(int64(500*time.Millisecond))), func() {
					n.Clock.Call(func() {
						now := n.Clock.Now()
						switch a, _ := g.Ask(now, 1, maxWait); a {
						case sharing.Fits:
							if wait, ok := g.TryTake(now, 1, maxWait); ok {
								run(wait)
							}
						case sharing.NeedsMore:
							need := []sharing.Need{{Limit: g, Units: 1, MaxWait: maxWait}}
							if err := n.Member.Fetch(context.Background(), g.Timeout(), need); err != nil {
								t.Error(err)
							}
							if need[0].Got {
								run(need[0].Wait)
							}
						}
					})
				})
			}
		}
		w.Run(2 * time.Second)
		w.End()
		const roundTrip = 13 * time.Millisecond // at most, and the difference of clocks
		for k := range ran {
			for j := range k {
				if turns := int64(k - j); ran[k]-ran[j] < turns*int64(spacing)-int64(roundTrip) {
					t.Fatalf("seed %d: %d turns of %v in %v", seed, turns, spacing, time.Duration(ran[k]-ran[j]))
				}
			}
		}
		some += len(ran)
	}
	if some == 0 {
		t.Fatal("nobody ran")
	}
}

// buckets plays calls under a token bucket, and returns the most units beyond the limit in any real
// interval, and the units used. Some calls give units back.
func buckets(t *testing.T, seed uint64) (over float64, most int64) {
	w := NewWorld(seed)
	defer w.End()
	r := w.Random
	s := w.NewServer(0)
	rate := []float64{3, 60, 700, 20_000}[r.IntN(4)] // a second
	cfg := sharing.BucketConfig{Interval: time.Second, Threshold: rate, Burst: int64(rate/50) + 1 + []int64{0, 1, 10, 500}[r.IntN(4)],
		Costs: r.IntN(2) == 0, Rule: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed}}
	var used []*admission
	for _, n := range members(w, s, 4) {
		if r.IntN(2) == 0 {
			n.Clock.Late = time.Duration(r.Int64N(int64(20 * time.Millisecond)))
		}
		b, err := n.Member.Bucket("b", cfg)
		if err != nil {
			t.Fatal(err)
		}
		run := func(token, units int64) {
			a := &admission{w.Now(), units}
			used = append(used, a)
			if back := r.Int64N(2*units+1) - units; back > 0 && token != 0 {
				first := r.Int64N(back + 1)
				w.After(time.Duration(r.Int64N(int64(300*time.Millisecond))), func() {
					if n.Clock.Stopped() {
						return
					}
					a.units -= back
					token = b.Cancel(token, first)
					b.Cancel(token, back-first)
				})
			}
		}
		for range 20 + r.IntN(100) {
			units := 1 + r.Int64N(cfg.Burst)
			if r.IntN(2) == 0 {
				units = 1
			}
			w.After(time.Duration(r.Int64N(int64(1500*time.Millisecond))), func() {
				if n.Clock.Stopped() {
					return
				}
				n.Clock.Call(func() {
					now := n.Clock.Now()
					switch b.Ask(now, units) {
					case sharing.Fits:
						if token, ok := b.TryTake(now, units); ok {
							run(token, units)
						}
					case sharing.NeedsMore:
						need := []sharing.Need{{Limit: b, Units: units}}
						if err := n.Member.Fetch(context.Background(), b.Timeout(), need); err != nil {
							t.Error(err)
						}
						if need[0].Got {
							run(need[0].Token, units)
						}
					}
				})
			})
		}
		if r.IntN(3) == 0 {
			at, d := time.Duration(r.Int64N(int64(time.Second))), time.Duration(r.Int64N(int64(time.Second)))
			w.After(at, func() { n.Link.Cut = true })
			w.After(at+d, func() { n.Link.Cut = false })
		}
	}
	switch r.IntN(4) {
	case 0:
		w.After(time.Duration(r.Int64N(int64(time.Second))), func() { s.Clock.Step(-time.Duration(r.Int64N(int64(time.Second)))) })
	case 1:
		w.After(time.Duration(r.Int64N(int64(time.Second))), func() { s.Clock.Step(-time.Hour) })
	}
	w.Run(3 * time.Second)
	slices.SortFunc(used, func(a, b *admission) int { return cmp.Compare(a.at, b.at) })
	for i, first := range used {
		sum := int64(0)
		for _, a := range used[i:] {
			sum += a.units
			limit := float64(cfg.Burst) + 1 + float64(a.at-first.at)/float64(time.Second)*rate
			over = max(over, float64(sum)-limit)
		}
		most += first.units
	}
	return over, most
}

// In no interval do members use more of a token bucket than its burst, one, and what it gains.
func TestBuckets(t *testing.T) {
	some := int64(0)
	for i := range uint64(size()) {
		over, most := buckets(t, *seed+i)
		if over > 1e-6 {
			t.Fatalf("seed %d: %g units beyond the limit", *seed+i, over)
		}
		some += most
	}
	if some == 0 {
		t.Fatal("nothing was used")
	}
	t.Logf("%d units", some)
}

// While some of the members of a token bucket are cut off, or the store is away, they use no more than
// their shares beyond the limit; and no more than the limit once more as the store goes away or comes
// back. All members have more traffic than fits.
func TestBucketsWithoutTheStore(t *testing.T) {
	const n, rate, burst = 8, 800.0, 799
	for i := range uint64(size()) / 60 {
		seed := *seed + i
		w := NewWorld(seed)
		r := w.Random
		s := w.NewServer(0)
		cut := []int{0, 3, n}[r.IntN(3)]
		var used []int64
		for k := range n {
			l := s.NewLink(w.NewClock(time.Duration(r.Int64N(int64(time.Hour))), 1))
			l.Latency, l.Jitter = 500*time.Microsecond, time.Millisecond
			m := s.NewNode(l.clock, l, n)
			b, err := m.Member.Bucket("b", sharing.BucketConfig{Interval: time.Second, Threshold: rate, Burst: burst, Rule: cluster.Rule{Scope: cluster.Global}})
			if err != nil {
				t.Fatal(err)
			}
			var next func()
			next = func() {
				l.clock.Call(func() {
					need := []sharing.Need{{Limit: b, Units: 1}}
					if err := m.Member.Fetch(context.Background(), b.Timeout(), need); err == nil && need[0].Got {
						used = append(used, w.Now())
					}
				})
				w.After(time.Duration(r.ExpFloat64()*float64(4*time.Millisecond)), next)
			}
			next()
			if k < cut {
				w.After(1500*time.Millisecond, func() { l.Cut = true })
				w.After(3500*time.Millisecond, func() { l.Cut = false })
			}
		}
		w.Run(6 * time.Second)
		w.End()
		bound := 1 + float64(cut)/n
		if cut == n {
			bound = 2 - 1.0/n
		}
		worst := 0.0
		for i, from := range used {
			for j := i; j < len(used); j += 20 {
				worst = max(worst, float64(j-i+1)/(burst+1+float64(used[j]-from)/float64(time.Second)*rate))
			}
		}
		if worst > bound || len(used) < 3000 {
			t.Fatalf("seed %d: %d of %d members cut off: %.3f of the limit, at most %.3f; %d units", seed, cut, n, worst, bound, len(used))
		}
	}
}
