package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/breaker"
)

// breakerLog is what a breaker must do, by the log of its calls.
type breakerLog struct {
	breaker.Rule
	window shape
	state  breaker.State
	number int
	until  int64           // when it asks for a probe, while it is open
	calls  []breakerCall   // that count
	probes map[*int64]bool // that have not ended, by when they are waited for no longer
	good   int             // probes that went well
}

type breakerCall struct {
	bucket int64
	bad    bool
}

func (b *breakerLog) String() string {
	return fmt.Sprintf("a breaker that is %v (state %d; %d calls count, %d probes are out)", b.state, b.number, len(b.calls), b.out(b.until))
}

// admitted is what a call keeps of the breaker that let it in.
type admitted struct {
	state int
	until *int64 // of a probe
}

func (b *breakerLog) out(now int64) (n int) {
	for until := range b.probes {
		if *until > now {
			n++
		}
	}
	return n
}

// asks reports whether a call is let in.
func (b *breakerLog) asks(now int64) bool {
	switch b.state {
	case breaker.Open:
		return now >= b.until
	case breaker.HalfOpen:
		return b.out(now) < max(1, b.Probes-b.good)
	}
	return true
}

// enter notes a call that was let in.
func (b *breakerLog) enter(now int64) (a admitted) {
	if b.state == breaker.Open {
		b.become(breaker.HalfOpen)
	}
	if b.state == breaker.HalfOpen {
		a.until = new(now + int64(b.ProbeTimeout))
		b.probes[a.until] = true
	}
	a.state = b.number
	return a
}

func (b *breakerLog) become(s breaker.State) {
	b.state, b.calls, b.good, b.probes = s, nil, 0, make(map[*int64]bool)
	b.number++
}

// ended notes the end of a call.
func (b *breakerLog) ended(a admitted, now int64, failed bool, rt time.Duration) {
	if a.state != b.number || b.state == breaker.Open {
		return
	}
	bad := failed
	if b.Strategy == breaker.SlowRatio {
		bad = rt > b.SlowRT
	}
	if b.state == breaker.HalfOpen {
		b.probeEnded(a, now, bad)
		return
	}
	if b.Strategy == breaker.ConsecutiveErrors {
		b.rowEnded(now, bad)
		return
	}
	head := b.window.number(now)
	b.calls = append(b.calls, breakerCall{head, bad})
	b.calls = slices.DeleteFunc(b.calls, func(c breakerCall) bool { return c.bucket <= head-b.window.span() })
	n := 0
	for _, c := range b.calls {
		if c.bad {
			n++
		}
	}
	value := float64(n) / float64(len(b.calls))
	if b.Strategy == breaker.ErrorCount {
		value = float64(n)
	}
	if n > 0 && len(b.calls) >= b.MinCalls && value >= b.Threshold {
		b.become(breaker.Open)
		b.until = now + int64(b.Recovery)
	}
}

// rowEnded notes a call that ended under a rule that counts failures in a row.
func (b *breakerLog) rowEnded(now int64, bad bool) {
	if !bad {
		b.calls = nil
		return
	}
	if b.calls = append(b.calls, breakerCall{}); float64(len(b.calls)) >= b.Threshold {
		b.become(breaker.Open)
		b.until = now + int64(b.Recovery)
	}
}

func (b *breakerLog) probeEnded(a admitted, now int64, bad bool) {
	if bad {
		b.become(breaker.Open)
		b.until = now + int64(b.Recovery)
		return
	}
	delete(b.probes, a.until)
	if b.good++; b.good >= b.Probes {
		b.become(breaker.Closed)
	}
}
