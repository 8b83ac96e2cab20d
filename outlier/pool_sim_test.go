//go:build sim

package outlier

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
)

const msec = int64(time.Millisecond)

// Callers with different clocks call endpoints that are in service, ejected, or due; their calls
// succeed or fail, are lost or are refused elsewhere. Under every schedule the results are possible
// in some serial order, so at no time are more ejected than the share or more probes in flight than
// allowed, and calls from an older state change nothing.
// known bug 1, 20, 81
func TestSimPool(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		rule := twinRule([]float64{0.34, 0.5, 1}[s.Rand.IntN(3)], 1+s.Rand.IntN(2))
		p, want := alone(rule), &carrying{newTwin(rule), make(map[int]ticket)}
		addrs := []string{"a", "b", "c", "d"}[:2+s.Rand.IntN(3)]
		now := int64(time.Hour)
		var old []flight
		for i, addr := range addrs {
			f := flight{caller: -1 - i, addr: addr}
			f.who, f.number, f.probe, _ = p.admit(addr, now)
			f.twin, _ = want.admit(f.caller, addr, now)
			old = append(old, f)
		}
		for range s.Rand.IntN(3) { // some have failed already
			f := flight{caller: -100, addr: addrs[s.Rand.IntN(len(addrs))]}
			var ok bool
			if f.who, f.number, _, ok = p.admit(f.addr, now); ok {
				f.twin, _ = want.admit(f.caller, f.addr, now)
				f.who.completed(f.number, now, breaker.End{Failed: true})
				want.complete(f.caller, f.addr, f.twin, now, true)
			}
		}
		var history schedules.History[*carrying]
		locked := func(f func()) {
			p.site.mu.Lock()
			defer p.site.mu.Unlock()
			f()
			if e, n := p.outside.n, len(p.known); e > 0 && !fits(e, n, rule.MaxEjected) {
				s.Failf("%d of %d are ejected", e, n)
			}
		}
		complete := func(f flight, at int64, bad bool) {
			history.Do(func() (func() string, func(*carrying) bool) {
				locked(func() { p.complete(f.who, f.number, at, breaker.End{Failed: bad}) })
				return func() string { return fmt.Sprintf("%d at %s ends at %d, bad %v", f.caller, f.addr, at/msec, bad) },
					func(w *carrying) bool { w.complete(f.caller, f.addr, f.twin, at, bad); return true }
			})
		}
		for caller := range 2 + s.Rand.IntN(2) {
			at := now + []int64{0, 49, 50, 50, 69, 70, 100, 160}[s.Rand.IntN(8)]*msec
			addr, fate := addrs[s.Rand.IntN(len(addrs))], s.Rand.IntN(6)
			s.Go(func() {
				f := flight{caller: caller, addr: addr}
				ok := false
				history.Do(func() (func() string, func(*carrying) bool) {
					refused := false
					if p.site.ejected.Load() > 0 {
						locked(func() { refused = !p.asks(addr, at) })
					}
					return func() string { return fmt.Sprintf("%d asks for %s at %d: refused %v", caller, addr, at/msec, refused) },
						func(w *carrying) bool { return w.refuses(addr, at) == refused }
				})
				history.Do(func() (func() string, func(*carrying) bool) {
					locked(func() { f.who, f.number, f.probe, ok = p.admit(addr, at) })
					return func() string { return fmt.Sprintf("%d enters %s at %d: %v", caller, addr, at/msec, ok) },
						func(w *carrying) bool {
							got, may := w.admit(caller, addr, at)
							if ok {
								w.carries[caller] = got
							}
							return may == ok
						}
				})
				switch {
				case !ok || fate == 0: // a lost call
				case fate == 1 && f.probe:
					history.Do(func() (func() string, func(*carrying) bool) {
						f.who.GiveBack(&engine.Reservation{Token: int64(f.number)}, 0)
						return func() string { return fmt.Sprintf("%d gives %s back", caller, addr) },
							func(w *carrying) bool { w.giveBack(caller, addr, w.carries[caller]); return true }
					})
				case fate == 5:
					history.Do(func() (func() string, func(*carrying) bool) {
						locked(func() { p.complete(f.who, f.number, at+msec, breaker.End{Neutral: true}) })
						return func() string { return fmt.Sprintf("%d at %s ends, and says nothing", caller, addr) },
							func(w *carrying) bool { w.leave(caller, addr, w.carries[caller], at+msec); return true }
					})
				default:
					history.Do(func() (func() string, func(*carrying) bool) {
						locked(func() { p.complete(f.who, f.number, at+msec, breaker.End{Failed: fate >= 3}) })
						return func() string { return fmt.Sprintf("%d at %s ends, bad %v", caller, addr, fate >= 3) },
							func(w *carrying) bool { w.complete(caller, addr, w.carries[caller], at+msec, fate >= 3); return true }
					})
				}
			})
		}
		f, bad := old[s.Rand.IntN(len(old))], s.Rand.IntN(2) == 0
		s.Named("an old one", func() { complete(f, now+50*msec, bad) })
		s.Check(func() {
			history.Do(func() (func() string, func(*carrying) bool) { // at the end both states are equal
				return func() string { return "the end" }, func(w *carrying) bool { return w.looksLike(p) }
			})
			if !history.Linearizable(want, (*carrying).clone) {
				s.Failf("no serial order gives these results (began-ended):\n%v", &history)
			}
		})
	})
}

// carrying is a twin, and the ticket of each admitted caller.
type carrying struct {
	*twin
	carries map[int]ticket
}

func (c *carrying) clone() *carrying {
	t := *c.twin
	t.known = maps.Clone(t.known)
	for addr, x := range t.known {
		y := *x
		y.probes = maps.Clone(x.probes)
		t.known[addr] = &y
	}
	return &carrying{&t, maps.Clone(c.carries)}
}

// looksLike reports whether the twin knows the same endpoints in the same states.
func (t *twin) looksLike(p *pool) bool {
	if len(t.known) != len(p.known) {
		return false
	}
	for addr, x := range t.known {
		c := p.known[addr]
		state := map[breaker.State]string{breaker.Open: "open", breaker.HalfOpen: "probing"}
		if c == nil || state[c.breaker.State()] != x.state || c.touched != x.touched {
			return false
		}
	}
	return true
}

// Of four callers at the instant at which an ejected endpoint is due, exactly as many pass as there
// are probes, in every schedule.
// known bug 81
func TestSimProbesEverySchedule(t *testing.T) {
	schedules.Exhaustive(t, 1_000_000, func(s *schedules.Schedule) {
		p := alone(twinRule(0.5, 1))
		now := int64(time.Hour)
		p.admit("a", now)
		c, number, _, _ := p.admit("b", now)
		c.completed(number, now, breaker.End{Failed: true})
		passed := 0
		for range 3 {
			s.Go(func() {
				p.site.mu.Lock()
				defer p.site.mu.Unlock()
				if _, _, _, ok := p.admit("b", now+50*msec); ok {
					passed++
				}
			})
		}
		s.Check(func() {
			if passed != 1 {
				s.Failf("%d passed, there is one probe", passed)
			}
		})
	})
}

// Two rules on a resource eject endpoints, let them back in and are reloaded while callers arrive
// and finish. At every instant the smaller share holds for both together.
func TestSimTwoRules(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		first, second := twinRule(0.5, 1), twinRule(0.34, 1)
		where := new(site)
		pools := []*pool{newPool(where, first, breaker.NewTerms(first.breaker())), newPool(where, second, breaker.NewTerms(second.breaker()))}
		where.enforce(pools)
		share := 0.34
		now := int64(time.Hour)
		addrs := []string{"a", "b", "c", "d"}
		for _, addr := range addrs {
			for _, p := range pools {
				p.admit(addr, now)
			}
		}
		check := func() {
			out := make(map[string]bool)
			for _, p := range where.pools {
				for c := range p.outside.all() {
					out[c.addr] = true
				}
			}
			for _, p := range where.pools {
				if p.outside.n > 0 && !fits(len(out), len(p.known), share) {
					s.Failf("%d of %d are ejected, the share is %v", len(out), len(p.known), share)
				}
			}
		}
		for range 3 {
			addr, at := addrs[s.Rand.IntN(4)], now+[]int64{0, 10, 50, 60, 99}[s.Rand.IntN(5)]*msec
			fails := [2]bool{s.Rand.IntN(2) == 0, s.Rand.IntN(2) == 0}
			s.Go(func() {
				for i, p := range pools {
					var c *endpoint
					var number uint64
					var ok bool
					where.mu.Lock()
					c, number, _, ok = p.admit(addr, at)
					check()
					where.mu.Unlock()
					if ok {
						where.mu.Lock()
						p.complete(c, number, at, breaker.End{Failed: fails[i]})
						check()
						where.mu.Unlock()
					}
				}
			})
		}
		s.Named("rules", func() {
			where.mu.Lock()
			defer where.mu.Unlock()
			first.MaxEjected = 1
			pools[0].adopt(first, breaker.NewTerms(first.breaker()), now)
			where.enforce(pools[:1])
			share = 1
			check()
		})
	})
}
