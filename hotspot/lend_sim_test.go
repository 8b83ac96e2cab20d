//go:build sim

package hotspot

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/lending"
	"github.com/penstock-go/penstock/internal/proof/schedules"
)

// world is a rule and its successor, with their values.
type world struct {
	rules []*controller // the first rule, then also the second once it is loaded
	next  *controller
	held  map[int]*engine.Invocation // takes that passed, by number
}

// action is an action of a caller in a world; it returns the observed result.
type action func(*world) (result string)

// follow puts the second rule into effect.
func (w *world) follow(now int64) string {
	w.next.values.follow(w.next, w.rules[0], now)
	w.rules = append(w.rules, w.next)
	return ""
}

// take takes n units on a lane, and holds them under a number.
func (w *world) take(no, rule int, lane uint32, now, n int64, v argument.Value) string {
	inv := new(engine.Invocation)
	if block := w.rules[rule].takePlain(inv, lane, now, n, &v); block != nil {
		return "refused by " + block.Rule
	}
	w.held[no] = inv
	return "passed"
}

func (w *world) giveBack(no int) string {
	w.held[no].GiveBackFrom(0)
	return ""
}

func (w *world) ask(rule int, now, n int64, v argument.Value) string {
	return fmt.Sprint(w.rules[rule].ask(now, v, n, false, nil) == nil)
}

// look returns the state of the values.
func (w *world) look(now int64) (result string) {
	w.next.values.each(now, func(x *cell) {
		if w := x.strict; w != nil {
			result += fmt.Sprintf("%v: %d", x.value, w.used)
			for b := w.head - buckets; b <= w.head; b++ {
				if n := *w.count(b); n != 0 {
					result += fmt.Sprintf(", %d in %d of %d", n, b, w.width)
				}
			}
			result += "; "
			return
		}
		result += fmt.Sprintf("%v: %d since %d (%d, %d since %d); ", x.value, x.bucket.used, x.bucket.filled,
			x.filling.after, x.filling.before.used, x.filling.before.filled)
	})
	return result
}

// calls counts calls and the units they asked for.
type calls struct{ passed, refused, units int64 }

// Callers take, ask, give back and look on lanes of a rule whose values lend and show refusals,
// across buckets and fillings, while values are evicted and another rule follows. A rule without
// lending could have given every result in some serial order. At the end each call has been counted
// once.
// known bug 164
func TestSimHotValues(t *testing.T) {
	t.Cleanup(func() { lending.Always = false })
	schedules.Random(t, func(s *schedules.Schedule) {
		lending.Always = s.Rand.IntN(4) > 0
		start := int64(100) << heatTick
		if s.Rand.IntN(3) == 0 {
			start -= int64(time.Second) + s.Rand.Int64N(3) // a tick of the heat ends about when the first filling does
		}
		interval := int64(time.Second)
		times := []int64{start, start, start, start + 5, start + interval/10, start + interval, start + interval + 1, start + interval + 2,
			start + 11*interval/10, start + 2*interval + 3}
		most := 1 + s.Rand.IntN(3)
		rule := func(id string) Rule {
			r := Rule{ID: id, Threshold: float64(s.Rand.IntN(7)), Window: Window(s.Rand.IntN(2)), MaxValues: most}
			if r.Window == Refill {
				r.Burst = s.Rand.IntN(3)
			}
			return r
		}
		first, second := rule("first"), rule("second")
		var named map[argument.Value]*quota
		if s.Rand.IntN(3) == 0 {
			q := rule("").quota(float64(s.Rand.IntN(5)))
			q.named, q.private = true, true
			named = map[argument.Value]*quota{argument.Of(1): &q}
		}
		build := func() *world {
			c, next := simulated(s, first), simulated(s, second)
			c.exceptions, next.exceptions, next.values = named, named, c.values
			c.varies, next.varies = named != nil, named != nil
			c.refusal, next.refusal = refusedBy("first"), refusedBy("second")
			return &world{rules: []*controller{c}, next: next, held: make(map[int]*engine.Invocation)}
		}
		w := build()
		var history schedules.History[*[]action]
		do := func(what string, d action) (result string) {
			history.Do(func() (func() string, func(*[]action) bool) {
				result = d(w)
				return func() string { return what + ": " + result }, func(before *[]action) bool {
					other := build()
					for _, d := range *before {
						d(other)
					}
					*before = append(*before, d)
					return d(other) == result
				}
			})
			return result
		}
		takes := 0
		var made calls
		take := func(rule int, lane uint32, now, n int64, v int) (no int, ok bool) {
			takes++
			no = takes
			result := do(fmt.Sprintf("%d takes %d of %d on lane %d at %d", rule, n, v, lane, now-start), func(w *world) string {
				return w.take(no, rule, lane, now, n, argument.Of(v))
			})
			made.units += n
			if ok = result[0] == 'p'; ok {
				made.passed++
			} else {
				made.refused++
			}
			return no, ok
		}
		latest := func() int { return len(w.rules) - 1 }
		for range s.Rand.IntN(4) {
			take(0, s.Rand.Uint32N(2), start, 1, s.Rand.IntN(4)/3)
		}
		for range 2 + s.Rand.IntN(2) {
			lane, value := s.Rand.Uint32N(2), s.Rand.IntN(3)/2
			type plan struct {
				what   int
				now, n int64
			}
			var plans []plan
			for range 1 + s.Rand.IntN(3) {
				plans = append(plans, plan{s.Rand.IntN(10), times[s.Rand.IntN(len(times))], 1 + s.Rand.Int64N(5)/3})
			}
			s.Go(func() {
				for _, p := range plans {
					now := p.now
					switch p.what {
					case 0:
						do(fmt.Sprintf("look at %d", now-start), func(w *world) string { return w.look(now) })
					case 1:
						rule := latest()
						if do(fmt.Sprintf("%d asks for %d of %d at %d", rule, p.n, value, now-start), func(w *world) string {
							return w.ask(rule, now, p.n, argument.Of(value))
						}) == "false" {
							made.refused++
							made.units += p.n
						}
					case 2, 3:
						if no, ok := take(latest(), lane, now, p.n, value); ok {
							if p.what == 3 {
								take(latest(), lane, now, p.n, value)
							}
							do(fmt.Sprintf("take %d is given back", no), func(w *world) string { return w.giveBack(no) })
						}
					default:
						take(latest(), lane, now, p.n, value)
					}
				}
			})
		}
		if s.Rand.IntN(4) == 0 {
			now := times[s.Rand.IntN(len(times))]
			s.Go(func() {
				do(fmt.Sprintf("the second rule follows at %d", now-start), func(w *world) string { return w.follow(now) })
			})
		}
		if s.Rand.IntN(4) == 0 {
			sh := &w.rules[0].values.shards[0]
			s.Go(func() {
				sh.lock()
				sh.cool(nil)
				sh.mu.Unlock()
			})
		}
		s.Check(func() {
			lending.Always = false // for the worlds to compare with
			do("look", func(w *world) string { return w.look(start) })
			if !history.Linearizable(new([]action), func(d *[]action) *[]action { c := append([]action(nil), *d...); return &c }) {
				s.Failf("no serial order under a rule without lending gives these results (began-ended):\n%v", &history)
			}
			if most < 2 {
				return // counts of an evicted value are lost
			}
			var counted calls
			w.next.values.each(start, func(x *cell) {
				counted.passed += x.passed
				counted.refused += x.refused
				counted.units += x.heat.amount >> 8
			})
			if start < int64(100)<<heatTick {
				counted.units = made.units // the heat goes down
			}
			if counted != made {
				s.Failf("%+v were made, and %+v are counted:\n%v", made, counted, &history)
			}
		})
	})
}

// A filling, or a window that has rolled, has room for two calls. Neither is refused by an earlier
// refusal that is still shown, even if the other one begins the new filling or bucket, and borrows
// from it, while this one looks.
// known bug 164
func TestSimRefusalOfTheFillingBeforeEverySchedule(t *testing.T) {
	for _, window := range []Window{Strict, Refill} {
		t.Run(window.String(), func(t *testing.T) { everyScheduleAfterARefusal(t, window) })
	}
}

func everyScheduleAfterARefusal(t *testing.T, window Window) {
	t.Cleanup(func() { lending.Always = false })
	schedules.Exhaustive(t, 50_000, func(s *schedules.Schedule) {
		lending.Always = true
		c := simulated(s, Rule{ID: "first", Threshold: 2, Window: window})
		c.refusal = refusedBy("first")
		take := func(lane uint32, now int64) bool {
			v := argument.Of(1)
			return c.takePlain(new(engine.Invocation), lane, now, 1, &v) == nil
		}
		start := int64(100) << heatTick
		for range 2 {
			take(0, start)
		}
		if take(0, start) {
			s.Failf("the first filling takes a third call")
		}
		for lane := range uint32(2) {
			s.Go(func() {
				if !take(lane, start+int64(1100*time.Millisecond)) {
					s.Failf("the call on lane %d is refused", lane)
				}
			})
		}
	})
}

func refusedBy(rule string) *core.BlockError {
	return engine.NewCounted(core.BlockError{Kind: core.KindHotspot, Resource: "orders", Rule: rule}, nil, nil, nil)
}
