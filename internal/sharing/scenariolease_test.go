package sharing

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/stat"
)

// leasesScript drives the leases of a window with buckets of 100 ms.
func leasesScript(s *scenario) script {
	const width = 100 * time.Millisecond
	epoch := int64(1)
	l := newLeases(10)
	left := func() string { return fmt.Sprintf("%d left", l.lease.units()) }
	handsBack := func(o leftover) string {
		if o.lot == nil {
			return ""
		}
		return fmt.Sprintf("lot %d has ended: %d spent, returns %d of bucket %d",
			o.lot.number, o.spent(), o.unspent, o.lot.bucket)
	}
	return script{
		// grant receives a reply now: units of a bucket, while bucket current lasts for left.
		"grant": func() string {
			r := &store.TakeReply{Epoch: epoch, Bucket: s.num("bucket", 0), Granted: s.units()}
			r.Current, r.Left = s.num("current", r.Bucket), span(s.at("left", 0))
			x := newLot(r, width, s.at("sent", s.now), s.now, 0)
			x.owned = s.has("borrowed")
			in, over := l.grant(x, s.now)
			return lines(handsBack(over), fmt.Sprintf("lot %d: %d units of bucket %d, from %v to %v",
				in.number, in.granted, in.bucket, span(in.starts), span(in.ends)))
		},
		"take": func() string {
			n := s.units()
			number, few, ok := l.lease.take(0, s.now, n)
			if !ok { // as calls do when lanes may hold units
				number, few, ok = l.lease.draw(s.now, n)
			}
			switch {
			case !ok:
				return "none, " + left()
			case few:
				return fmt.Sprintf("ok, from lot %d, few are left: %s", number, left())
			}
			return fmt.Sprintf("ok, from lot %d, %s", number, left())
		},
		"return": func() string {
			number, n := uint32(s.num("lot", 0)), s.units()
			if bucket, over := l.giveBack(number, n, epoch); over {
				return fmt.Sprintf("lot %d is in no lease: returns %d of bucket %d", number, n, bucket)
			}
			return fmt.Sprintf("%s, and %d of the next bucket", left(), l.nextLeft)
		},
		"holds": func() string { return fmt.Sprint(l.holds(uint32(s.num("lot", 0)), epoch, s.now)) },
		"spent": func() string { return fmt.Sprint(l.newlySpent()) },
		"roll": func() string {
			over, begun := l.roll(s.now)
			begins := ""
			if begun != nil {
				begins = fmt.Sprintf("lot %d begins with %s", begun.number, left())
			}
			return lines(handsBack(over[0]), handsBack(over[1]), begins)
		},
		"drop": func() string {
			return lines(handsBack(l.closeCurrent(s.now)), handsBack(l.closeNext()))
		},
		// renew begins a new epoch: the store lost the key.
		"renew": func() string {
			ended := ""
			for _, o := range []leftover{l.closeCurrent(s.now), l.closeNext()} {
				if o.lot != nil {
					ended += fmt.Sprintf("lot %d is over: %d spent, %d gone\n", o.lot.number, o.spent(), o.unspent)
				}
			}
			epoch++
			return ended
		},
		"next": func() string { return span(l.changesAt()).String() },
	}
}

// demandScript drives the demand of a member of a window of 1 s in ten buckets.
func demandScript(s *scenario) script {
	d := newDemand(store.Ring{Shape: stat.Shape{Interval: time.Second, Buckets: 10}})
	p := position{limit: 1000}
	middle := func(n int64) int64 { return n / 2 }
	var last ask
	show := func(a ask) string {
		last = a
		switch {
		case a.need|a.want == 0:
			return "asks for nothing"
		case a.ahead != 0:
			return fmt.Sprintf("asks for %d units of bucket %d", a.want, a.ahead)
		case a.borrow > 0:
			return fmt.Sprintf("asks for %d, or to borrow them within %v", a.need, a.borrow)
		case a.want <= a.need:
			return fmt.Sprintf("asks for %d", a.need)
		}
		return fmt.Sprintf("asks for %d, at least %d", a.want, a.need)
	}
	return script{
		"limit":   func() string { p.limit = s.units(); return "" },
		"members": func() string { d.active = s.units(); return "" },
		"bucket": func() string {
			ends := s.at("ends", 0)
			const ms = int64(time.Millisecond)
			p.edge = edge{s.num("number", p.edge.bucket+1), ends - ms, ends + ms}
			d.enter(s.now, p.edge, middle)
			return fmt.Sprintf("asks for the next lease at %v", span(d.nextAt))
		},
		"spent": func() string {
			d.count(s.now, s.units())
			return fmt.Sprintf("%d wanted in a bucket", d.wanted.over(d.lasts()))
		},
		"miss": func() string { d.missed.Add(s.units()); return "" },
		// have sets the state of the leases.
		"have": func() string {
			p.nextLeft = s.num("next", 0)
			p.left, p.few, p.next = s.units(), s.has("few"), p.nextLeft > 0
			return ""
		},
		"low": func() string { d.runsLow(p, s.now); return fmt.Sprintf("%d short", d.short) },
		// look runs the window's planned task.
		"look": func() string {
			if d.worthAsking(d.short, p, s.now) || d.wantsNext(p, s.now) || d.wantsMore(p, s.now) {
				return show(d.askAhead(p, 20*time.Millisecond, s.now))
			}
			return "asks for nothing"
		},
		"call": func() string {
			n := s.units()
			if p.covers(s.now, n) {
				return "the next lease has them in a moment"
			}
			return show(d.askFor(waiting{&Need{Units: n, MaxWait: span(s.at("borrow", 0))}, n}, p, s.now))
		},
		// reply grants units of the latest request.
		"reply": func() string {
			t := &store.Take{Need: last.need, Want: last.want, Ahead: last.ahead}
			t.Reply = store.TakeReply{Granted: s.units(), Room: s.num("room", 0), Current: p.edge.bucket}
			t.Reply.Free = span(s.at("free", 0))
			d.noteRoom(t)
			d.learn(t, p.limit, p.edge, s.now, middle)
			d.lastGrant = t.Reply.Granted
			if s.now >= d.room.until.Load() {
				return ""
			}
			return fmt.Sprintf("refuses more than %d until %v, asks again at %v or later",
				d.room.units.Load(), span(d.room.until.Load()), span(d.pause))
		},
		"refuses": func() string { return fmt.Sprint(d.room.refuses(s.now, s.units(), 0)) },
		"by":      func() string { return span(d.by(p.limit, s.now)).String() },
	}
}
