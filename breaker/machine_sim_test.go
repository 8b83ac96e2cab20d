//go:build sim

package breaker

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/proof/schedules"
)

const (
	msec = int64(time.Millisecond)
	// In the schedules, a breaker that starts open opened at 0, and admits probes from 100 ms on.
	due = 100 * msec
)

func simRule() Rule {
	return Rule{
		ID: "b", Resource: "orders", Strategy: ErrorCount, Threshold: 2, MinCalls: 1, Interval: time.Hour, Buckets: 1,
		Recovery: 100 * time.Millisecond, Probes: 1, ProbeTimeout: 50 * time.Millisecond,
	}
}

// model is a breaker as one would write it for a single caller.
type model struct {
	state   State
	epoch   int
	retry   int64
	latest  int64
	bad     int
	good    int
	out     map[int]int64 // probes in flight, by caller
	carries map[int]int   // the epoch in which a caller was admitted
	probes  int
}

func (m *model) clone() *model {
	c := *m
	c.out, c.carries = maps.Clone(m.out), maps.Clone(m.carries)
	return &c
}

func (m *model) enter(to State) {
	m.state, m.bad, m.good = to, 0, 0
	m.epoch++
	clear(m.out)
	m.retry = m.latest + due
}

// admit reports whether a caller could get that result, and applies it. A caller that is early by
// its own clock may be refused, even if it is on time by other callers' clocks.
func (m *model) admit(caller int, now int64, got bool) bool {
	if m.state == Closed {
		m.carries[caller] = m.epoch
		return got
	}
	early := m.state == Open && now < m.retry
	if m.state == HalfOpen {
		out := 0
		for _, until := range m.out {
			if now < until {
				out++
			}
		}
		early = out >= m.probes-m.good
	}
	if early && !got {
		return true
	}
	m.latest = max(m.latest, now)
	if m.state == Open && m.latest < m.retry {
		return false
	}
	if m.state == Open {
		m.enter(HalfOpen)
	}
	for caller, until := range m.out {
		if m.latest >= until {
			delete(m.out, caller)
		}
	}
	if len(m.out) >= m.probes-m.good {
		return !got
	}
	m.carries[caller], m.out[caller] = m.epoch, m.latest+50*msec
	return got
}

// leave ends a call neutrally.
func (m *model) leave(caller int) {
	if m.carries[caller] == m.epoch {
		delete(m.out, caller)
	}
}

func (m *model) complete(caller int, now int64, bad bool) {
	if m.carries[caller] != m.epoch {
		return
	}
	m.latest = max(m.latest, now)
	switch m.state {
	case Closed:
		if bad {
			m.bad++
		}
		if m.bad == 2 {
			m.enter(Open)
		}
	case HalfOpen:
		delete(m.out, caller)
		if m.good++; bad {
			m.enter(Open)
		} else if m.good == m.probes {
			m.enter(Closed)
		}
	}
}

// setUp returns a breaker in some state, and its model, with two calls that were admitted while it
// was closed: the callers olds and olds+1 of the model.
func setUp(s *schedules.Schedule) (*machine, *model, [2]admission) {
	r := simRule()
	r.Probes = 1 + s.Rand.IntN(2)
	m := newMachine(&terms{Rule: r})
	want := &model{out: make(map[int]int64), carries: make(map[int]int), probes: r.Probes, latest: 0}
	m.latest = 0
	var open [2]admission
	for i := range open {
		open[i], _ = m.admit(0)
		want.admit(olds+i, 0, true)
	}
	if s.Rand.IntN(4) > 0 {
		for caller := range 2 {
			a, _ := m.admit(0)
			m.end(a.number, 0, true)
			want.admit(-1-caller, 0, true)
			want.complete(-1-caller, 0, true)
		}
	}
	return m, want, open
}

const olds = 10

// Callers with different clocks ask a breaker that is closed, open, or due; their calls succeed or
// fail, end neutrally, or are refused elsewhere. Under every schedule the results are possible in
// some serial order, so there are never too many probes in flight, and the changes are legal and
// follow each other.
// known bug 81, 83
func TestSimBreaker(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		m, want, open := setUp(s)
		var history schedules.History[*model]
		var changes []Change
		tell := func(c Change) {
			if c != (Change{}) {
				changes = append(changes, c)
			}
		}
		state, number := m.state()
		for caller := range 2 + s.Rand.IntN(3) {
			now := []int64{0, due - 1, due, due, due, due + 49*msec, due + 50*msec}[s.Rand.IntN(7)]
			fate, after := s.Rand.IntN(5), []int64{0, msec, 60 * msec}[s.Rand.IntN(3)]
			s.Go(func() {
				var a admission
				history.Do(func() (func() string, func(*model) bool) {
					var c Change
					a, c = m.admit(now)
					tell(c)
					return func() string { return fmt.Sprintf("%d enters at %d: %v", caller, now/msec, a) },
						func(want *model) bool { return want.admit(caller, now, a.ok) }
				})
				if !a.ok || fate == 0 {
					return // a lost call
				}
				if fate == 1 && a.probe {
					history.Do(func() (func() string, func(*model) bool) {
						m.giveBack(a.number)
						return func() string { return fmt.Sprintf("%d gives back", caller) },
							func(want *model) bool {
								if want.carries[caller] == want.epoch {
									delete(want.out, caller)
								}
								return true
							}
					})
					return
				}
				if fate == 4 {
					history.Do(func() (func() string, func(*model) bool) {
						tell(m.leave(a.number, now+after))
						return func() string { return fmt.Sprintf("%d ends at %d, and says nothing", caller, (now+after)/msec) },
							func(want *model) bool { want.leave(caller); return true }
					})
					return
				}
				history.Do(func() (func() string, func(*model) bool) {
					tell(m.end(a.number, now+after, fate == 2))
					return func() string { return fmt.Sprintf("%d ends at %d, bad %v", caller, (now+after)/msec, fate == 2) },
						func(want *model) bool { want.complete(caller, now+after, fate == 2); return true }
				})
			})
		}
		for i := range s.Rand.IntN(3) {
			bad := s.Rand.IntN(2) == 0
			s.Named("a late one", func() {
				history.Do(func() (func() string, func(*model) bool) {
					tell(m.end(open[i].number, due, bad))
					return func() string { return fmt.Sprintf("an old one ends, bad %v", bad) },
						func(want *model) bool { want.complete(olds+i, due, bad); return true }
				})
			})
		}
		s.Check(func() {
			slices.SortFunc(changes, func(a, b Change) int { return int(a.Number) - int(b.Number) })
			for _, c := range changes {
				if c.From != state || c.Number <= number || !Legal(c.From, c.To) {
					s.Failf("a change from %v to %v, the state was %v", c.From, c.To, state)
				}
				state, number = c.To, c.Number
			}
			if now, _ := m.state(); now != state {
				s.Failf("the last change was to %v, the state is %v", state, now)
			}
			history.Do(func() (func() string, func(*model) bool) { // at the end both states are equal
				return func() string { return "ends " + state.String() },
					func(want *model) bool { return want.state == state }
			})
			if !history.Linearizable(want, (*model).clone) {
				s.Failf("no serial order gives these results (began-ended):\n%v", &history)
			}
		})
	})
}

// Of four callers at the instant at which an open breaker is due, exactly as many pass as there are
// probes.
// known bug 81
func TestSimBreakerEverySchedule(t *testing.T) {
	schedules.Exhaustive(t, 1_000_000, func(s *schedules.Schedule) {
		m := newMachine(&terms{Rule: simRule()})
		for range 2 {
			a, _ := m.admit(0)
			m.end(a.number, 0, true)
		}
		passed := 0
		for range 4 {
			s.Go(func() {
				if a, _ := m.admit(due); a.ok {
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

// Callers arrive at the instant at which an open breaker is due, and each probe ends neutrally: the
// next caller gets its slot, never two at a time, and at the end the slot is free.
// known bug 233
func TestSimNeutralProbesEverySchedule(t *testing.T) {
	schedules.Exhaustive(t, 1_000_000, func(s *schedules.Schedule) {
		m := newMachine(&terms{Rule: simRule()})
		for range 2 {
			a, _ := m.admit(0)
			m.end(a.number, 0, true)
		}
		out, most := 0, 0
		for range 3 {
			s.Go(func() {
				a, _ := m.admit(due)
				if !a.ok {
					return
				}
				out++
				most = max(most, out)
				if !m.holds(a.number) { // others ask at the same time
					s.Failf("a probe's slot is not its own")
				}
				out-- // while it still holds its slot
				if c := m.leave(a.number, due); c != (Change{}) {
					s.Failf("a neutral probe changed %v to %v", c.From, c.To)
				}
			})
		}
		s.Check(func() {
			status := m.status(due)
			a, _ := m.admit(due)
			if most != 1 || status.State != HalfOpen || status.Probes != 0 || status.Neutral == 0 || !a.probe {
				s.Failf("%d at a time, then %+v, and the next is %+v", most, status, a)
			}
		})
	})
}

// While calls start, end or get lost, the rule changes and the breaker is forced. Quiet periods
// bring it back, and every change is legal.
// known bug 78, 80
func TestSimBreakerRecovers(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		m, _, _ := setUp(s)
		tr := &trace{m: m, now: due, rule: simRule()}
		var changes []Change
		tell := func(c Change) {
			if c != (Change{}) {
				changes = append(changes, c)
			}
		}
		state, number := m.state()
		for range 2 {
			now, fate := due+s.Rand.Int64N(3)*50*msec, s.Rand.IntN(5)
			s.Go(func() {
				m.asks(now)
				a, c := m.admit(now)
				tell(c)
				switch {
				case !a.ok || fate == 0:
				case fate == 1 && a.probe:
					m.giveBack(a.number)
				case fate == 4:
					tell(m.leave(a.number, now))
				default:
					m.holds(a.number)
					tell(m.end(a.number, now, fate == 2))
				}
			})
		}
		if s.Rand.IntN(2) == 0 {
			f := Force(s.Rand.IntN(3))
			s.Named("hand", func() {
				tell(m.force(f, due))
				tell(m.force(NotForced, due))
			})
		}
		r := simRule()
		r.Probes, r.Ramp = 1+s.Rand.IntN(2), time.Duration(s.Rand.IntN(2))*50*time.Millisecond
		s.Named("rules", func() { m.adopt(&terms{Rule: r}, due) })
		s.Check(func() {
			slices.SortFunc(changes, func(a, b Change) int { return int(a.Number) - int(b.Number) })
			for _, c := range changes {
				if c.From != state || c.Number <= number || !Legal(c.From, c.To) {
					s.Failf("a change from %v to %v, the state was %v", c.From, c.To, state)
				}
				state, number = c.To, c.Number
			}
			tr.state, tr.number, tr.rule = state, number, r
			tr.now = due + 200*msec
			if tr.quiet(5) > 4 {
				s.Failf("%v after four quiet periods", tr.state)
			}
			if tr.problem != "" {
				s.Failf("%s", tr.problem)
			}
		})
	})
}
