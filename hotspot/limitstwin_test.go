package hotspot_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/figure"
)

// answer is a result of a limits function.
type answer struct {
	limit float64
	ttl   time.Duration
	err   error
	exits bool // ends the goroutine
}

// database answers questions about limits when a test says so.
type database struct {
	waiting  map[string]chan answer
	rules    map[string]bool
	replying chan struct{}
}

// limits is api.Config.Limits.
func (d *database) limits(ctx context.Context, rule string, key argument.Value) (float64, time.Duration, error) {
	reply := make(chan answer)
	<-d.replying
	if d.waiting[key.String()] != nil {
		panic("two questions at once about " + key.String())
	}
	d.waiting[key.String()], d.rules[rule] = reply, true
	d.replying <- struct{}{}
	select {
	case a := <-reply:
		if a.exits {
			runtime.Goexit()
		}
		return a.limit, a.ttl, a.err
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
}

func newDatabase() *database {
	d := &database{waiting: make(map[string]chan answer), rules: make(map[string]bool), replying: make(chan struct{}, 1)}
	d.replying <- struct{}{}
	return d
}

// answer answers the question about a value, and returns once the answer is stored.
func (d *database) answer(value string, a answer) {
	synctest.Wait()
	reply := d.waiting[value]
	delete(d.waiting, value)
	reply <- a
	synctest.Wait()
}

// limitGame plays the same calls against a rule with limits from code, and against its twin: a rule
// without, which is loaded anew with an exception for a value whenever its limit changes.
type limitGame struct {
	rule       hotspot.Rule
	real, twin *guard
	db         *database
	r          *rand.Rand
	of         map[string]string // the plan of each value, if the rule lists it
	known      map[string]*known
	open       [][2]engine.Entry
	now        time.Duration

	calls, blocked, answers, errors, questions int
}

// known is the twin's own account of one value.
type known struct {
	limit   *float64
	running bool // a question
	tracked bool // the latest rules have seen a call
	waits   bool // for the answer
	due     time.Duration
	failed  int
}

func newLimitGame(t *testing.T, r *rand.Rand) *limitGame {
	rule := hotspot.Rule{ID: "r", Param: "user", LimitsFromCode: true}
	switch r.IntN(6) {
	case 0:
		rule.Window, rule.Burst = hotspot.Refill, r.IntN(3)
	case 1:
		rule.Metric = hotspot.Concurrency
	case 2:
		rule.Behavior, rule.MaxWait = hotspot.Throttle, time.Duration(r.IntN(800))*ms
	case 3:
		rule.Behavior, rule.Burst = hotspot.TokenBucket, r.IntN(4)
	}
	if rule.Window == hotspot.Strict && r.IntN(3) == 0 {
		rule.Unit = "tokens"
	}
	g := &limitGame{r: r, rule: rule, of: make(map[string]string), known: make(map[string]*known), db: newDatabase()}
	for i := range 5 {
		g.known[fmt.Sprint("u", i)] = new(known)
	}
	g.draw()
	g.real, g.twin = newGuardWith(t, engine.Config{Limits: g.db.limits}, g.rule), newGuard(t, g.twinOf())
	return g
}

func (g *limitGame) draw() {
	g.rule.Threshold, g.rule.Exceptions, g.rule.Plans = float64(g.r.IntN(6)), nil, make(map[string]float64)
	for i := range 3 {
		if g.r.IntN(3) > 0 {
			g.rule.Plans[fmt.Sprint("p", i)] = float64(g.r.IntN(9))
		}
		if g.r.IntN(5) == 0 {
			g.rule.Exceptions = append(g.rule.Exceptions, hotspot.Exception{Value: hotspot.ValueOf(fmt.Sprint("u", i)), Threshold: float64(g.r.IntN(9))})
		}
	}
}

func (g *limitGame) excepted(user string) bool {
	return slices.ContainsFunc(g.rule.Exceptions, func(x hotspot.Exception) bool { return x.Value == hotspot.ValueOf(user) })
}

// twinOf returns the twin's rule: exceptions come first, then the code's limit, then the plan, then the
// threshold.
func (g *limitGame) twinOf() hotspot.Rule {
	twin := g.rule
	twin.Plans, twin.LimitsFromCode = nil, false
	twin.Exceptions = slices.Clone(g.rule.Exceptions)
	for _, user := range slices.Sorted(maps.Keys(g.known)) {
		name, planned := g.of[user]
		limit := g.rule.Plans[name]
		if known := g.known[user]; known.limit != nil {
			limit, planned = *known.limit, true
		}
		if planned && !g.excepted(user) {
			twin.Exceptions = append(twin.Exceptions, hotspot.Exception{Value: hotspot.ValueOf(user), Threshold: limit})
		}
	}
	return twin
}

// called notes a call of a value under the rules in force.
func (g *limitGame) called(user string) {
	k := g.known[user]
	if !g.rule.LimitsFromCode || g.excepted(user) {
		return
	}
	k.tracked = true
	if g.now >= k.due && !k.waits {
		if k.waits = true; !k.running {
			k.running = true
			g.questions++
		}
	}
}

func (g *limitGame) enter(t *testing.T) {
	r := g.r
	user, name := fmt.Sprint("u", r.IntN(5)), []string{"", "p0", "p1", "p2"}[r.IntN(4)]
	before, had := g.of[user]
	if r.IntN(3) > 0 && had {
		name = before
	}
	delete(g.of, user)
	if _, ok := g.rule.Plans[name]; ok {
		g.of[user] = name
	}
	if g.of[user] != before {
		g.twin.load(g.twinOf())
	}
	opts := []engine.Option{engine.Param("user", user), engine.Units(1 + r.IntN(2))}
	if g.rule.Unit != "" {
		opts = append(opts, engine.Cost(g.rule.Unit, 1+r.Int64N(3)))
	}
	with := append(slices.Clone(opts), engine.Plan(name))
	wanted, err := g.twin.Explain(t.Context(), "orders", opts)
	require.NoError(t, err)
	explained, err := g.real.Explain(t.Context(), "orders", with)
	require.NoError(t, err)
	switch why, k := explained.Rules[0].Why, g.known[user]; {
	case !g.rule.LimitsFromCode || g.excepted(user):
	case k.limit == nil:
		require.Contains(t, why, "code has yet to set the limit")
		explained.Rules[0].Why = wanted.Rules[0].Why
	default:
		require.Contains(t, why, fmt.Sprintf("limit %v from code, ", *k.limit))
		require.Equal(t, k.failed > 0, strings.HasSuffix(why, "the latest question failed"), why)
		explained.Rules[0].Why = wanted.Rules[0].Why
	}
	require.Equal(t, wanted.Rules, explained.Rules)
	a, err := g.real.enter(with...)
	b, twinErr := g.twin.enter(opts...)
	require.Equal(t, twinErr == nil, err == nil, "%s under %q of %+v: the twin says %v, not %v", user, name, g.rule, twinErr, err)
	require.Equal(t, g.twin.clock.Slept(), g.real.clock.Slept())
	g.called(user)
	left, _ := a.Remaining(g.rule.Unit)
	twinLeft, _ := b.Remaining(g.rule.Unit)
	require.Equal(t, twinLeft, left)
	if g.calls++; err == nil {
		g.open = append(g.open, [2]engine.Entry{a, b})
		return
	}
	g.blocked++
	sameRefusal(t, err, twinErr)
}

// reply answers one of the questions that wait.
func (g *limitGame) reply() {
	var running []string
	for _, user := range slices.Sorted(maps.Keys(g.known)) {
		if g.known[user].running {
			running = append(running, user)
		}
	}
	if len(running) == 0 {
		return
	}
	user := running[g.r.IntN(len(running))]
	a := answer{limit: float64(g.r.IntN(9)), ttl: hotspot.MinTTL + time.Duration(g.r.Int64N(int64(3*time.Second)))}
	failed := true
	switch g.r.IntN(12) {
	case 0:
		a.err = errors.New("no connection")
	case 1:
		a.exits = true
	case 2:
		a.limit = []float64{-1, math.NaN(), math.Inf(1), 1e16}[g.r.IntN(4)]
	case 3:
		a.ttl = []time.Duration{0, hotspot.MinTTL - 1, hotspot.MaxTTL + 1, -time.Second}[g.r.IntN(4)]
	default:
		failed = false
	}
	g.db.answer(fmt.Sprintf("%q", user), a)
	k := g.known[user]
	k.running = false
	switch stored := k.tracked && g.rule.LimitsFromCode; {
	case failed && (stored || a.err != nil || a.exits):
		g.errors++
	default:
		g.answers++
	}
	if !k.tracked || !g.rule.LimitsFromCode {
		return
	}
	if k.waits = false; failed {
		k.due = g.now + min(time.Minute, time.Second<<k.failed)
		k.failed++
		return
	}
	k.limit, k.due, k.failed = &a.limit, g.now+a.ttl, 0
	g.twin.load(g.twinOf())
}

func (g *limitGame) reload() {
	g.draw()
	asked := g.rule.LimitsFromCode
	g.rule.LimitsFromCode = g.r.IntN(4) > 0
	for user, k := range g.known {
		if !asked || !g.rule.LimitsFromCode {
			if k.limit != nil { // until the next call names the plan again
				delete(g.of, user)
			}
			*k = known{running: k.running, tracked: k.tracked}
		}
	}
	maps.DeleteFunc(g.of, func(_, name string) bool { _, ok := g.rule.Plans[name]; return !ok })
	g.real.load(g.rule)
	g.twin.load(g.twinOf())
}

// Under a rule with limits from code, each value gets what it would get if its latest answer were an
// exception, loaded when the answer arrives: with every metric and behavior, whatever the function
// answers and when, across reloads. One question runs at a time for a value, and none is due before
// its time.
func TestLimitsFromCodeAreExceptionsByAnswer(t *testing.T) {
	r := random(t)
	calls, blocked, answers, failed, questions := 0, 0, 0, 0, 0
	for range figure.Size(200, 200, 3_000, 30_000) {
		synctest.Test(t, func(t *testing.T) {
			g := newLimitGame(t, r)
			defer g.real.Close()
			for range 200 {
				switch n := r.IntN(44); {
				case n == 0:
					g.reload()
				case n < 8:
					g.now += time.Duration(r.Int64N(int64(400 * ms)))
					g.real.at(g.now)
					g.twin.at(g.now)
				case n < 14 && len(g.open) > 0:
					g.open = exitPair(r, g.open, g.rule.Unit)
				case n < 18:
					g.reply()
				default:
					g.enter(t)
				}
				synctest.Wait()
				for user, k := range g.known {
					require.Equal(t, k.running, g.db.waiting[fmt.Sprintf("%q", user)] != nil, "a question about %s at %v: %+v", user, g.now, *k)
				}
			}
			for len(g.open) > 0 {
				g.open = exitPair(r, g.open, g.rule.Unit)
			}
			if s := g.real.details("r").LimitsFromCode; g.rule.LimitsFromCode {
				require.Equal(t, []int64{int64(g.answers), int64(g.errors)}, []int64{s.Answers, s.Errors})
			}
			calls, blocked, answers, failed, questions = calls+g.calls, blocked+g.blocked, answers+g.answers, failed+g.errors, questions+g.questions
		})
	}
	t.Log(calls, "calls,", blocked, "blocked,", questions, "questions,", answers, "answers,", failed, "errors")
	assert.Greater(t, blocked, calls/10)
	assert.Greater(t, answers, calls/100)
	assert.Greater(t, failed, answers/10)
}
