package sharing

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
)

// permitsScript drives the parts of a semaphore whose permits expire after two seconds.
func permitsScript(s *scenario) script {
	const expiry = 2 * time.Second
	var p permits
	d, r := newPermitDemand(), permitRound{active: 1}
	limit, sent := int64(0), &store.Permits{}
	use := func() string { return fmt.Sprintf("%d in use, of %d", p.inUse.InUse(), p.goodAt(s.now)) }
	position := func() permitPosition {
		return permitPosition{limit, p.inUse.InUse(), p.good.Load(), r.room(limit), r.active}
	}
	keep := func() { d.keep(s.now, func() bool { return max(p.good.Load(), r.held) > p.inUse.InUse() }) }
	return script{
		"limit": func() string { limit = s.units(); return "" },
		"acquire": func() string {
			n := s.units()
			switch {
			case p.take(0, s.now, n):
				return use()
			case n > limit || d.isFull(s.now) && n > position().free():
				return "refused, " + use()
			}
			d.short += n
			return "the store has to be asked"
		},
		"release": func() string {
			p.inUse.Release(0, s.units())
			keep()
			if d.idleAt == never {
				return use()
			}
			return fmt.Sprintf("%s, idle permits are returned at %v", use(), span(d.idleAt))
		},
		"command": func() string {
			used := p.inUse.InUse()
			if s.now >= d.idleAt {
				used, d.idleAt = p.giveUp(), never
			}
			sent = &store.Permits{Limit: limit, Claim: used, Expiry: expiry}
			sent.Need, sent.Want = d.ask(waiting{}, position())
			keep()
			return fmt.Sprintf("has %d in use, needs %d, wants %d", used, sent.Need, sent.Want)
		},
		// reply gives the store's counts, for this member and in total.
		"reply": func() string {
			sent.Reply = store.PermitsReply{Held: s.num("held", 0), Total: s.num("total", 0)}
			sent.Reply.Active = s.num("members", 1)
			p.good.Store(r.replied(sent, s.now))
			p.expires.Store(s.now + atLeast(expiry))
			d.fullUntil = 0
			if p.good.Load() < sent.Need {
				d.full(s.now, func(n int64) int64 { return n / 2 })
			}
			keep()
			return fmt.Sprintf("%s, %d free, renews at %v", use(), position().free(), span(r.renewAt))
		},
		"local": func() string {
			n := s.units()
			most := fallbackPermits(cluster.Local, limit, r.active)
			if !p.takeWithin(n, most) {
				return fmt.Sprintf("refused: %d in use, of %d", p.inUse.InUse(), most)
			}
			return fmt.Sprintf("ok: %d in use, of %d", p.inUse.InUse(), most)
		},
	}
}

// turnsScript drives the parts of a throttle of 500 turns per second.
func turnsScript(s *scenario) script {
	spacing := int64(2 * time.Millisecond)
	var t turns
	var d turnDemand
	r, f := turnRound{last: longAgo}, turnFallback{last: longAgo}
	var sent *store.Turn
	left := func() string { return fmt.Sprintf("%d left", t.left) }
	return script{
		// take makes a call for some units that waits no longer than maxWait for its turn.
		"take": func() string {
			n, within := s.units(), span(s.at("within", 0))
			wait, ok := t.take(s.now, n, within, true)
			switch {
			case ok:
				d.wanted.units += n
				return fmt.Sprintf("its turn is in %v, %s", wait, left())
			case r.next(n, spacing)-s.now > int64(within):
				return fmt.Sprintf("refused: its turn is at %v at the earliest", span(r.next(n, spacing)))
			}
			d.short += n
			return "the store has to be asked, " + left()
		},
		"command": func() string {
			sent = &store.Turn{Spacing: time.Duration(spacing)}
			var calls waiting
			if n := s.num("units", 0); n > 0 {
				calls = waiting{&Need{Units: n, MaxWait: span(s.at("within", 0))}, n}
			}
			sent.Need, sent.Want, sent.Within = d.ask(calls, spacing, s.now)
			return fmt.Sprintf("asks for %d units, the first %d within %v", sent.Want, sent.Need, sent.Within)
		},
		"reply": func() string {
			sent.Reply = store.TurnReply{Granted: s.units(), Wait: span(s.at("wait", 0))}
			r.replied(sent, s.at("sent", s.now))
			if sent.Reply.Granted > 0 {
				t = newTurns(sent, s.now, 0)
			}
			return fmt.Sprintf("%s, the store's last turn is at %v", left(), span(r.last))
		},
		"first": func() string { return fmt.Sprintf("its turn is in %v, %s", t.takeFirst(s.now), left()) },
		// local makes a call while the store is unreachable, at one of two members.
		"local": func() string {
			n, within := s.units(), span(s.at("within", 0))
			next := f.next(r.last, times(2, times(n, spacing)))
			wait, ok := f.take(cluster.Local, s.now, next, within, true)
			if !ok {
				return "refused"
			}
			return fmt.Sprintf("its turn is in %v", wait)
		},
	}
}
