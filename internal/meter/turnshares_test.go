package meter

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/shared"
)

// turnsTwin is a naive Pacer with shares, for a single caller.
type turnsTwin struct {
	sharesTwin
	ran   int64
	calls map[*twinCall]*twinTurn
}

type twinTurn struct {
	at, before, arrived, deadline int64
}

// next returns the call that is next, and its share.
func (m *turnsTwin) next() (*twinCall, *twinShare) {
	for level := range Levels {
		x := m.least(level, func(a, b *twinShare) int { return cmp.Or(cmp.Compare(a.used, b.used), a.id-b.id) })
		if x != nil {
			return x.line[0], x
		}
	}
	return nil, nil
}

func (m *turnsTwin) least(level int, by func(a, b *twinShare) int) *twinShare {
	var waiting []*twinShare
	for _, x := range m.shares {
		if len(x.line) > 0 && x.tenant.Level == level {
			waiting = append(waiting, x)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	return slices.MinFunc(waiting, by)
}

func cost(x *twinShare) (sum int64) {
	for _, c := range x.line {
		sum += c.units
	}
	return sum
}

func (m *turnsTwin) last() int64 {
	last := m.ran
	for _, x := range m.shares {
		last += cost(x)
	}
	return last
}

func (m *turnsTwin) grant(c *twinCall, x *twinShare, at int64) {
	_, weights := m.sumsOf(x.tenant.Level)
	level := x.tenant.Level
	m.virtual[level] = max(m.virtual[level]+growth*float64(c.units)/float64(weights), x.used)
	m.ids++
	x.id = m.ids
	x.used += float64(c.units) / float64(x.weight)
	x.area, x.done = halved(x.area+float64(c.units), x.done+1)
	m.area, m.done = halved(m.area+float64(c.units), m.done+1)
	m.latest[level] = max(m.latest[level], x.used)
	x.figures.served++
	m.drop(c, x, granted)
	t := m.calls[c]
	t.at, t.before, m.ran = at, m.ran, at
}

func (m *turnsTwin) drop(c *twinCall, x *twinShare, as state) {
	x.paid = remove(&x.line, x.paid, c, as == granted)
	c.state = as
	level := x.tenant.Level
	if _, weights := m.sumsOf(level); weights == 0 {
		m.virtual[level] = max(m.virtual[level], m.latest[level])
	}
}

func (m *turnsTwin) lose(c *twinCall, x *twinShare, as state) {
	if as == displaced {
		x.figures.displaced++
	} else {
		x.figures.expired++
	}
	m.drop(c, x, as)
}

// run grants the turns that are due by now.
func (m *turnsTwin) run(now int64) {
	for {
		m.loseTheLate(m.ran)
		c, x := m.next()
		if c == nil || m.ran+c.units > now {
			return
		}
		m.grant(c, x, m.ran+c.units)
	}
}

// loseTheLate loses calls that are next and would run too late.
func (m *turnsTwin) loseTheLate(from int64) {
	for c, x := m.next(); c != nil && max(m.ran+c.units, from) > m.calls[c].deadline; c, x = m.next() {
		m.lose(c, x, expired)
	}
}

// takeUp runs a call that could have run before that time if others had not been there.
func (m *turnsTwin) takeUp(at int64, blamed *twinShare) {
	m.loseTheLate(at)
	c, x := m.next()
	if c == nil || m.ran+c.units >= at {
		return
	}
	if blamed != nil {
		blamed.used += float64(at-max(m.ran+c.units, m.calls[c].arrived)) / float64(blamed.weight)
	}
	m.grant(c, x, at)
}

// pass moves time on, from one deadline to the next.
func (m *turnsTwin) pass(now int64) {
	for {
		var first *twinCall
		var of *twinShare
		for _, x := range m.shares {
			for _, c := range x.line {
				if d := m.calls[c].deadline; d <= now && (first == nil || d < m.calls[first].deadline) {
					first, of = c, x
				}
			}
		}
		if first == nil {
			break
		}
		deadline := m.calls[first].deadline
		if m.run(deadline); first.state == waits {
			m.lose(first, of, expired)
		}
	}
	m.run(now)
}

func (m *turnsTwin) join(c *twinCall, now int64, tenant Tenant, maxWait int64) {
	m.forget()
	x := m.find(tenant)
	if m.ran+c.units-now > maxWait {
		x.figures.refused++
		c.state = gone
		return
	}
	room := max(m.last()+c.units, now)-now <= maxWait
	level := x.tenant.Level
	from := m.virtual[level]
	if first := m.least(level, func(a, b *twinShare) int { return cmp.Compare(a.used, b.used) }); first != nil {
		from = min(from, first.used+m.expected(x)/2)
	}
	if len(x.line) == 0 {
		x.paid = 0
		x.used = max(x.used, from)
	}
	x.line = insert(x.line, x.paid, c)
	c.share, m.calls[c] = x, &twinTurn{arrived: now, deadline: now + maxWait}
	m.takeUp(now, nil)
	m.run(now)
	if c.state == waits && (len(x.line) > m.sharing.PerShare || !room && !m.makeRoom(c, x, now, maxWait)) {
		m.drop(c, x, gone)
		x.figures.refused++
	}
	m.takeUp(now, nil)
	m.run(now)
}

func (m *turnsTwin) makeRoom(c *twinCall, of *twinShare, now, maxWait int64) (some bool) {
	size := func(x *twinShare) int64 { return cost(x) - x.line[len(x.line)-1].units }
	for m.last()-now > maxWait {
		level := Levels - 1
		longest := (*twinShare)(nil)
		for ; longest == nil; level-- {
			longest = m.least(level, func(a, b *twinShare) int {
				return cmp.Or(cmp.Compare(size(b)*a.weight, size(a)*b.weight), b.id-a.id)
			})
		}
		if longest.tenant.Level == of.tenant.Level && size(longest)*of.weight <= size(of)*longest.weight {
			if some || !c.first || of.line[len(of.line)-1].first {
				return some
			}
			longest = of
		}
		m.lose(longest.line[len(longest.line)-1], longest, displaced)
		m.takeUp(now, longest)
		some = true
	}
	return true
}

func (m *turnsTwin) leave(c *twinCall, now int64) {
	switch t := m.calls[c]; {
	case c.state == granted && m.ran == t.at:
		m.ran = t.before
		c.share.used -= float64(c.units) / float64(c.share.weight)
		c.share.figures.served--
		m.takeUp(now, c.share)
	case c.state == waits:
		m.lose(c, c.share, gone)
		m.takeUp(now, c.share)
	default:
		return
	}
	m.takeUp(now, nil)
	m.run(now)
}

// turnCall is a call on a Pacer with shares. It looks when it is to wake, which the script decides.
type turnCall struct {
	Turn
	twin  *twinCall
	wake  int64
	state state
}

func (c *turnCall) WakeAt(to int64) { c.wake = min(c.wake, to) }

// Random scripts of calls of several costs, tenants and levels, with weights, priorities, deadlines and
// departures, do the same on a Pacer as on its naive twin. Calls look only when they are woken.
func TestTurnsOfSharesAreTheirTwin(t *testing.T) {
	r := random(t)
	looks, wrong := 0, 0
	for range rounds(3000) {
		l, w := runTurnsScript(t, r)
		looks, wrong = looks+l, wrong+w
	}
	t.Logf("%d of %d looks were contradicted", wrong, looks)
	assert.LessOrEqual(t, wrong*300, looks, "a look estimates")
}

func runTurnsScript(t *testing.T, r *rand.Rand) (looks, wrong int) {
	t.Helper()
	var mu shared.Mutex
	p, m := MakePacer(&mu), &turnsTwin{calls: make(map[*twinCall]*twinTurn)}
	m.ran = -1 << 40
	sharing := (&sharesScript{Rand: r}).sharing()
	sharing.MaxShares = 100
	m.sharing = sharing
	now, tenants, log := int64(0), 1+r.Int64N(5), new(strings.Builder)
	var open []*turnCall
	fail := func(format string, args ...any) {
		t.Helper()
		require.Fail(t, fmt.Sprintf(format, args...), log.String())
	}
	look := func(at int64) { // every call that is to wake by then
		for {
			var next *turnCall
			for _, c := range open {
				if c.state == waits && c.wake <= at && (next == nil || c.wake < next.wake) {
					next = c
				}
			}
			if next == nil {
				return
			}
			when := max(next.wake, 0)
			next.wake = 1 << 60
			until := next.Come(when, when)
			if next.state = next.Turn.state; next.state == waits {
				next.wake = min(next.wake, until)
			}
			if lost, _ := next.Lost(); lost != (next.state >= displaced) {
				fail("%d is lost: %v", next.twin.caller, lost)
			}
		}
	}
	for n := range 40 {
		now += r.Int64N(3) * r.Int64N(40)
		look(now)
		m.pass(now)
		if len(open) > 0 && r.IntN(5) == 0 {
			i := r.IntN(len(open))
			c := open[i]
			open = slices.Delete(open, i, i+1)
			fmt.Fprintf(log, "%d: %d leaves\n", now, c.twin.caller)
			c.Leave(now)
			m.leave(c.twin, now)
		} else {
			c := &turnCall{wake: 1 << 60}
			c.Turn = MakeTurn(c)
			c.Awaited = true
			q := ShareTurn{
				Cost: Moment{ns: []int64{10, 10, 10, 3, 35}[r.IntN(5)]}, First: r.IntN(4) == 0, MaxWait: time.Duration(20 + r.Int64N(100)), Sharing: sharing,
				Tenant: Tenant{argument.Int(r.Int64N(tenants)), argument.Int(r.Int64N(3)), r.IntN(Levels)},
			}
			c.twin = &twinCall{caller: n, units: q.Cost.ns, first: q.First}
			mu.Lock()
			explained, wait := p.LookShare(now, &q)
			_, may := p.MayQueueShare(now, &q)
			until, least, ok := p.QueueShare(&c.Turn, now, &q)
			mu.Unlock()
			c.state = c.Turn.state
			fmt.Fprintf(log, "%d: %d of %v, level %d, costs %d, first %v, waits for %v at most: %v, %d\n", now, n, q.Tenant.Name, q.Tenant.Level, q.Cost.ns, q.First, q.MaxWait, ok, until)
			switch {
			case ok && !may:
				fail("%d was not to join", n)
			case explained.Runs != (ok && least == 0) || explained.Runs != (wait == 0):
				wrong++
			}
			looks++
			if m.join(c.twin, now, q.Tenant, int64(q.MaxWait)); c.state == waits {
				c.wake = min(c.wake, until)
			}
			open = append(open, c)
		}
		compareTurns(&p, m, open, fail)
	}
	for range 50 { // nobody waits forever
		now += 100
		look(now)
		m.pass(now)
		compareTurns(&p, m, open, fail)
	}
	assert.True(t, p.Empty() && p.fair.cost == Moment{} && p.awaited == 0 && p.fair.active == 0)
	return looks, wrong
}

// compareTurns compares a Pacer with its twin.
func compareTurns(p *Pacer, m *turnsTwin, open []*turnCall, fail func(format string, args ...any)) {
	for _, c := range open {
		got, want := c.Turn.state, c.twin.state
		if got != want || got == granted && c.at.ns != m.calls[c.twin].at {
			fail("%d: %v at %v, its twin %v at %v", c.twin.caller, got, c.at.ns, want, m.calls[c.twin].at)
		}
	}
	for i, x := range p.fair.all {
		y := m.shares[i]
		if x.used != y.used || x.length != len(y.line) || x.cost.ns != cost(y) || x.figures != y.figures {
			fail("share %d of %v is %+v, its twin %+v", i, x.tenant.Name, x, y)
		}
	}
	for level := range p.fair.bands {
		if b := &p.fair.bands[level]; b.virtual != m.virtual[level] {
			fail("level %d is at %v, its twin at %v", level, b.virtual, m.virtual[level])
		}
	}
}

// A tenant with weight 1 always asks for twice the rate. Another one sends a large call at a time: one
// that can't come in time at all, by weight or by level; one that could, and has its half; one that is
// cancelled shortly before its turn, which costs its own half and no more.
func TestLargeCallsInShares(t *testing.T) {
	for _, tt := range []struct {
		name        string
		cost        int64
		weight      int64
		level       int
		patience    int64
		small, fair int64 // parts of a hundred that the tenants have at least
	}{
		{"alone", 0, 1, 0, 0, 100, 0},
		{"never, by weight", 600, 4, 0, 1000, 100, 0},
		{"never, by level", 600, 1, -1, 1000, 100, 0},
		{"one at a time", 450, 1, 0, 1000, 49, 45},
		{"cancelled", 240, 1, 0, 235, 49, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu shared.Mutex
			p := MakePacer(&mu)
			sharing := &Sharing{By: "a", PerShare: 1000, MaxShares: 10, Levels: true, Weights: map[argument.Value]int64{argument.Int(1): tt.weight}}
			var waiting []*turnCall
			var large *turnCall
			ran := make(map[int64]int64)
			join := func(now, tenant, cost int64, level int) *turnCall {
				c := &turnCall{wake: 1 << 60, twin: &twinCall{caller: int(tenant), units: cost}}
				c.Turn = MakeTurn(c)
				c.Awaited = true
				mu.Lock()
				until, least, ok := p.QueueShare(&c.Turn, now, &ShareTurn{Cost: Moment{ns: cost}, MaxWait: 500, Sharing: sharing, Tenant: Tenant{Name: argument.Int(tenant), Level: level}})
				mu.Unlock()
				switch {
				case ok && least == 0:
					ran[tenant] += cost
				case ok:
					c.wake = min(c.wake, until)
					waiting = append(waiting, c)
					return c
				}
				return nil
			}
			const end = 20_000
			for now := int64(0); now < end; now++ {
				for i := 0; i < len(waiting); i++ {
					c := waiting[i]
					if c.wake > now {
						continue
					}
					c.wake = 1 << 60
					until := c.Come(now, now)
					lost, _ := c.Lost()
					if !lost && until > now {
						c.wake = min(c.wake, until)
						continue
					}
					if !lost {
						ran[int64(c.twin.caller)] += c.twin.units
					}
					waiting, i = slices.Delete(waiting, i, i+1), -1
					if c == large {
						large = nil
					}
				}
				if now%5 == 0 {
					join(now, 0, 10, 1)
				}
				switch i := slices.Index(waiting, large); {
				case tt.cost > 0 && large == nil && now%10 == 0:
					large = join(now, 1, tt.cost, 1+tt.level)
					if large != nil {
						large.twin.paid = now
					}
				case i >= 0 && now-large.twin.paid >= tt.patience:
					waiting = slices.Delete(waiting, i, i+1)
					large.Leave(now)
					large = nil
				}
			}
			assert.GreaterOrEqual(t, 100*ran[0], tt.small*(end-1000))
			assert.GreaterOrEqual(t, 100*ran[1], tt.fair*(end-1000))
		})
	}
}

// An endless stream of invented tenants, two for each turn, leaves an old tenant a call a round.
func TestInventedTenantsAndTurns(t *testing.T) {
	var mu shared.Mutex
	p := MakePacer(&mu)
	sharing := &Sharing{By: "a", PerShare: 1000, MaxShares: 1000}
	served, waiting := 0, []*Turn(nil)
	join := func(now, tenant int64) *Turn {
		x := new(Turn)
		mu.Lock()
		defer mu.Unlock()
		p.ExpireShares(now)
		if _, _, ok := p.QueueShare(x, now, &ShareTurn{Cost: Moment{ns: 10}, MaxWait: 500, Sharing: sharing, Tenant: Tenant{Name: argument.Int(tenant)}}); !ok {
			return nil
		}
		return x
	}
	for now := int64(0); now < 100_000; now += 5 {
		if now%20 < 10 {
			join(now, now+1)
		}
		waiting = slices.DeleteFunc(waiting, func(x *Turn) bool {
			if x.state == granted {
				served++
			}
			return x.state != waits
		})
		if len(waiting) < 3 {
			if x := join(now, 0); x != nil {
				waiting = append(waiting, x)
			}
		}
		if now%20 >= 10 { // the old tenant comes first
			join(now, now+1)
		}
	}
	assert.GreaterOrEqual(t, served, 80, "of 10,000 turns, with 50 that wait; 6 if new tenants begin with the first")
}

// If all turns cost the same, the first one of a new tenant comes after at most one of each tenant that waits.
func TestANewTenantsTurnIsOneRoundAway(t *testing.T) {
	r := random(t)
	for range rounds(500) {
		var mu shared.Mutex
		p := MakePacer(&mu)
		sharing := &Sharing{By: "a", PerShare: 1000, MaxShares: 1000}
		tenants, now := 1+r.Int64N(40), int64(0)
		join := func(tenant int64) *Turn {
			x := new(Turn)
			_, _, ok := p.QueueShare(x, now, &ShareTurn{Cost: Moment{ns: 10}, MaxWait: 1 << 40, Sharing: sharing, Tenant: Tenant{Name: argument.Int(tenant)}})
			require.True(t, ok)
			return x
		}
		mu.Lock()
		var others []*Turn
		for tenant := range tenants {
			for range 20 {
				others = append(others, join(tenant))
			}
		}
		for range r.Int64N(10 * tenants) {
			now += 10
			p.ExpireShares(now)
		}
		served := func() (n int) {
			for _, x := range others {
				if x.state == granted {
					n++
				}
			}
			return n
		}
		before := served()
		first := join(tenants)
		for first.state == waits {
			now += 10
			p.ExpireShares(now)
		}
		assert.LessOrEqual(t, served()-before, int(tenants))
		mu.Unlock()
	}
}
