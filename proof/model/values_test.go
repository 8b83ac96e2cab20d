package model

import (
	"context"
	"errors"
	"log/slog"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/proof/figure"
	"github.com/penstock-go/penstock/rules"
)

// valuesTwin is a hotspot rule once more: what each value has of its own.
type valuesTwin struct {
	now    int64
	rule   hotspot.Rule
	values map[int]*valueTwin
}

// valueTwin is the token bucket and the queue of a value.
type valueTwin struct {
	bucket *bucket
	queue  *queue
	passed bool
}

func (w *valuesTwin) of(v int) *valueTwin {
	if w.values[v] == nil {
		w.values[v] = new(valueTwin)
	}
	x := w.values[v]
	if x.queue == nil {
		x.queue = new(queue)
	}
	return x
}

// bucketOf is the token bucket of a value. One that the rule doesn't know has a full one.
func (w *valuesTwin) bucketOf(v int) *bucket {
	if b := w.of(v).bucket; b != nil {
		return b
	}
	return newBucket(w.interval(), w.threshold(v))
}

// know has a value be known from now on.
func (w *valuesTwin) know(v int) *valueTwin {
	x := w.of(v)
	if w.rule.Behavior == hotspot.TokenBucket {
		x.bucket = w.bucketOf(v)
	}
	return x
}

// named reports whether the rule has a threshold for the value alone.
func (w *valuesTwin) named(v int) bool {
	return slices.ContainsFunc(w.rule.Exceptions, func(e hotspot.Exception) bool { return e.Value == argument.Of(v) })
}

func (w *valuesTwin) interval() time.Duration {
	if w.rule.Interval == 0 {
		return time.Second
	}
	return w.rule.Interval
}

// threshold is the rule's, or the one that a value has for itself.
func (w *valuesTwin) threshold(v int) float64 {
	for _, e := range w.rule.Exceptions {
		if e.Value == argument.Of(v) {
			return e.Threshold
		}
	}
	return w.rule.Threshold
}

func (w *valuesTwin) size() int64 { return int64(w.rule.Burst) + 1 }

// cost is the time that n units of a value take of its queue.
func (w *valuesTwin) cost(v int, n int64) *big.Int {
	cost, _ := new(big.Float).SetMantExp(big.NewFloat(float64(n)*(float64(w.interval())/w.threshold(v))), 32).Int(nil)
	return cost
}

// fits reports whether n units of a value would pass, and if not, when one more would.
func (w *valuesTwin) fits(v int, n int64) (retry time.Duration, known, ok bool) {
	if b := w.bucketOf(v); w.rule.Behavior == hotspot.TokenBucket {
		return b.retryAfter(w.now, w.size()), n <= w.size(), b.fits(w.now, n, w.size())
	}
	x := w.of(v)
	_, one := x.queue.next(w.now, w.cost(v, 1), false)
	_, wait := x.queue.next(w.now, w.cost(v, n), false)
	return max(0, one-w.rule.MaxWait), true, wait <= w.rule.MaxWait
}

func (w *valuesTwin) take(v int, n int64) {
	x := w.know(v)
	if x.passed = true; w.rule.Behavior == hotspot.TokenBucket {
		x.bucket.take(nil, w.now, n)
	} else {
		c := new(call)
		x.queue.take(c, w.now, w.cost(v, n), false, true, false)
		c.turns[0].come() // the call runs
	}
}

// load puts another rule in the place of the one there is.
func (w *valuesTwin) load(rule hotspot.Rule) {
	before := w.rule.Behavior
	w.rule = rule
	for v, x := range w.values {
		switch {
		case rule.Behavior == hotspot.TokenBucket:
			if x.bucket != nil {
				x.bucket.setUnit(w.now, unitOf(w.interval(), w.threshold(v)))
			}
			if last := x.queue.last(); before == hotspot.Throttle && last != nil {
				w.know(v).bucket.follow(last, w.now)
			}
		case before == hotspot.TokenBucket && x.bucket != nil && x.bucket.latest != allTime:
			x.queue.follow(parts(x.bucket.latest))
		}
	}
}

// drawValues draws a hotspot rule under which nobody waits.
func drawValues(t *rapid.T) hotspot.Rule {
	rate := rapid.SampledFrom([]float64{0.5, 1, 1.5, 3, 7, 10, 99.9})
	rule := hotspot.Rule{
		ID: "values", Resource: "a", Param: "user", Threshold: rate.Draw(t, "threshold"),
		Interval: rapid.SampledFrom([]time.Duration{0, 100 * ms, 2 * time.Second, time.Minute}).Draw(t, "interval"),
	}
	if rapid.IntRange(0, 3).Draw(t, "behavior") == 0 {
		rule.Behavior, rule.MaxWait = hotspot.Throttle, 1
	} else {
		rule.Behavior, rule.Burst = hotspot.TokenBucket, rapid.SampledFrom([]int{0, 0, 1, 2, 5, 20}).Draw(t, "burst")
	}
	for v := range 2 {
		if rapid.IntRange(0, 2).Draw(t, "exception") == 0 {
			own := hotspot.Exception{Value: argument.Of(v), Threshold: rate.Draw(t, "its threshold")}
			rule.Exceptions = append(rule.Exceptions, own)
		}
	}
	return rule
}

// Each value of a hotspot rule gets what its token bucket, or its queue,
// has by the twin, call by call: in batches, in lists that take all of their values or none,
// under rules that change. Who is refused is told to the nanosecond when one unit more passes.
func TestTwinOfValues(t *testing.T) {
	calls := int64(0)
	check(t, figure.Size(20, 300, 5000, 100_000), func(t *rapid.T) {
		clock := api.NewManualClock(epoch.Add(span(0, time.Second).Draw(t, "start")))
		g, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		clock.SetSleep(api.SleepRecord) // a wait of a nanosecond is none
		w := &valuesTwin{now: clock.Now(), values: make(map[int]*valueTwin)}
		load := func() {
			rule := drawValues(t)
			if err := g.LoadRules(rules.Set{Hotspot: []hotspot.Rule{rule}}); err != nil {
				t.Fatal(err)
			}
			w.load(rule)
		}
		load()
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				load()
			case 1, 2, 3:
				clock.Advance(step.Draw(t, "time"))
				w.now = clock.Now()
			default:
				calls++
				w.calls(t, g)
			}
		}
	})
	report(t, "twin of values: verdicts that differ", calls)
}

// calls makes a call with one value or a list of them.
func (w *valuesTwin) calls(t *rapid.T, g *api.Guard) {
	list := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 1).Draw(t, "values")
	if rapid.IntRange(0, 4).Draw(t, "list") == 0 {
		list = rapid.SliceOfN(rapid.IntRange(0, 3), 1, 3).Draw(t, "values")
	}
	units := rapid.SampledFrom([]int64{1, 1, 1, 2, 3, 7}).Draw(t, "units")
	var refused func(*core.BlockError) // who refuses first, and what it tells
	var seen []int
	for _, v := range list {
		if slices.Contains(seen, v) {
			continue
		}
		seen = append(seen, v)
		if refused != nil {
			continue
		}
		if retry, known, ok := w.fits(v, w.units(list, v, units)); !ok {
			if len(list) == 1 || w.named(v) {
				w.know(v)
			}
			refused = func(b *core.BlockError) {
				wait, is := b.RetryAfter()
				unknown := b.Value == argument.Value{} && !w.of(v).passed // nothing is kept of it
				if b.Value != argument.Of(v) && !unknown || is != known || is && max(0, wait) != retry {
					t.Fatalf("%v: %v, again after %v, known %v; the twin: %d, %v, %v", list, b, wait, is, v, retry, known)
				}
			}
		}
	}
	e, err := g.Entry(context.Background(), "a", api.Param("user", list), api.Units(int(units)))
	e.Exit()
	block, isBlock := errors.AsType[*core.BlockError](err)
	if (err != nil) != (refused != nil) || err != nil && !isBlock {
		t.Fatalf("%d of %v: %v; the twin refuses: %v; rule %+v", units, list, err, refused != nil, w.rule)
	}
	if refused != nil {
		refused(block)
		return
	}
	for _, v := range seen {
		w.take(v, w.units(list, v, units))
	}
}

// units is what a call takes of a value that its list has, once or more often.
func (w *valuesTwin) units(list []int, v int, units int64) (n int64) {
	for _, other := range list {
		if other == v {
			n += units
		}
	}
	return n
}
