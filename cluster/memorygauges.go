package cluster

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// memoryTurns is the throttle of [store.Turn] in a [Memory].
type memoryTurns struct {
	given bool  // whether last is set
	last  int64 // the latest turn
	at    int64 // time of the latest command
}

func (v *memoryTurns) do(c store.Command, now int64) (keep time.Duration, ok bool) {
	t, ok := c.(*store.Turn)
	if !ok {
		return 0, false
	}
	first := now
	if v.given {
		v.last += min(0, now-v.at)
		first = max(now, v.last+t.Need*int64(t.Spacing))
	}
	v.at = now
	t.Reply = store.TurnReply{Wait: time.Duration(first - now), Now: now}
	if t.Reply.Wait <= t.Within {
		t.Reply.Granted = max(t.Need, t.Want)
		v.given, v.last = true, first+(t.Reply.Granted-t.Need)*int64(t.Spacing)
	}
	return time.Duration(max(0, v.last-now)) + max(time.Minute, t.Within+time.Duration(max(64, t.Need))*t.Spacing), true
}

// memoryTokens is the token bucket of [store.Tokens] in a [Memory].
type memoryTokens struct {
	full int64   // time at which the bucket is full, perhaps in the past
	unit float64 // of the latest command; 0 before the first
	at   int64   // time of the latest command
}

func (v *memoryTokens) do(c store.Command, now int64) (keep time.Duration, ok bool) {
	t, ok := c.(*store.Tokens)
	if !ok {
		return 0, false
	}
	if v.unit == 0 {
		v.full = now
	} else if v.full += min(0, now-v.at); v.full > now && v.unit != t.Unit {
		v.full = now + int64(min(math.Ceil(float64(v.full-now)*(t.Unit/v.unit)), 1<<52))
	}
	v.unit, v.at = t.Unit, now
	t.Reply = store.TurnReply{Wait: time.Duration(max(0, v.full-now)), Now: now}
	if t.Reply.Wait <= t.Within {
		n := min(max(t.Need, t.Want), int64((t.Within-t.Reply.Wait)/t.Spacing)+1)
		if n >= t.Need {
			t.Reply.Granted, v.full = n, now+int64(max(t.Reply.Wait, t.Hold))+n*int64(t.Spacing)
		}
	}
	return time.Duration(max(0, v.full-now)) + time.Minute, true
}

// memoryPermits is the semaphore of [store.Permits] in a [Memory].
type memoryPermits struct {
	holders map[int64]*holder
	total   int64
	at      int64 // time of the latest command
}

// holder is a member that holds permits, or held some recently: its seq is kept.
type holder struct{ held, seq, expires int64 }

func (v *memoryPermits) do(c store.Command, now int64) (keep time.Duration, ok bool) {
	p, ok := c.(*store.Permits)
	if !ok {
		return 0, false
	}
	if v.holders == nil {
		*v = memoryPermits{holders: map[int64]*holder{}, at: now}
	}
	for _, h := range v.holders {
		h.expires += min(0, now-v.at)
	}
	v.at = now
	v.expire(now)
	h := v.holders[p.Member]
	if h == nil {
		h = new(holder)
		v.holders[p.Member] = h
	}
	h.expires = now + int64(p.Expiry)
	active := v.active()
	if h.held == 0 {
		active++
	}
	if p.Seq > h.seq {
		h.seq = p.Seq
		held := holds(p, h.held, v.total-h.held, active)
		v.total += held - h.held
		h.held = held
	}
	p.Reply = store.PermitsReply{Held: h.held, Total: v.total, Active: v.active(), Now: now}
	return v.life(now), true
}

// holds returns the member's permits after this command.
func holds(p *store.Permits, held, others, active int64) int64 {
	keeps := max(p.Claim, min(held, p.Want))
	free := max(0, p.Limit-others-keeps)
	if p.Need > keeps+free {
		return keeps
	}
	return max(keeps, p.Need, min(p.Want, keeps+free/active))
}

func (v *memoryPermits) expire(now int64) {
	for member, h := range v.holders {
		if h.expires <= now {
			v.total -= h.held
			delete(v.holders, member)
		}
	}
}

func (v *memoryPermits) active() (n int64) {
	for _, h := range v.holders {
		if h.held > 0 {
			n++
		}
	}
	return n
}

func (v *memoryPermits) life(now int64) (keep time.Duration) {
	for _, h := range v.holders {
		keep = max(keep, time.Duration(h.expires-now))
	}
	return keep
}

// memoryPresence holds the members of a [store.Presence] in a [Memory], and when they expire.
type memoryPresence struct {
	expires map[int64]int64
	at      int64 // time of the latest command
}

func (v *memoryPresence) do(c store.Command, now int64) (keep time.Duration, ok bool) {
	p, ok := c.(*store.Presence)
	if !ok {
		return 0, false
	}
	if v.expires == nil {
		*v = memoryPresence{expires: map[int64]int64{}, at: now}
	}
	back := min(0, now-v.at)
	v.at = now
	v.expires[p.Member] = now - back + int64(p.Expiry)
	if p.Leave {
		delete(v.expires, p.Member)
	}
	for member, expires := range v.expires {
		expires += back
		v.expires[member] = expires
		if expires <= now {
			delete(v.expires, member)
		}
		keep = max(keep, time.Duration(expires-now))
	}
	p.Reply = store.PresenceReply{Members: int64(len(v.expires)), Now: now}
	return keep, true
}
