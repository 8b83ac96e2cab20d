package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
)

// Rules that count all their names together agree with a twin that keeps lists: under random calls
// over several routes, many of them nested, in calls that may have exited, and reloads that change
// thresholds, patterns, modes and windows, and that count the names apart for a while.
func TestTogetherAgreesWithALog(t *testing.T) {
	histories := 200
	if testing.Short() {
		histories = 60
	}
	decided := map[bool]int{}
	for seed := range histories {
		h := newTogetherTwin(t, uint64(seed))
		for range 250 {
			h.step(decided)
		}
	}
	t.Logf("%d admitted, %d refused", decided[true], decided[false])
	require.Greater(t, decided[true], 10*histories)
	require.Greater(t, decided[false], 10*histories)
}

// twinRule is a rule in the words of the twin.
type twinRule struct {
	id       string
	kind     core.Kind
	pattern  string
	match    spec.Match
	exclude  []string
	together bool
	mode     spec.Mode
	limit    int64
	origin   string
	chain    string
	unit     string
	way      string        // "window", "tokens", "turns", "permits"
	width    time.Duration // of a bucket of the window, or the time of a unit
	buckets  int
	strict   bool
}

func (r *twinRule) matches(name string) bool {
	switch {
	case slices.Contains(r.exclude, name):
		return false
	case r.match == spec.MatchRegex:
		return regexp.MustCompile("^(?:" + r.pattern + ")$").MatchString(name)
	case r.match == spec.MatchPrefix:
		return strings.HasPrefix(name, strings.TrimSuffix(r.pattern, "*"))
	case r.match == spec.MatchPath:
		parts, names := strings.Split(r.pattern, "/"), strings.Split(name, "/")
		return slices.EqualFunc(parts, names, func(p, n string) bool { return p == "*" || p == n })
	}
	return true
}

// twinGrant holds the units that a rule has granted to a call, and still counts.
type twinGrant struct {
	call   *twinCall
	units  int64
	bucket int64
}

// twinLog lists the grants of a rule.
type twinLog struct {
	grants []*twinGrant
	full   int64 // time at which the bucket is full, or of the next turn
}

type twinCall struct {
	name            string
	context, origin string
	inbound         bool
	cost            int64
	user            string
	outer           *twinCall
	entry           api.Admitted
	ctx             context.Context
	ended           bool
	counted         map[string]*twinLog // logs of the rules that judged it, by ID
	granted         map[string]bool     // rules that admitted it
}

type togetherTwin struct {
	*rand.Rand
	t     *testing.T
	g     *api.Guard
	clock *api.ManualClock
	rules []*twinRule
	logs  map[string]*twinLog // of rules that count together
	calls []*twinCall         // that were admitted and may be outer calls
	steps []string
}

var (
	twinNames    = []string{"a/1/x", "a/2/x", "a/2/y", "b/1", "b/2"}
	twinPatterns = []twinRule{
		{pattern: "*"}, {pattern: "*", exclude: []string{"a/2/x", "b/1"}}, {pattern: "a/*", match: spec.MatchPrefix},
		{pattern: "a/*", match: spec.MatchPrefix, exclude: []string{"a/1/x"}}, {pattern: "a/*/x", match: spec.MatchPath},
		{pattern: ".*", match: spec.MatchRegex}, {pattern: ".*/[2y].*", match: spec.MatchRegex},
	}
)

func (c *twinCall) String() string {
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s%v[ended %v] < %v", c.name, slices.Sorted(maps.Keys(c.counted)), c.ended, c.outer)
}

func pickOf[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func newTogetherTwin(t *testing.T, seed uint64) *togetherTwin {
	h := &togetherTwin{
		Rand: rand.New(rand.NewPCG(seed, 37)), t: t, logs: make(map[string]*twinLog),
		clock: api.NewManualClock(time.Unix(1_800_000_000, 0)),
	}
	g, err := api.New(api.Config{Clock: h.clock, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = g.Close() })
	h.g = g
	for i := range 1 + h.IntN(4) {
		r := &twinRule{id: fmt.Sprint("r", i), kind: core.KindFlow, together: true, limit: 1 + h.Int64N(4)}
		r.way = pickOf(h.Rand, "window", "window", "tokens", "turns", "permits", "isolation", "values", "values in flight")
		switch r.way {
		case "isolation":
			r.way, r.kind = "permits", core.KindIsolation
		case "values":
			r.way, r.kind, r.width, r.buckets, r.strict = "window", core.KindHotspot, 100*time.Millisecond, 10, true
		case "values in flight":
			r.way, r.kind = "permits", core.KindHotspot
		case "window":
			r.width, r.buckets, r.strict = pickOf(h.Rand, 100*time.Millisecond, 250*time.Millisecond), 1+h.IntN(5), h.IntN(2) == 0
		case "tokens", "turns":
			r.width = pickOf(h.Rand, 50*time.Millisecond, 200*time.Millisecond)
		}
		if r.way == "window" && h.IntN(3) == 0 || r.way == "permits" && h.IntN(4) == 0 {
			r.unit, r.limit = "tokens", r.limit*5
		}
		if r.kind == core.KindFlow {
			r.origin = pickOf(h.Rand, "", "", "", "app")
			r.chain = pickOf(h.Rand, "", "", "", "web")
		}
		h.repattern(r)
		h.rules = append(h.rules, r)
	}
	h.load()
	return h
}

func (h *togetherTwin) repattern(r *twinRule) {
	p := pickOf(h.Rand, twinPatterns...)
	r.pattern, r.match, r.exclude = p.pattern, p.match, p.exclude
}

// load puts the rules into force, beside one for a single name, which excludes none of them.
func (h *togetherTwin) load() {
	var set api.RuleSet
	const none = 1_000_000
	set.Flow = append(set.Flow, flow.Rule{ID: "own", Resource: twinNames[0], Threshold: none, Metric: flow.Concurrency})
	set.Isolation = append(set.Isolation, isolation.Rule{ID: "own", Resource: twinNames[0], Threshold: none})
	for _, r := range h.rules {
		limit := r.limit
		if !r.together { // where each name counts, from its traffic so far, the twin doesn't look
			limit = none
		}
		if r.kind == core.KindIsolation {
			set.Isolation = append(set.Isolation, isolation.Rule{
				ID: r.id, Resource: r.pattern, Match: r.match, Exclude: r.exclude, Together: r.together, Mode: r.mode, Threshold: int(limit), Unit: r.unit,
			})
			continue
		}
		if r.kind == core.KindHotspot {
			v := hotspot.Rule{
				ID: r.id, Resource: r.pattern, Match: r.match, Exclude: r.exclude, Together: r.together, Mode: r.mode, Threshold: float64(limit), Unit: r.unit, Param: "user",
			}
			if r.way == "permits" {
				v.Metric = hotspot.Concurrency
			}
			set.Hotspot = append(set.Hotspot, v)
			continue
		}
		f := flow.Rule{
			ID: r.id, Resource: r.pattern, Match: r.match, Exclude: r.exclude, Together: r.together, Mode: r.mode, Origin: r.origin,
			Unit: r.unit, Threshold: float64(limit),
		}
		if r.chain != "" {
			f.Relation, f.Ref = flow.Chain, r.chain
		}
		switch r.way {
		case "window":
			f.Interval, f.Buckets, f.Window = time.Duration(r.buckets)*r.width, r.buckets, flow.Ring
			if r.strict {
				f.Window = flow.Strict
			}
		case "permits":
			f.Metric = flow.Concurrency
		case "tokens":
			f.Behavior, f.Burst, f.Threshold, f.Interval = flow.TokenBucket, int(r.limit)-1, 1, r.width
		case "turns":
			f.Behavior, f.Threshold, f.Interval = flow.Throttle, 1, r.width
		}
		if !r.together && f.Behavior != flow.Reject {
			f.Behavior, f.Burst, f.Threshold, f.Interval = flow.Reject, 0, none, time.Second
		}
		set.Flow = append(set.Flow, f)
	}
	text, err := set.YAML()
	require.NoError(h.t, err)
	h.steps = append(h.steps, string(text))
	require.NoError(h.t, h.g.LoadRules(set), string(text))
	for _, r := range h.rules {
		if r.together && h.logs[r.id] == nil {
			h.logs[r.id] = new(twinLog)
		}
	}
}

func (h *togetherTwin) now() int64 { return h.clock.Now() }

// reload changes a rule.
func (h *togetherTwin) reload() {
	r := pickOf(h.Rand, h.rules...)
	switch h.IntN(5) {
	case 0:
		r.limit = 1 + h.Int64N(4)
		if r.unit != "" {
			r.limit *= 5
		}
	case 1:
		h.repattern(r)
	case 2:
		before := r.mode
		if r.mode = pickOf(h.Rand, spec.Enforce, spec.Shadow, spec.Off); r.kind == core.KindIsolation && r.unit == "" && (before == spec.Shadow) != (r.mode == spec.Shadow) {
			if l := h.logs[r.id]; l != nil {
				l.grants = nil // it begins anew
			}
		}
		if r.mode == spec.Off && r.way == "window" && r.together && r.kind == core.KindFlow {
			h.logs[r.id].grants = nil
		}
	case 3:
		if r.together = !r.together; !r.together {
			delete(h.logs, r.id)
		}
	case 4:
		if r.way != "window" || r.kind != core.KindFlow {
			return
		}
		if l := h.logs[r.id]; l != nil { // the next windows know what the last ones counted
			l.grants = slices.DeleteFunc(l.grants, func(x *twinGrant) bool { return !r.counts(x, h.now()) })
		}
		r.buckets = 1 + h.IntN(5)
	}
	h.load()
}

// counts reports whether the window still counts a grant.
func (r *twinRule) counts(x *twinGrant, now int64) bool {
	last := now/int64(r.width) - int64(r.buckets)
	if !r.strict {
		last++
	}
	return x.bucket >= last
}

// fits reports whether units fit.
func (r *twinRule) fits(l *twinLog, user string, units, now int64) bool {
	switch r.way {
	case "tokens":
		return units <= r.limit && max(l.full, now)+units*int64(r.width)-now <= r.limit*int64(r.width)
	case "turns":
		if r.mode == spec.Shadow { // it doesn't know that the call can't wait
			now += int64(500 * time.Millisecond)
		}
		return l.full <= now || l.full == 0
	}
	var sum int64
	for _, x := range l.grants {
		if r.kind == core.KindHotspot && x.call.user != user {
			continue
		}
		if r.way == "permits" && !x.call.ended || r.way == "window" && r.counts(x, now) {
			sum += x.units
		}
	}
	return sum+units <= r.limit
}

func (r *twinRule) take(l *twinLog, c *twinCall, units, now int64) {
	if r.way == "tokens" || r.way == "turns" {
		l.full = max(l.full, now) + units*int64(r.width)
		return
	}
	x := &twinGrant{call: c, units: units}
	if r.way == "window" {
		x.bucket = now / int64(r.width)
	}
	l.grants = append(l.grants, x)
}

// units returns what a rule counts of a call; 0 if nothing.
func (h *togetherTwin) units(r *twinRule, c *twinCall) int64 {
	switch {
	case !r.together || r.mode == spec.Off || !r.matches(c.name) || r.pattern == "*" && !c.inbound:
		return 0
	case r.origin != "" && r.origin != c.origin || r.chain != "" && r.chain != c.context:
		return 0
	case r.unit != "" && c.cost == 0, r.kind == core.KindHotspot && c.user == "":
		return 0
	}
	for o := c.outer; o != nil; o = o.outer {
		if !o.ended && o.counted[r.id] != nil && o.counted[r.id] == h.home(r) {
			return 0
		}
	}
	if r.unit != "" {
		return c.cost
	}
	return 1
}

// home identifies the place of a rule: it is another once the names were counted apart.
func (h *togetherTwin) home(r *twinRule) *twinLog { return h.logs[r.id] }

func (h *togetherTwin) step(decided map[bool]int) {
	switch n := h.IntN(100); {
	case n < 4:
		h.reload()
	case n < 30:
		d := pickOf(h.Rand, time.Duration(h.Int64N(int64(100*time.Millisecond))), 50*time.Millisecond, 250*time.Millisecond, 2*time.Second)
		h.clock.Advance(d)
	case n < 55:
		if running := slices.DeleteFunc(slices.Clone(h.calls), func(c *twinCall) bool { return c.ended }); len(running) > 0 {
			h.exit(pickOf(h.Rand, running...))
		}
	default:
		h.enter(decided)
	}
}

func (h *togetherTwin) exit(c *twinCall) {
	if c.cost > 0 && h.IntN(2) == 0 {
		used := h.Int64N(8)
		c.entry.Settle("tokens", used)
		h.settle(c, used)
	}
	c.entry.Exit()
	c.ended = true
	h.steps = append(h.steps, fmt.Sprintf("%d exit %s", h.now(), c.name))
}

// settle corrects what the rules with the unit counted of the call.
func (h *togetherTwin) settle(c *twinCall, used int64) {
	for _, r := range h.rules {
		l := c.counted[r.id]
		if r.unit == "" || l == nil {
			continue
		}
		if !c.granted[r.id] {
			continue
		}
		if used > c.cost && r.way == "window" && r.mode != spec.Off {
			l.grants = append(l.grants, &twinGrant{call: c, units: used - c.cost, bucket: h.now() / int64(r.width)})
			continue
		}
		for _, x := range l.grants {
			if x.call == c {
				x.units = used
			}
		}
	}
}

func (h *togetherTwin) enter(decided map[bool]int) {
	c := &twinCall{
		name: pickOf(h.Rand, twinNames...), context: pickOf(h.Rand, "", "web"), origin: pickOf(h.Rand, "", "app"),
		user: pickOf(h.Rand, "", "ann", "ann", "bob"), inbound: h.IntN(3) > 0, cost: max(0, h.Int64N(10)-4), counted: make(map[string]*twinLog), granted: make(map[string]bool),
	}
	over, cancel := context.WithCancel(context.Background())
	cancel() // so that no call waits for its turn
	ctx := api.WithOrigin(api.WithContext(over, c.context), c.origin)
	if len(h.calls) > 0 && h.IntN(2) == 0 {
		c.outer = h.calls[len(h.calls)-1-h.IntN(min(len(h.calls), 6))]
		ctx = c.outer.ctx
		c.context, c.origin = c.outer.context, c.outer.origin
		if h.IntN(4) == 0 {
			c.origin = "app"
			ctx = api.WithOrigin(ctx, c.origin)
		}
		if h.IntN(4) == 0 {
			c.context = "web"
			ctx = api.WithContext(ctx, c.context)
		}
	}
	opts := []api.Option{}
	if c.inbound {
		opts = append(opts, api.Inbound())
	}
	if c.user != "" {
		opts = append(opts, api.Param("user", c.user))
	}
	if c.cost > 0 {
		opts = append(opts, api.Cost("tokens", c.cost))
	}
	now, refuses := h.now(), []string{}
	for _, r := range h.rules {
		if n := h.units(r, c); n > 0 && r.mode == spec.Enforce && !r.fits(h.logs[r.id], c.user, n, now) {
			refuses = append(refuses, r.id)
		}
	}
	h.steps = append(h.steps, fmt.Sprintf("%d enter %s in %q from %q user %q inbound %v cost %d below %s: refused by %v", now, c.name, c.context, c.origin, c.user, c.inbound, c.cost, c.outer, refuses))
	x, err := h.g.Explain(ctx, c.name, opts...)
	require.NoError(h.t, err)
	e, err := h.g.Entry(ctx, c.name, opts...)
	if (err == nil) != (len(refuses) == 0) {
		h.t.Fatalf("%v\n%s", err, strings.Join(h.steps[max(0, len(h.steps)-60):], "\n"))
	}
	if (x.Outcome == core.Passes) != (err == nil) {
		h.t.Fatalf("explained %v, but %v\n%s", x.Outcome, err, strings.Join(h.steps[max(0, len(h.steps)-60):], "\n"))
	}
	decided[err == nil]++
	if err != nil {
		var b *api.BlockError
		require.ErrorAs(h.t, err, &b)
		require.Contains(h.t, refuses, b.Rule)
		return
	}
	for _, r := range h.rules {
		n := h.units(r, c)
		if n == 0 {
			continue
		}
		l := h.logs[r.id]
		if r.fits(l, c.user, n, now) {
			r.take(l, c, n, now)
			c.granted[r.id] = true
		}
		c.counted[r.id] = l
	}
	c.entry, c.ctx = e, e.Context()
	h.calls = append(h.calls, c)
}
