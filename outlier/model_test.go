package outlier

import "math"

// twin is a pool as one would write it for a single caller, without regard to cost. Its rules eject
// with the first failure in an interval, which does not slide.
type twin struct {
	rule   Rule
	known  map[string]*twinEndpoint
	latest int64
	steps  int
}

type twinEndpoint struct {
	state   string // "", "open" or "probing"
	id      int    // unique
	epoch   int    // of the state, unique as well
	touched int64
	step    int // when it was touched
	due     int64
	bad     int64 // the interval in which it failed last; -1 if never
	probes  map[int]int64
	good    int
}

func (x *twinEndpoint) serves() bool { return x.state == "" }

func newTwin(r Rule) *twin {
	return &twin{rule: r, known: make(map[string]*twinEndpoint), latest: math.MinInt64}
}

func (t *twin) ejected() (n int) {
	for _, x := range t.known {
		if x.state != "" {
			n++
		}
	}
	return n
}

func (t *twin) allows(ejected int) bool {
	n := len(t.known)
	return ejected < n && float64(ejected)/float64(n) <= t.rule.MaxEjected
}

func (t *twin) enter(x *twinEndpoint, state string, at int64) {
	x.state, x.bad, x.good = state, -1, 0
	t.steps++
	x.epoch = t.steps
	x.probes = make(map[int]int64)
	x.due = at + int64(t.rule.Recovery)
	t.touch(x, at)
}

func (t *twin) touch(x *twinEndpoint, at int64) {
	t.steps++
	x.touched, x.step = at, t.steps
}

// tidy applies the effects of time one after the other.
func (t *twin) tidy(now int64) int64 {
	before := t.latest
	t.latest = max(before, now)
	for {
		addr, at := t.nextToGo()
		if addr == "" || at > t.latest {
			t.settle(t.latest)
			return t.latest
		}
		delete(t.known, addr)
		t.settle(max(at, before))
	}
}

// nextToGo returns the endpoint to drop next, and when. Among those due at the same time, endpoints
// in service come first, then those touched first.
func (t *twin) nextToGo() (addr string, at int64) {
	var next *twinEndpoint
	at = math.MaxInt64
	for a, x := range t.known {
		goes := x.touched + int64(t.rule.ForgetAfter)
		if x.state != "" {
			goes += int64(t.rule.Recovery)
		}
		if goes < at || goes == at && (x.serves() && !next.serves() || x.serves() == next.serves() && x.step < next.step) {
			next, addr, at = x, a, goes
		}
	}
	return addr, at
}

func (t *twin) settle(at int64) {
	for t.ejected() > 0 && !t.allows(t.ejected()) {
		var first *twinEndpoint
		for _, x := range t.known {
			if x.state != "" && (first == nil || x.touched < first.touched || x.touched == first.touched && x.step < first.step) {
				first = x
			}
		}
		t.enter(first, "", at)
	}
}

// ticket is carried by an admitted caller.
type ticket struct{ id, epoch int }

// admit decides on a caller.
func (t *twin) admit(caller int, addr string, now int64) (got ticket, ok bool) {
	now = t.tidy(now)
	x := t.known[addr]
	if x == nil {
		t.steps++
		x = &twinEndpoint{bad: -1, id: t.steps, epoch: t.steps}
		t.known[addr] = x
	}
	switch x.state {
	case "":
		t.touch(x, now)
		return ticket{x.id, x.epoch}, true
	case "open":
		if now < x.due {
			return ticket{}, false
		}
		t.enter(x, "probing", now)
	}
	for c, until := range x.probes {
		if now >= until {
			delete(x.probes, c)
		}
	}
	if len(x.probes) >= t.rule.Probes-x.good {
		return ticket{}, false
	}
	x.probes[caller] = now + int64(t.rule.ProbeTimeout)
	t.touch(x, now)
	return ticket{x.id, x.epoch}, true
}

func (t *twin) giveBack(caller int, addr string, has ticket) {
	if x := t.known[addr]; x != nil && x.epoch == has.epoch {
		delete(x.probes, caller)
	}
}

// leave ends a call neutrally.
func (t *twin) leave(caller int, addr string, has ticket, now int64) {
	now = t.tidy(now)
	if x := t.known[addr]; x != nil && x.id == has.id && x.state == "" {
		t.touch(x, now)
	}
	t.giveBack(caller, addr, has)
}

// complete ends a call.
func (t *twin) complete(caller int, addr string, has ticket, now int64, bad bool) {
	now = t.tidy(now)
	x := t.known[addr]
	if x == nil || x.id != has.id {
		return
	}
	if x.state == "" {
		t.touch(x, now)
	}
	if x.epoch != has.epoch {
		return
	}
	switch x.state {
	case "":
		interval := now / int64(t.rule.Interval)
		if bad {
			x.bad = interval
		}
		if x.bad == interval && t.allows(t.ejected()+1) {
			t.enter(x, "open", now)
		}
	case "probing":
		if bad {
			t.enter(x, "open", now)
			return
		}
		delete(x.probes, caller)
		if x.good++; x.good == t.rule.Probes {
			t.enter(x, "", now)
		}
	}
}

// refuses reports whether a call to an endpoint would be refused.
func (t *twin) refuses(addr string, now int64) bool {
	return t.shut(addr, max(t.latest, now)) && t.shut(addr, t.tidy(now))
}

func (t *twin) shut(addr string, now int64) bool {
	x := t.known[addr]
	switch {
	case x == nil || x.state == "":
		return false
	case x.state == "open":
		return now < x.due
	}
	out := 0
	for _, until := range x.probes {
		if now < until {
			out++
		}
	}
	return out >= t.rule.Probes-x.good
}
