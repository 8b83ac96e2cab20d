package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/hotspot"
)

// valueKeeper is for a hotspot rule. Its values are numbers.
type valueKeeper struct {
	keeperOf
	rule   hotspot.Rule
	values map[valueAt]*valueLog
	seen   map[string]int // values of a resource that the rule doesn't name
	// loose is a resource of which the rule knows more values than it may: those may get
	// less.
	loose map[string]bool
	// murky is a rule that was not enforced before, or named other values, so that what it
	// remembers isn't known.
	murky   bool
	unknown []*call // that may have turns of which the log doesn't know
}

type valueAt struct {
	resource string
	value    int
}

// valueLog is what a value must have taken.
type valueLog struct {
	filling
	// A filling of which nobody has anything any more is undone: begun is the latest as it
	// began, and before is what was there until then.
	begun, before filling

	took   map[*call]taken // from this filling
	queue  *turnLog
	tokens *tokenLog
	held   map[*call]int64
}

// filling is a bucket that was filled up at a time.
type filling struct{ filled, used int64 }

type taken struct{ filled, units int64 }

// values are those of a call, with how often each is there.
func (k *valueKeeper) of(c *call) map[int]int64 {
	times := make(map[int]int64)
	add := func(v any) {
		switch v := v.(type) {
		case int:
			times[v]++
		case []int:
			for _, x := range v {
				times[x]++
			}
		}
	}
	if k.rule.Param == "" {
		at, _ := strconv.Atoi(k.rule.Index.String())
		if at < 0 {
			at += len(c.args)
		}
		if at >= 0 && at < len(c.args) {
			add(c.args[at])
		}
		return times
	}
	for _, v := range c.params[k.rule.Param] {
		add(v)
	}
	return times
}

func (k *valueKeeper) exception(value int) (threshold float64, named bool) {
	for _, x := range k.rule.Exceptions {
		if x.Value == argument.Of(value) {
			return x.Threshold, true
		}
	}
	return k.rule.Threshold, false
}

// cost is the time that a unit of the value takes.
func (k *valueKeeper) cost(value int) float64 {
	threshold, _ := k.exception(value)
	return float64(k.rule.Interval) / threshold
}

func (k *valueKeeper) log(resource string, value int) *valueLog {
	at := valueAt{resource, value}
	v := k.values[at]
	if v == nil {
		v = &valueLog{filling: filling{filled: math.MinInt64}, took: make(map[*call]taken), queue: newTurnLog(), tokens: newTokenLog(false, k.cost(value)), held: make(map[*call]int64)}
		if k.murky {
			v.queue = murkyTurnLog(k.unknown)
			v.queue.bounded = true
		}
		k.values[at] = v
		if _, named := k.exception(value); !named {
			if k.seen[resource]++; k.seen[resource] > k.rule.MaxValues {
				k.loose[resource] = true
			}
		}
	}
	return v
}

// filledAt is the bucket as a call at now finds it.
func (k *valueKeeper) filledAt(v *valueLog, now int64, threshold float64) (filled, used int64) {
	switch {
	case v.filled == math.MinInt64:
		return now, 0
	case now-v.filled > int64(k.rule.Interval):
		earned := float64(now-v.filled) / float64(k.rule.Interval) * math.Floor(threshold)
		return now, max(0, v.used-int64(earned))
	}
	return v.filled, v.used
}

func (k *valueKeeper) judge(l *ledger, c *call) opinion {
	all := pass
	for value, times := range k.of(c) {
		o := k.judgeValue(l, c, value, c.units*times)
		all.passes, all.refuses, all.most = all.passes && o.passes, all.refuses || o.refuses, max(all.most, o.most)
	}
	return all
}

func (k *valueKeeper) names(value int) bool {
	_, named := k.exception(value)
	return named
}

// tells reports whether the log knows when the value has a token again.
func (k *valueKeeper) tells(c *call, value int) bool {
	return k.rule.Behavior == hotspot.TokenBucket && !math.IsInf(k.cost(value), 1) && !k.murky && !k.shares(c, value)
}

// shares reports whether the value may have to share what the rule gives those it has no room for.
func (k *valueKeeper) shares(c *call, value int) bool { return k.loose[c.resource] && !k.names(value) }

func (k *valueKeeper) judgeValue(l *ledger, c *call, value int, units int64) opinion {
	threshold, _ := k.exception(value)
	v := k.log(c.resource, value)
	switch {
	case threshold == 0:
		return refuse
	case k.murky || k.shares(c, value):
		// It may share what others take, and when its bucket was filled is not known. Who queues
		// may be overtaken, and waits for at most twice as long as it was told and what it costs.
		return opinion{passes: true, refuses: true, most: 2*k.rule.MaxWait + time.Duration(float64(units)*k.cost(value))}
	case k.rule.Metric == hotspot.Concurrency:
		var held int64
		for _, n := range v.held {
			held += n
		}
		if held+units > int64(threshold) {
			return refuse
		}
		return pass
	case k.rule.Behavior == hotspot.Throttle:
		cost := float64(units) * k.cost(value)
		return v.queue.judge(l.now, cost, cost, c.prioritized, k.rule.MaxWait)
	case k.rule.Behavior == hotspot.TokenBucket:
		return v.tokens.judge(l.now, units, k.size())
	case math.Floor(threshold) == 0:
		return refuse
	}
	if _, used := k.filledAt(v, l.now, threshold); used+units > int64(threshold)+int64(k.rule.Burst) {
		return refuse
	}
	return pass
}

// size is that of a token bucket.
func (k *valueKeeper) size() int64 { return int64(k.rule.Burst) + 1 }

func (k *valueKeeper) over(l *ledger, c *call) string {
	for value := range k.of(c) {
		threshold, _ := k.exception(value)
		v := k.log(c.resource, value)
		var held int64
		for _, n := range v.held {
			held += n
		}
		switch {
		case k.murky:
		case k.rule.Metric == hotspot.Concurrency && held > int64(threshold):
			return fmt.Sprintf("%d units of %v in flight, for %d", held, threshold, value)
		case k.rule.Behavior == hotspot.TokenBucket:
			if over := v.tokens.over(l.now, k.size()); over != "" { // those that share get less
				return fmt.Sprintf("%s, for %d", over, value)
			}
		case k.rule.Metric == hotspot.QPS && k.rule.Behavior == hotspot.Reject && !k.loose[c.resource] && v.used > int64(threshold)+int64(k.rule.Burst):
			return fmt.Sprintf("%d units of a bucket of %v and %d, for %d", v.used, threshold, k.rule.Burst, value)
		}
	}
	return ""
}

func (k *valueKeeper) took(l *ledger, c *call) {
	for value, times := range k.of(c) {
		threshold, _ := k.exception(value)
		v, units := k.log(c.resource, value), c.units*times
		switch {
		case k.rule.Metric == hotspot.Concurrency:
			v.held[c] = units
		case k.rule.Behavior == hotspot.Throttle:
			cost := float64(units) * k.cost(value)
			v.queue.shared = k.shares(c, value)
			v.queue.give(c, l.now, cost, cost)
		case k.rule.Behavior == hotspot.TokenBucket:
			v.tokens.take(c, l.now, units)
		default:
			filled, used := k.filledAt(v, l.now, threshold)
			if filled != v.filled {
				v.begun, v.before = filling{filled, used}, v.filling
			}
			v.filling = filling{filled, used + units}
			v.took[c] = taken{v.filled, units}
		}
	}
}

func (k *valueKeeper) left(l *ledger, c *call) {
	for _, v := range k.values {
		delete(v.held, c)
		if c.passedAt == 0 {
			v.queue.leave(c, l.now)
			v.tokens.leave(c)
			if t, ok := v.took[c]; ok {
				v.giveBack(t)
			}
		}
		delete(v.took, c)
	}
}

// giveBack is for a call that took and never ran.
func (v *valueLog) giveBack(t taken) {
	switch t.filled {
	case v.filled:
		if v.used = max(0, v.used-t.units); v.filling == v.begun {
			v.filling, v.begun, v.before = v.before, filling{}, filling{}
		}
	case v.before.filled:
		v.before.used = max(0, v.before.used-t.units)
	}
}

func (k *valueKeeper) follow(l *ledger, before keeper) {
	k.values, k.seen, k.loose = make(map[valueAt]*valueLog), make(map[string]int), make(map[string]bool)
	old, ok := before.(*valueKeeper)
	switch {
	case !ok:
		k.murky, k.unknown = l.known[k.is()], slices.Clone(l.waiting)
	case old.rule.Index == k.rule.Index && old.rule.Param == k.rule.Param && old.rule.Resource == k.rule.Resource && old.rule.Match == k.rule.Match:
		k.values, k.seen, k.loose, k.murky, k.unknown = old.values, old.seen, old.loose, old.murky, old.unknown
		if !k.murky && !slices.EqualFunc(k.rule.Exceptions, old.rule.Exceptions, sameValue) {
			k.murky, k.unknown = true, slices.Clone(l.waiting)
		}
		for at, v := range k.values {
			k.takeOver(l, v, old.rule.Behavior, old.cost(at.value), k.cost(at.value))
		}
		for name, n := range k.seen {
			k.loose[name] = k.loose[name] || n > k.rule.MaxValues
		}
	}
}

// takeOver has a value go on under a rule of perhaps another behavior: what a queue hands to
// a bucket, or that to a queue, is left open, and so is a bucket that the rule had before, or for
// how long those wait of whose queue only a bound is known if others overtake that cost more now.
func (k *valueKeeper) takeOver(l *ledger, v *valueLog, before hotspot.Behavior, costBefore, cost float64) {
	if cost > costBefore && (v.queue.bounded || v.queue.shared) {
		for _, t := range v.queue.waiting {
			t.call.due = math.Inf(1)
		}
	}
	switch {
	case k.rule.Behavior == before:
	case k.rule.Behavior == hotspot.TokenBucket:
		v.tokens = newTokenLog(true, cost)
	case k.rule.Behavior == hotspot.Throttle && before == hotspot.TokenBucket:
		v.queue = murkyTurnLog(slices.Clone(l.waiting))
	}
	if k.rule.Behavior == hotspot.TokenBucket {
		v.tokens.refill(l.now, cost)
	}
}

func sameValue(a, b hotspot.Exception) bool { return a.Value == b.Value }
