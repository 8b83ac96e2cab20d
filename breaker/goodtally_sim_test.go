//go:build sim

package breaker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/proof/schedules"
)

// ledger is the closed breaker of tallyRule as one would write it for a single caller: the counted
// calls are in a list.
type ledger struct {
	rule   Rule
	state  State
	number int // of the state, in the order in which they begin
	latest int64
	calls  []entered
}

type entered struct {
	bucket int64
	bad    bool
}

func (l *ledger) clone() *ledger {
	c := *l
	c.calls = slices.Clone(l.calls)
	return &c
}

func (l *ledger) bucket(t int64) int64 {
	if l.rule.Strategy == ConsecutiveErrors {
		return 0
	}
	return t / (int64(l.rule.Interval) / int64(l.rule.Buckets))
}

// at returns the counts at a time.
func (l *ledger) at(now int64) (sum tally) {
	if l.rule.Strategy == ConsecutiveErrors {
		return l.row()
	}
	newest := l.bucket(max(now, l.latest))
	for _, c := range l.calls {
		if c.bucket > newest-int64(l.rule.Buckets) {
			sum.calls++
			if c.bad {
				sum.bad++
			}
		}
	}
	return sum
}

// row returns the failures since the last success.
func (l *ledger) row() (sum tally) {
	for _, c := range slices.Backward(l.calls) {
		if !c.bad {
			break
		}
		sum.calls++
		sum.bad++
	}
	return sum
}

func (l *ledger) enter(to State) {
	l.state, l.calls = to, nil
	l.number++
}

// complete counts a call, and reports whether it opens the breaker.
func (l *ledger) complete(number int, now int64, bad bool) (trips bool) {
	if number != l.number || l.state != Closed {
		return false
	}
	l.latest = max(l.latest, now)
	l.calls = append(l.calls, entered{l.bucket(l.latest), bad})
	sum := l.at(now)
	share := float64(sum.bad) / float64(sum.calls)
	if l.rule.Strategy == ConsecutiveErrors {
		share = float64(sum.bad)
	}
	trips = sum.bad > 0 && sum.calls >= int64(l.rule.MinCalls) && share >= l.rule.Threshold
	if trips {
		l.enter(Open)
	}
	return trips
}

// rowRule returns a rule that trips after the given failures in a row.
func rowRule(failures int) Rule {
	return Rule{
		ID: "b", Resource: "orders", Strategy: ConsecutiveErrors, Threshold: float64(failures),
		Recovery: time.Hour, Probes: 1, ProbeTimeout: time.Hour,
	}
}

func tallyRule(minCalls int) Rule {
	return Rule{
		ID: "b", Resource: "orders", Threshold: 0.5, MinCalls: minCalls, Interval: 200 * time.Millisecond, Buckets: 2,
		Recovery: time.Hour, Probes: 1, ProbeTimeout: time.Hour,
	}
}

// Calls of a closed breaker succeed and fail, some late and some from an earlier state, while others
// read its stats, load another rule or force it. Under every schedule it opens with the same call as
// in some serial order, and its stats agree: no call is lost, none counts twice.
// known bug 62, 83
func TestSimGoodTally(t *testing.T) { playTally(t, tallyRule(4), tallyRule(2)) }

// The same holds for consecutive failures, which a success resets without the lock.
// known bug 131
func TestSimGoodTallyOfARow(t *testing.T) { playTally(t, rowRule(3), rowRule(2)) }

// playTally plays a machine of a rule that another rule may replace.
func playTally(t *testing.T, rule, next Rule) {
	schedules.Random(t, func(s *schedules.Schedule) {
		m := newMachine(&terms{Rule: rule})
		want := &ledger{rule: rule, latest: 0}
		m.latest = 0
		numbers := []uint64{1}
		if s.Rand.IntN(2) == 0 { // there was another closed state, with a tally
			m.end(1, 0, false)
			m.force(ForceClosed, 0)
			m.force(NotForced, 0)
			want.number = 2
			numbers = append(numbers, 2, 3)
		}
		present := numbers[len(numbers)-1]
		for range s.Rand.IntN(3) {
			m.end(present, 0, false)
			want.complete(want.number, 0, false)
		}
		var history schedules.History[*ledger]
		for caller := range 2 + s.Rand.IntN(3) {
			now := []int64{0, 1, 50, 99, 100, 150, 250}[s.Rand.IntN(7)] * msec
			number, bad, ends := present, s.Rand.IntN(2) == 0, 1+s.Rand.IntN(2)
			leaves := s.Rand.IntN(6) == 0
			if s.Rand.IntN(4) == 0 {
				number = numbers[0]
			}
			s.Go(func() {
				for range ends {
					if leaves {
						history.Do(func() (func() string, func(*ledger) bool) {
							c := m.leave(number, now)
							return func() string { return fmt.Sprintf("%d: a call of state %d says nothing: %v", caller, number, c) },
								func(*ledger) bool { return c == (Change{}) }
						})
						continue
					}
					history.Do(func() (func() string, func(*ledger) bool) {
						c := m.end(number, now, bad)
						trips := c != (Change{})
						return func() string {
								return fmt.Sprintf("%d: a call of state %d ends at %d, bad %v; opens it: %v", caller, number, now/msec, bad, trips)
							}, func(want *ledger) bool {
								return want.complete(int(number)-1, now, bad) == trips && (!trips || c.To == Open && c.At.UnixNano() == want.latest)
							}
					})
				}
			})
		}
		look := func(now int64) {
			history.Do(func() (func() string, func(*ledger) bool) {
				got := m.status(now)
				return func() string { return fmt.Sprintf("at %d: %d calls, %d bad", now/msec, got.Calls, got.Bad) },
					func(want *ledger) bool {
						return got.State == want.state && tally{got.Calls, got.Bad} == want.at(now)
					}
			})
		}
		now := []int64{0, 100, 200}[s.Rand.IntN(3)] * msec
		switch s.Rand.IntN(4) {
		case 0:
			s.Named("reader", func() { look(now) })
		case 1:
			s.Named("rules", func() {
				history.Do(func() (func() string, func(*ledger) bool) {
					m.adopt(&terms{Rule: next}, now)
					return func() string { return fmt.Sprintf("at %d two are enough", now/msec) },
						func(want *ledger) bool {
							want.rule, want.latest = next, max(want.latest, now)
							return true
						}
				})
			})
		case 2:
			for _, f := range []Force{ForceClosed, NotForced} {
				s.Named("hand", func() {
					history.Do(func() (func() string, func(*ledger) bool) {
						changed := m.force(f, now) != Change{}
						return func() string { return fmt.Sprintf("at %d %v: %v", now/msec, f, changed) },
							func(want *ledger) bool {
								want.latest = max(want.latest, now)
								switch {
								case f == ForceClosed:
									want.enter(ForcedClosed)
								case want.state == ForcedClosed:
									want.enter(Closed)
								default:
									return !changed
								}
								return changed
							}
					})
				})
			}
		}
		s.Check(func() {
			for _, now := range []int64{0, 100 * msec, 200 * msec} {
				look(now)
			}
			history.Do(func() (func() string, func(*ledger) bool) {
				m.lock()
				latest := m.latest
				m.unlock()
				return func() string { return fmt.Sprintf("the latest time is %d", latest/msec) },
					func(want *ledger) bool { return want.latest == latest }
			})
			if !history.Linearizable(want, (*ledger).clone) {
				s.Failf("no serial order gives these results (began-ended):\n%v", &history)
			}
		})
	})
}

// If four calls, two of them bad, trip a breaker when all have ended, the last to end opens it.
// known bug 62
func TestSimGoodTallyEverySchedule(t *testing.T) {
	schedules.Exhaustive(t, 1_000_000, func(s *schedules.Schedule) {
		m := newMachine(&terms{Rule: tallyRule(4)})
		m.end(1, 0, false)
		var changes []Change
		for _, bad := range []bool{false, true, true} {
			s.Go(func() {
				if c := m.end(1, msec, bad); c != (Change{}) {
					changes = append(changes, c)
				}
			})
		}
		s.Check(func() {
			if len(changes) != 1 || changes[0].To != Open || changes[0].Value != 0.5 {
				s.Failf("it opens with a half of four calls, once: %v", changes)
			}
		})
	})
}
