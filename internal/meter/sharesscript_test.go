package meter

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/penstock-go/penstock/core/argument"
)

// sharesScript runs one random script on a semaphore and its twin.
type sharesScript struct {
	*rand.Rand
	g        Semaphore
	twin     *sharesTwin
	log      strings.Builder
	open     []*sharesCall
	revision uint64
	now      int64
	queue    int
	limit    int64
	config   *Sharing
	tenants  int64
	looks    int
	wrong    int // looks that a join contradicted
}

type sharesCall struct {
	claim Claim
	share *Share
	place *Waiter
	twin  *twinCall
}

func (c *sharesCall) granted() bool { return c.place == nil || c.place.Granted() }

func (s *sharesScript) note(format string, args ...any) { fmt.Fprintf(&s.log, format+"\n", args...) }

func (s *sharesScript) reload() {
	s.revision++
	s.limit, s.queue = 1+s.Int64N(8), 1+s.IntN(10)
	if s.config = s.sharing(); s.IntN(5) == 0 {
		s.config = nil
	}
	s.note("reload: limit %d, queue %d, %+v", s.limit, s.queue, s.config)
	s.g.SetSharing(s.revision, s.limit, s.config)
	s.twin.set(s.limit, s.config)
}

func (s *sharesScript) run(fail func(format string, args ...any)) {
	s.reload()
	for range 60 {
		switch n := s.IntN(20); {
		case n == 0:
			s.reload()
		case n < 11:
			s.joins(fail)
		case len(s.open) > 0:
			s.leaves(s.IntN(len(s.open)))
		}
		s.compare(fail)
	}
	for len(s.open) > 0 {
		s.leaves(0)
		s.compare(fail)
	}
	if g := &s.g; g.Held() != 0 || g.Queued() != 0 || g.UnitsQueued() != 0 || s.config == nil && g.shares != nil {
		fail("%d held, %d queued at the end", g.Held(), g.Queued())
	}
}

func (s *sharesScript) joins(fail func(format string, args ...any)) {
	c := &sharesCall{claim: Claim{Units: 1 + s.Int64N(s.Int64N(4)+1), First: s.IntN(4) == 0, Queue: s.queue, Limit: s.limit, Revision: s.revision}}
	tenant := Tenant{argument.Int(s.Int64N(s.tenants)), argument.Int(s.Int64N(3)), s.IntN(Levels)}
	s.now += s.Int64N(3) * s.Int64N(1000)
	s.twin.calls++
	c.twin = &twinCall{caller: s.twin.calls, units: c.claim.Units, first: c.claim.First}
	var got bool
	var want string
	if s.config == nil {
		got, c.place = s.g.Join(0, c.claim)
		want = s.twin.joinPlain(c.twin, c.claim)
	} else {
		look := s.g.LookShare(c.claim, s.config, &tenant, s.now)
		may := s.g.MayJoinShare(c.claim, &tenant, s.now)
		if c.claim.Units <= s.limit {
			s.twin.pass(s.now)
			s.twin.forget()
			s.twin.advance()
		}
		got, c.share, c.place = s.g.JoinShare(c.claim, s.config, &tenant, s.now)
		if !may && got {
			fail("%d was not to join", c.twin.caller)
		}
		s.looks++
		if look.Runs != got {
			s.wrong++
		}
		s.twin.pass(s.now)
		want = s.twin.join(c.twin, c.claim, tenant)
	}
	answer := map[bool]string{true: "got", false: "refused"}[got]
	if c.place != nil {
		answer = "queued"
	}
	s.note("%d: %d of tenant %v/%v, level %d, joins for %d, first %v: %s", s.now, c.twin.caller, tenant.Name, tenant.Class, tenant.Level, c.claim.Units, c.claim.First, answer)
	if answer != want {
		fail("%d: %s, but its twin %s", c.twin.caller, answer, want)
	}
	if answer != "refused" {
		s.open = append(s.open, c)
	}
}

func (s *sharesScript) leaves(i int) {
	c := s.open[i]
	s.open = append(s.open[:i], s.open[i+1:]...)
	s.now += s.Int64N(3) * s.Int64N(1000)
	s.note("%d: %d leaves", s.now, c.twin.caller)
	shared := s.g.shares != nil
	switch {
	case c.place != nil && (!c.granted() || s.IntN(2) == 0):
		c.place.leaveAt(s.now)
	case c.place != nil && c.place.Share() != nil:
		c.place.Share().releaseAt(s.now, c.claim.Units, false)
	case c.place == nil && c.share != nil:
		c.share.releaseAt(s.now, c.claim.Units, false)
	default:
		s.g.Release(0, c.claim.Units)
		shared = false
	}
	if shared {
		s.twin.pass(s.now)
	}
	s.twin.leave(c.twin, true)
}

// compare compares the semaphore with its twin.
func (s *sharesScript) compare(fail func(format string, args ...any)) {
	g, m := &s.g, s.twin
	if m.unfair != "" {
		fail("%s", m.unfair)
	}
	for _, c := range s.open {
		now := granted
		if c.place != nil {
			now = c.place.state
		}
		if now != c.twin.state {
			fail("%d is in state %d, its twin in %d", c.twin.caller, now, c.twin.state)
		}
	}
	held, active, waiting := m.sums()
	if g.InUse() != held+m.nobodys || g.Queued() != int64(waiting+len(m.plain)) {
		fail("%d in use and %d queued, of the twin %d and %d", g.InUse(), g.Queued(), held+m.nobodys, waiting+len(m.plain))
	}
	if g.shares == nil {
		if len(m.shares) > 0 {
			fail("no shares, of the twin %d", len(m.shares))
		}
		return
	}
	if x := g.shares; x.held != held || x.active != active || x.waiting != waiting {
		fail("held %d, active %d, waiting %d; the twin: %d, %d, %d", x.held, x.active, x.waiting, held, active, waiting)
	}
	for level := range g.shares.bands {
		b := &g.shares.bands[level]
		if held, weights := m.sumsOf(level); b.held != held || b.weights != weights || b.virtual != m.virtual[level] {
			fail("level %d: held %d, weights %d, time %v; the twin: %d, %d, %v", level, b.held, b.weights, b.virtual, held, weights, m.virtual[level])
		}
	}
	for i, x := range g.shares.all {
		y := m.shares[i]
		if x.held != y.held || x.key() != y.key() || x.weight != y.weight || x.length != len(y.line) || x.figures != y.figures {
			fail("share %d of tenant %v is %+v, its twin %+v", i, x.tenant.Name, x, y)
		}
		for kind := range x.heaps {
			if (x.heaps[kind] > 0) != (x.length > 0) {
				fail("share %d is in heap %d: %v", i, kind, x.heaps[kind] > 0)
			}
		}
	}
}

// joinPlain is for a call outside shares.
func (m *sharesTwin) joinPlain(w *twinCall, c Claim) string {
	_, _, waiting := m.sums()
	waiting += len(m.plain)
	if w.units > m.limit {
		return "refused"
	}
	if len(m.plain) == 0 {
		m.plainPay = 0
	}
	line := insert(m.plain[:len(m.plain):len(m.plain)], m.plainPay, w)
	_, _, inShares := m.sums()
	if line[0] == w && inShares == 0 && m.used()+w.units <= m.limit {
		if w.first && len(m.plain) > 0 {
			m.plainPay = w.paid
		}
		m.nobodys += w.units
		w.state = granted
		return "got"
	}
	if waiting >= c.Queue {
		return "refused"
	}
	m.plain = line
	if m.advance(); w.state == granted {
		return "got"
	}
	return "queued"
}

func (s *sharesScript) sharing() *Sharing {
	c := &Sharing{By: "param tenant", PerShare: 1 + s.IntN(6), MaxShares: 1 + s.IntN(30), Weights: map[argument.Value]int64{}}
	for i := range s.IntN(4) {
		c.Weights[argument.Int(int64(i))] = 1 + s.Int64N(5)
	}
	c.ByClass = s.IntN(3) == 0
	if s.IntN(6) == 0 {
		c.By = "origin"
	}
	c.Levels = s.IntN(2) == 0
	return c
}
