package breaker

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
)

var seed = chance.Seed

// This lists the legal changes of state.
func TestLegal(t *testing.T) {
	next := map[State][]State{
		Closed:       {Open, ForcedOpen, ForcedClosed},
		Open:         {HalfOpen, ForcedOpen, ForcedClosed},
		HalfOpen:     {Open, Recovering, Closed, ForcedOpen, ForcedClosed},
		Recovering:   {Open, Closed, ForcedOpen, ForcedClosed},
		ForcedOpen:   {Open, ForcedClosed},
		ForcedClosed: {Closed, ForcedOpen},
	}
	for from := range states {
		var legal []State
		for to := range states + 3 {
			if Legal(from, to) {
				legal = append(legal, to)
			}
			assert.False(t, Legal(to, from) && to >= states)
		}
		assert.ElementsMatch(t, next[from], legal, "from %v", from)
	}
}

// trace is a breaker under observation: every change must be a legal one from the state before, and
// there may never be more probes in flight than allowed.
type trace struct {
	t       *testing.T
	m       *machine
	rule    Rule
	now     int64
	state   State
	number  uint64
	open    []got
	problem string
}

type got struct {
	number uint64
	probe  bool
	until  int64 // the probe's timeout
}

func (tr *trace) fail(problem string) {
	if tr.problem == "" {
		tr.problem = problem
	}
}

func (tr *trace) note(c Change) {
	if c == (Change{}) {
		return
	}
	switch {
	case !Legal(c.From, c.To):
		tr.fail("illegal: " + c.From.String() + " to " + c.To.String())
	case c.From != tr.state:
		tr.fail("change from " + c.From.String() + ", but the state was " + tr.state.String())
	case c.Number <= tr.number:
		tr.fail("a number that does not rise")
	}
	tr.state, tr.number = c.To, c.Number
	if state, _ := tr.m.state(); state != tr.state {
		tr.fail("changed to " + tr.state.String() + ", but the state is " + state.String())
	}
}

func (tr *trace) enter() bool {
	asked, _ := tr.m.asks(tr.now)
	a, change := tr.m.admit(tr.now)
	tr.note(change)
	if a.ok && !asked && tr.state != Recovering {
		tr.fail("refused when asked, let in when it took")
	}
	if !a.ok {
		return false
	}
	latest := tr.m.latest // a late caller's probe times out relative to latest
	tr.open = append(tr.open, got{a.number, a.probe, latest + int64(tr.rule.ProbeTimeout)})
	out := 0
	for _, g := range tr.open {
		if g.probe && g.number > tr.number && latest < g.until {
			out++
		}
	}
	if out > tr.rule.Probes {
		tr.fail("too many probes")
	}
	if (tr.state == Open || tr.state == ForcedOpen) || tr.state == HalfOpen && !a.probe {
		tr.fail("let in while " + tr.state.String())
	}
	return true
}

// end ends a call at this breaker, as Complete does.
func (m *machine) end(number uint64, now int64, bad bool) Change {
	end := End{Failed: bad}
	if t := m.terms.Load(); t.Strategy == SlowRatio && bad {
		end.Took = t.SlowRT + 1
	}
	return m.endAs(number, now, end)
}

// leave ends a call neutrally.
func (m *machine) leave(number uint64, now int64) Change {
	return m.endAs(number, now, End{Neutral: true})
}

func (m *machine) endAs(number uint64, now int64, end End) Change {
	if m.countGood(number, now, end) {
		return Change{}
	}
	return m.complete(number, now, end)
}

func (tr *trace) take(i int) got {
	g := tr.open[i]
	tr.open[i] = tr.open[len(tr.open)-1]
	tr.open = tr.open[:len(tr.open)-1]
	return g
}

func (tr *trace) exit(i int, bad bool) {
	g := tr.take(i)
	before := tr.state
	change := tr.m.end(g.number, tr.now, bad)
	if g.number < tr.number && change != (Change{}) {
		tr.fail("a call of an older state changed " + before.String())
	}
	tr.note(change)
}

// leave ends a call neutrally: nothing changes, and its probe slot is free.
func (tr *trace) leave(i int) {
	g := tr.take(i)
	before := tr.m.status(tr.now)
	if tr.m.leave(g.number, tr.now) != (Change{}) {
		tr.fail("a neutral call changed " + before.State.String())
	}
	after := tr.m.status(tr.now)
	if after.Neutral > before.Neutral+1 || after.Probes > before.Probes || after.Probes < before.Probes && !g.probe {
		tr.fail("a neutral call changed the stats")
	}
	if g.probe && g.number > tr.number && max(tr.m.latest, tr.now) < g.until && after.Probes != before.Probes-1 {
		tr.fail("a probe that said nothing is still waited for")
	}
	after.Neutral, after.Probes, after.RetryAt = before.Neutral, before.Probes, before.RetryAt
	if after != before {
		tr.fail("a neutral call counted")
	}
}

func (tr *trace) adopt(r Rule) {
	r.ID, r.Resource = "b", "orders"
	norm, err := r.Normalized()
	require.NoError(tr.t, err)
	tr.rule = norm
	if tr.m == nil {
		tr.m = newMachine(&terms{Rule: norm})
		_, tr.number = tr.m.state()
		return
	}
	tr.m.adopt(&terms{Rule: norm}, tr.now)
}

// step does something at random: calls come, succeed, fail, get lost, are refused elsewhere; time
// passes or a caller is late; rules change; the breaker is forced.
func (tr *trace) step(r *rand.Rand) {
	switch n := r.IntN(20); {
	case n < 7:
		tr.enter()
	case n < 11 && len(tr.open) > 0:
		tr.exit(r.IntN(len(tr.open)), r.IntN(2) == 0)
	case n < 13 && len(tr.open) > 0:
		tr.leave(r.IntN(len(tr.open)))
	case n == 13 && len(tr.open) > 0:
		tr.take(r.IntN(len(tr.open))) // it never ends
	case n == 14 && len(tr.open) > 0:
		i := r.IntN(len(tr.open))
		if g := tr.open[i]; g.probe {
			tr.m.giveBack(g.number)
			tr.take(i)
		}
	case n < 18:
		tr.now += []int64{0, 1, 10, 100, 300, 1000, 5000}[r.IntN(7)] * int64(time.Millisecond)
	case n == 18 && r.IntN(8) == 0:
		now := tr.now
		tr.now -= r.Int64N(int64(time.Second)) // read before, used now
		tr.enter()
		tr.now = now
	case n == 19 && r.IntN(8) == 0:
		tr.note(tr.m.force(Force(r.IntN(3)), tr.now))
	case n == 19 && r.IntN(8) == 0:
		tr.adopt(randomRule(r))
	}
}

func randomRule(r *rand.Rand) Rule {
	rule := Rule{
		Strategy: ErrorCount, Threshold: float64(1 + r.IntN(3)), MinCalls: 1 + r.IntN(3),
		Interval: time.Second, Buckets: []int{1, 2}[r.IntN(2)], Recovery: time.Duration(1+r.IntN(20)) * 100 * time.Millisecond,
		Probes: 1 + r.IntN(3), ProbeTimeout: time.Duration(1+r.IntN(10)) * 100 * time.Millisecond,
		Ramp: time.Duration(r.IntN(4)) * 500 * time.Millisecond,
	}
	if r.IntN(4) == 0 {
		rule.Strategy, rule.MinCalls, rule.Interval, rule.Buckets = ConsecutiveErrors, 0, 0, 0
	}
	return rule
}

// quiet lets periods pass in which calls succeed, and returns the number after which the breaker is
// closed. A period is as long as its longest pause, interval and probe timeout under any of the
// rules.
func (tr *trace) quiet(most int) int {
	if tr.state == ForcedOpen || tr.state == ForcedClosed {
		tr.note(tr.m.force(NotForced, tr.now))
	}
	for periods := range most {
		if tr.state == Closed {
			return periods
		}
		tr.now += int64(max(time.Second, tr.rule.Interval, tr.rule.Recovery, tr.rule.ProbeTimeout, tr.rule.Ramp))
		for range tr.rule.Probes {
			if tr.enter() {
				tr.exit(len(tr.open)-1, false)
			}
		}
	}
	return most
}

// After any random trace, a few quiet periods lead back to closed: one for the recovery or a lost
// probe, and one for each step of a ramp. Every change on the way is legal, and no call from an
// older state causes one.
// known bug 78, 80, 81, 83
func TestNeverStuck(t *testing.T) {
	const most = 1 + len(rampShares)
	n := figure.Size(5_000, 200_000, 1_000_000, 10_000_000)
	longest, stuck, played := 0, 0, 0
	visited := make(map[State]int)
	for i := range n {
		played++
		r := rand.New(rand.NewPCG(*seed, uint64(i)))
		tr := &trace{t: t, now: int64(time.Hour)}
		tr.adopt(randomRule(r))
		for range 10 + r.IntN(30) {
			tr.step(r)
		}
		visited[tr.state]++
		periods := tr.quiet(most + 1)
		longest = max(longest, periods)
		if periods > most {
			stuck++
			tr.fail("not closed after so many quiet periods")
		}
		if tr.problem != "" {
			t.Errorf("trace %d of -seed=%d: %s", i, *seed, tr.problem)
			break
		}
	}
	for state := range states {
		assert.Positive(t, visited[state], "no trace ended %v: the others show nothing of it", state)
	}
	figure.Report(t, figure.Figure{Name: "breakers that stay stuck", Value: float64(stuck), N: int64(played), Seed: *seed})
	figure.Report(t, figure.Figure{Name: "quiet periods until a breaker is closed, the most", Value: float64(longest), AtMost: float64(most), N: int64(played), Seed: *seed})
}
