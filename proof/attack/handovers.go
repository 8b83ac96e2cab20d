package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

// handovers has calls wait for a permit or a turn while the rule that has counted them
// already comes to one shape after the other. Some give up meanwhile, others run. At any
// time the rule must have room for its limit without those that wait and those that ran,
// and in the end for all but those that ran.
//
// Its interval is hours, of which minutes pass: so nothing that was counted leaves by itself.
func handovers(r *round) error {
	h := &handoverRound{
		round: r, stage: newStage(), limit: int64(4 + r.IntN(12)),
		counts: pick(r, "resource", "caller", "others", "inbound"),
		waits:  pick(r, "permit", "turn", "turn of a value"),
	}
	h.guard, _ = r.guard(api.Config{Clock: h.stage})
	if err := h.load(true); err != nil {
		return err
	}
	for range 8 + r.IntN(40) {
		err := error(nil)
		switch n := r.IntN(10); {
		case n < 4:
			err = h.call(int64(1 + r.IntN(2)))
		case n < 6:
			err = h.giveUp()
		case n < 8:
			err = h.goOn()
		default:
			err = h.load(true)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", h, err)
		}
	}
	if err := h.finish(); err != nil {
		return fmt.Errorf("%s: %w", h, err)
	}
	return nil
}

type handoverRound struct {
	*round
	stage         *stage
	guard         *api.Guard
	limit         int64
	counts, waits string

	waiting, running []*handed
	ran              int64 // units that run, or have run
}

type handed struct {
	*caller
	units int64
}

func (h *handoverRound) String() string {
	return fmt.Sprintf("%d an interval for the %s, and a %s to wait for", h.limit, h.counts, h.waits)
}

// load puts the rule that counts in force in some shape, and perhaps the one to wait for.
func (h *handoverRound) load(wait bool) error {
	limit, strict := float64(h.limit), h.one(3)
	interval, buckets := pick(h.round, time.Hour, 2*time.Hour, 4*time.Hour, 24*time.Hour), pick(h.round, 4, 5, 6, 10, 60)
	var set rules.Set
	if h.counts == "inbound" {
		set.System = []system.Rule{{
			ID: "counts", Metric: system.QPS, Threshold: limit, Interval: interval, Buckets: buckets, Strict: strict,
		}}
	} else {
		origin := map[string]string{"resource": flow.OriginDefault, "caller": "ann", "others": flow.OriginOther}[h.counts]
		window := flow.Ring
		if strict {
			window = flow.Strict
		}
		set.Flow = []flow.Rule{{
			ID: "counts", Resource: "orders", Origin: origin, Threshold: limit, Interval: interval, Buckets: buckets, Window: window,
		}}
	}
	const turn = 10 * time.Second
	switch {
	case !wait:
	case h.waits == "permit":
		set.Isolation = []isolation.Rule{{ID: "waits", Resource: "orders", Threshold: 2, MaxQueue: 100, MaxWait: time.Hour}}
	case h.waits == "turn":
		set.Flow = append(set.Flow, flow.Rule{
			ID: "waits", Resource: "orders", Threshold: 1, Interval: turn, Behavior: flow.Throttle, MaxWait: time.Hour,
		})
	default:
		set.Hotspot = []hotspot.Rule{{
			ID: "waits", Resource: "orders", Param: "user", Threshold: 1, Interval: turn, Behavior: hotspot.Throttle, MaxWait: time.Hour,
		}}
	}
	if err := h.guard.LoadRules(set); err != nil {
		return err
	}
	h.step("%v: the rule that counts has %v in %d buckets, strict %v", h.at(), interval, buckets, strict)
	h.stage.settle()
	return h.look()
}

// call makes one call, which must be refused by the rule that counts if, and only if, there
// is no room for it.
func (h *handoverRound) call(units int64) error {
	c := &handed{units: units}
	c.caller = h.stage.enter(h.ctx, func(ctx context.Context) (core.Entry, error) {
		return h.guard.Entry(from(ctx, "", "ann"), "orders", api.Inbound(), api.Units(int(units)), api.Param("user", 7))
	})
	room := h.limit - h.taken()
	h.offered.Add(1)
	h.checked.Add(1)
	h.step("%v: %d units come, waits: %v, %v", h.at(), units, c.waits(), c.err)
	if block, ok := errors.AsType[*core.BlockError](c.err); ok {
		if units <= room || block.Rule != "counts" {
			return fmt.Errorf("%d units are refused, and there is room for %d: %w", units, room, c.err)
		}
		c.cancel()
		return h.look()
	}
	h.waiting = append(h.waiting, c)
	if units > room {
		return fmt.Errorf("%d units have been counted or wait, and %d more are let in", h.taken()-units, units)
	}
	return h.look()
}

// taken are the units that run, have run, or wait.
func (h *handoverRound) taken() int64 {
	sum := h.ran
	for _, c := range h.waiting {
		sum += c.units
	}
	return sum
}

// look sees to calls that wait no more.
func (h *handoverRound) look() error {
	for c := range waitNoMore(&h.waiting) {
		if c.err != nil {
			return fmt.Errorf("refused after its wait: %w", c.err)
		}
		h.ran += c.units
		h.running = append(h.running, c)
		h.step("%v: %d units run", h.at(), c.units)
	}
	return nil
}

// giveUp has a call leave that waits.
func (h *handoverRound) giveUp() error {
	if len(h.waiting) == 0 {
		return nil
	}
	i := h.IntN(len(h.waiting))
	c := h.waiting[i]
	h.waiting = slices.Delete(h.waiting, i, i+1)
	h.stage.leave(c.caller)
	h.step("%v: %d units give up", h.at(), c.units)
	return h.look()
}

// goOn ends a call that runs, or lets some turns come.
func (h *handoverRound) goOn() error {
	if len(h.running) > 0 {
		c := h.running[0]
		h.running = h.running[1:]
		h.stage.exit(c.entry)
		c.cancel()
		h.stage.settle()
		if err := h.look(); err != nil {
			return err
		}
	}
	return h.stage.advance(h.stage.Now()+int64(h.between(0, 25*time.Second)), h.look)
}

// finish lets those that wait run or leave, and looks how much room there is then.
func (h *handoverRound) finish() error {
	for len(h.waiting) > 0 {
		next := h.giveUp
		if h.one(2) {
			next = h.goOn
		}
		if err := next(); err != nil {
			return err
		}
	}
	for len(h.running) > 0 {
		if err := h.goOn(); err != nil {
			return err
		}
	}
	if err := h.load(false); err != nil {
		return err
	}
	for range h.limit - h.ran + 1 { // the last finds no room
		if err := h.call(1); err != nil {
			return err
		}
	}
	for len(h.running) > 0 {
		if err := h.goOn(); err != nil {
			return err
		}
	}
	return nil
}

// at is the time on the stage.
func (h *handoverRound) at() time.Duration { return time.Duration(h.stage.Now() - start.UnixNano()) }
