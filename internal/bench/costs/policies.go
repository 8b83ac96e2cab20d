package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// policy decides which calls may start. The models of gateways are their algorithms in a few lines, each
// with the best window there is: a sliding minute, exact to a tick.
type policy struct {
	// enter returns a function for the end of the call, or nil if the call is refused.
	enter func(now int, c call) (exit func(now int))
	// leaked returns the tokens of lost reservations: kept for failed calls, which didn't use them, or
	// dropped while their calls ran.
	leaked func() int64
}

func none() int64 { return 0 }

// counted admits as many calls a minute as the limit has room for if each uses the mean.
func counted(calls []call) policy {
	w, most := &window{}, int64(limit/mean(calls))
	return policy{func(now int, _ call) func(int) {
		if w.sum(now) >= most {
			return nil
		}
		w.add(now, now, 1)
		return func(int) {}
	}, none}
}

// afterwards checks that the counter is below the limit, and adds the real cost at the end, as Envoy AI
// Gateway does.
func afterwards() policy {
	w := &window{}
	return policy{func(now int, c call) func(int) {
		if w.sum(now) >= limit {
			return nil
		}
		return func(now int) { w.add(now, now, c.used) }
	}, none}
}

// reserved reserves the estimate and settles at the end. If failures leak, a failed call never settles:
// its reservation stays until the window is over, the mildest form of such a leak.
func reserved(leaks bool) policy {
	w, leaked := &window{}, int64(0)
	return policy{func(entered int, c call) func(int) {
		if w.sum(entered)+estimate > limit {
			return nil
		}
		w.add(entered, entered, estimate)
		return func(now int) {
			if leaks && c.failed {
				leaked += max(0, estimate-c.used)
			} else {
				w.settle(now, entered, c.used-estimate)
			}
		}
	}, func() int64 { return leaked }}
}

// expiring holds the estimate, clamped to half of the limit, and reconciles at the end; holds expire
// after 60 seconds while the stream still runs. It follows Kuadrant's draft RFC 0021 in these points only.
func expiring() policy {
	const amount = min(estimate, limit/2)
	w, held, leaked := &window{}, int64(0), int64(0)
	var holds []call // in order, for a minute each
	expire := func(now int) {
		for ; len(holds) > 0 && holds[0].at+minute <= now; holds = holds[1:] {
			if holds[0].end > holds[0].at+minute {
				held, leaked = held-amount, leaked+amount
			}
		}
	}
	return policy{func(now int, c call) func(int) {
		if expire(now); w.sum(now)+held+amount > limit {
			return nil
		}
		holds, held = append(holds, c), held+amount
		return func(now int) {
			if c.end <= c.at+minute {
				held -= amount
			}
			w.add(now, now, c.used)
		}
	}, func() int64 { return leaked }}
}

const tokens = "tokens"

// ours is the library: calls reserve the estimate under a flow rule, and settle what they used.
func ours() policy {
	const chat = "POST /chat"
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	guard, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = guard.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: chat, Unit: tokens, Threshold: limit, Interval: time.Minute}}})
	}
	if err != nil {
		panic(err) // the configuration is valid
	}
	at, used := 0, int64(0)
	advance := func(now int) {
		clock.Advance(time.Duration(now-at) * tick)
		at = now
	}
	return policy{func(now int, c call) func(int) {
		advance(now)
		e, err := guard.Entry(context.Background(), chat, api.Cost(tokens, estimate))
		if err != nil {
			return nil
		}
		return func(now int) {
			advance(now)
			e.Settle(tokens, c.used)
			if c.failed {
				e.Fail(errors.New("the answer broke off"))
			}
			e.Exit()
			used += c.used
		}
	}, func() int64 {
		defer guard.Close()
		n := guard.UnitStats(chat)[0].Total
		return n.Reserved - n.Refunded + n.Overdrawn - used
	}}
}

// window sums up the last minute.
type window struct {
	counts []int64 // by tick
	total  int64
}

func (w *window) sum(now int) int64 {
	for len(w.counts) <= now {
		if old := len(w.counts) - minute; old >= 0 {
			w.total -= w.counts[old]
		}
		w.counts = append(w.counts, 0)
	}
	return w.total
}

// add counts n at a tick, unless that is no longer in the window.
func (w *window) add(now, at int, n int64) {
	if w.sum(now); at > now-minute {
		w.counts[at] += n
		w.total += n
	}
}

// settle gives back to the tick that counted a reservation, or charges the current one.
func (w *window) settle(now, reserved int, more int64) {
	if more > 0 {
		reserved = now
	}
	w.add(now, reserved, more)
}
