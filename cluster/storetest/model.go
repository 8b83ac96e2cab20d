package storetest

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// model keeps the state of a key, derived directly from the contract.
type model interface {
	// check replays a command that the store has executed, at the time in its reply.
	check(s *stage, c store.Command)
}

func newModel(c store.Command) model {
	switch c.(type) {
	case *store.Take:
		return new(takes)
	case *store.Turn:
		return new(turns)
	case *store.Tokens:
		return new(tokens)
	case *store.Permits:
		return &permits{held: map[int64]int64{}, seq: map[int64]int64{}, expires: map[int64]int64{}}
	default:
		return &presence{expires: map[int64]int64{}}
	}
}

// same fails the case unless the reply is the model's.
func same[T comparable](s *stage, c store.Command, got, want T) {
	if got != want {
		s.Fatalf("%s\nthe model says %+v", text(c), want)
	}
}

// takes is a window: the units in each bucket.
type takes struct {
	made    bool
	expires int64
	epoch   int64
	head    int64
	units   map[int64]int64
	askers  map[int64]int64 // by bucket
	short   map[int64]int64 // members with a shortfall, by bucket
	seq     map[int64]int64 // by member
	seenAt  map[int64]int64
}

func (m *takes) check(s *stage, c store.Command) {
	t := c.(*store.Take)
	got := t.Reply
	clock := got.Now
	width := int64(t.Shape.Width())
	bucket := t.Bucket(clock)
	if m.made && clock >= m.expires && got.Epoch == t.NewEpoch {
		m.made = false // a store may keep a key for longer
	}
	switch {
	case !m.made:
		*m = takes{made: true, epoch: t.NewEpoch, head: bucket, units: map[int64]int64{}, askers: map[int64]int64{}, short: map[int64]int64{},
			seq: map[int64]int64{}, seenAt: map[int64]int64{}}
	case bucket <= m.head-t.Span():
		var all, unspent, far int64
		for b, n := range m.units {
			if b > m.head-t.Span() {
				all += n
			}
			if b >= m.head && n > 0 {
				unspent += n
				far = max(far, min(b-m.head+1, int64(t.Shape.Buckets)+1, 2*t.Span()-1))
			}
		}
		m.units = map[int64]int64{bucket: all}
		if unspent > 0 {
			m.units[bucket+far] = unspent
		}
		m.askers, m.short, m.head, m.epoch = map[int64]int64{}, map[int64]int64{}, bucket, t.NextEpoch(m.epoch)
		for member := range m.seenAt {
			m.seenAt[member] = bucket
		}
	}
	m.head = max(m.head, bucket)

	asks := t.Need > 0 || t.Want > 0
	if asks && t.Seen != m.head {
		m.askers[m.head]++
	}
	active := max(1, m.askers[m.head], m.askers[m.head-1])

	for member, at := range m.seenAt {
		if m.head-at > t.Span()+int64(t.Shape.Buckets) {
			delete(m.seq, member)
			delete(m.seenAt, member)
		}
	}
	fresh := t.Seq > m.seq[t.Member]
	if fresh {
		m.seq[t.Member], m.seenAt[t.Member] = t.Seq, m.head
	}
	if fresh && t.Epoch == m.epoch {
		for _, u := range t.Backs {
			if u.Bucket > m.head-t.Span() {
				m.units[u.Bucket] = max(0, m.units[u.Bucket]-u.Units)
			}
		}
		for _, u := range t.Charges {
			if u.Bucket > m.head-t.Span() {
				m.units[min(u.Bucket, m.head)] += u.Units
			}
		}
	}

	want := store.TakeReply{Bucket: m.head, Current: m.head, Left: time.Duration(t.Begins(m.head) + width - clock),
		Active: active, Now: clock, Epoch: m.epoch}
	if t.Ahead > m.head {
		want.Bucket = min(t.Ahead, m.head+int64(t.Shape.Buckets))
	}
	want.Room = m.room(t, want.Bucket)
	if asks && (t.Epoch == 0 || t.Epoch == m.epoch) {
		if t.Need <= want.Room {
			sharers := active
			if want.Bucket == m.head && m.short[m.head-1] > 0 {
				sharers = min(active, max(m.short[m.head-1], m.short[m.head])+1)
			}
			want.Granted = max(t.Need, min(t.Want, want.Room/sharers))
			if want.Granted > 0 && want.Granted < t.Want && t.Shortfall != m.head {
				m.short[m.head]++
			}
			m.units[want.Bucket] += want.Granted
			want.Room -= want.Granted
		} else {
			for b := m.head + 1; b <= m.head+int64(t.Shape.Buckets) && t.Begins(b)-clock < int64(t.Borrow); b++ {
				if room := m.room(t, b); t.Need <= room {
					want.Bucket, want.Granted, want.Room = b, t.Need, room-t.Need
					m.units[b] += t.Need
					break
				}
			}
		}
	}
	for b := m.head; t.Limit > 0; b++ {
		if m.room(t, b) > 0 {
			if b > m.head {
				want.Free = time.Duration(t.Begins(b) - clock)
			}
			break
		}
	}
	same(s, c, got, want)

	last := m.head
	for b, n := range m.units {
		if n > 0 {
			last = max(last, b)
		}
	}
	m.expires = clock + (last-m.head+int64(t.Shape.Buckets)+2)*width
}

// room returns the number of units that fit a bucket: in each window that contains it.
func (m *takes) room(t *store.Take, bucket int64) int64 {
	room := t.Limit
	for end := bucket; end < bucket+t.Span(); end++ {
		in := int64(0)
		for b, n := range m.units {
			if b > end-t.Span() && b <= end && b > m.head-t.Span() {
				in += n
			}
		}
		room = min(room, t.Limit-in)
	}
	return max(0, room)
}

// turns is the time of the latest turn, and until when the store must remember it.
type turns struct {
	any               bool
	last, at, expires int64
}

func (m *turns) check(s *stage, c store.Command) {
	t := c.(*store.Turn)
	now := t.Reply.Now
	if m.any && now < m.at {
		m.last -= m.at - now
	}
	m.at = now
	if now >= m.expires && t.Reply.Wait == 0 { // a store may keep a key for longer
		m.any = false
	}
	want := store.TurnReply{Now: now}
	if m.any {
		want.Wait = time.Duration(max(0, m.last+t.Need*int64(t.Spacing)-now))
	}
	if want.Wait <= t.Within {
		want.Granted = max(t.Need, t.Want)
		m.any, m.last = true, now+int64(want.Wait)+(want.Granted-t.Need)*int64(t.Spacing)
	}
	same(s, c, t.Reply, want)
	m.expires = max(now, m.last) + int64(max(time.Minute, t.Within+time.Duration(max(64, t.Need))*t.Spacing))
}

// tokens is the units that a bucket is short of, in the time in which it gains them.
type tokens struct {
	short   float64 // nanoseconds, at the time at; below 0 once it has been full for so long
	unit    float64
	at      int64
	expires int64
}

func (m *tokens) check(s *stage, c store.Command) {
	t := c.(*store.Tokens)
	now := t.Reply.Now
	if m.unit == 0 || now >= m.expires { // a full bucket is as good as none
		m.short, m.unit = 0, t.Unit
	} else if now > m.at {
		m.short -= float64(now - m.at)
	}
	if m.short > 0 && m.unit != t.Unit {
		m.short = min(math.Ceil(m.short*(t.Unit/m.unit)), 1<<52)
	}
	m.at, m.unit = now, t.Unit
	first := max(m.short, 0)
	want := store.TurnReply{Now: now, Wait: time.Duration(first)}
	fit := int64(0)
	for first+float64(fit)*float64(t.Spacing) <= float64(t.Within) && fit < max(t.Need, t.Want) {
		fit++
	}
	if fit >= t.Need {
		want.Granted = fit
		m.short = max(first, float64(t.Hold)) + float64(fit)*float64(t.Spacing)
	}
	same(s, c, t.Reply, want)
	m.expires = now + int64(max(0, m.short)) + int64(time.Minute)
}

// permits holds each member's permits.
type permits struct {
	held, seq, expires map[int64]int64
	at                 int64
}

func (m *permits) check(s *stage, c store.Command) {
	p := c.(*store.Permits)
	now := p.Reply.Now
	forget(m.expires, &m.at, now, func(member int64) {
		delete(m.held, member)
		delete(m.seq, member)
	})
	m.expires[p.Member] = now + int64(p.Expiry)
	if p.Seq > m.seq[p.Member] {
		m.seq[p.Member] = p.Seq
		others, active := int64(0), int64(1)
		for member, n := range m.held {
			if member != p.Member && n > 0 {
				others += n
				active++
			}
		}
		keeps := max(p.Claim, min(m.held[p.Member], p.Want))
		free := max(0, p.Limit-others-keeps)
		if p.Need <= keeps+free {
			keeps = max(keeps, p.Need, min(p.Want, keeps+free/active))
		}
		m.held[p.Member] = keeps
	}
	want := store.PermitsReply{Held: m.held[p.Member], Now: now}
	for _, n := range m.held {
		if n > 0 {
			want.Total += n
			want.Active++
		}
	}
	same(s, c, p.Reply, want)
}

// presence holds each member's expiry.
type presence struct {
	expires map[int64]int64
	at      int64
}

func (m *presence) check(s *stage, c store.Command) {
	p := c.(*store.Presence)
	now := p.Reply.Now
	forget(m.expires, &m.at, now, func(int64) {})
	m.expires[p.Member] = now + int64(p.Expiry)
	if p.Leave {
		delete(m.expires, p.Member)
	}
	same(s, c, p.Reply, store.PresenceReply{Members: int64(len(m.expires)), Now: now})
}

// forget removes expired members. If the clock was set back, so are the expiries.
func forget(expires map[int64]int64, at *int64, now int64, gone func(member int64)) {
	for member := range expires {
		if now < *at {
			expires[member] -= *at - now
		}
		if expires[member] <= now {
			delete(expires, member)
			gone(member)
		}
	}
	*at = now
}
