package hotspot_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/figure"
)

// keyGame plays the same calls against a rule with keys, and against its twin: a rule about one
// attachment, for which the test writes the parts of the key into one text.
type keyGame struct {
	keys, twin *guard
	r          *rand.Rand
	rule       hotspot.Rule
	seen       map[string][]any // the keys that there can be, by their text
	open       [][2]engine.Entry
	now        time.Duration
	calls      int
	blocked    int
	starred    int // keys that an exception with a star matched
}

// partValues are those of the parts in the game: with separators, of several kinds, empty or missing.
var partValues = []any{"acme", "a", "a, b", `"`, `", "`, "", nil, 7, "7", "*"}

func textOf(key []any) string {
	var b strings.Builder
	for _, part := range key {
		fmt.Fprintf(&b, "%.1s%q", fmt.Sprintf("%T", part), fmt.Sprint(part))
	}
	return b.String()
}

func (g *keyGame) pick(values ...any) any { return values[g.r.IntN(len(values))] }

// draw changes the numbers of the rule.
func (g *keyGame) draw() {
	r, rule := g.r, &g.rule
	rule.Threshold = float64(r.IntN(5))
	rule.Exceptions = nil
	if len(rule.Keys) < 2 {
		return
	}
	taken := make(map[string]bool)
	for range r.IntN(7) {
		x := hotspot.Exception{Threshold: float64(r.IntN(8))}
		for i := range rule.Keys {
			v := g.pick(append(partValues, "*", "*", "app", "orders", "orders")...)
			if v == nil || v == "" && rule.Missing != hotspot.MissingNone && rule.Missing != hotspot.MissingShared {
				v = "a"
			}
			if rule.Keys[i] == "resource" {
				v = g.pick("orders", "*")
			}
			x.Values = append(x.Values, hotspot.ValueOf(v))
		}
		text := fmt.Sprint(x.Values)
		if any := func(v argument.Value) bool { return v != hotspot.ValueOf("*") }; slices.ContainsFunc(x.Values, any) && !taken[text] {
			rule.Exceptions = append(rule.Exceptions, x)
		}
		taken[text] = true
	}
}

// limit returns the threshold of a key, and whether an exception with a star sets it: the one with the
// fewest stars and, of those, the one whose stars come last.
func (g *keyGame) limit(key []any) (limit float64, named, starred bool) {
	best := ""
	limit = g.rule.Threshold
	for _, x := range g.rule.Exceptions {
		rank, stars := "", 0
		for i, v := range x.Values {
			switch {
			case v == hotspot.ValueOf("*"):
				stars++
				rank += "0"
			case v == hotspot.ValueOf(key[i]):
				rank += "1"
			default:
				stars = 99
			}
		}
		if rank = fmt.Sprint(9-stars, rank); stars < 9 && rank > best {
			best, limit, named, starred = rank, x.Threshold, true, stars > 0
		}
	}
	return limit, named, starred
}

func (g *keyGame) load(t *testing.T) {
	twin := g.rule
	twin.Keys, twin.Param, twin.Missing = nil, "key", hotspot.MissingNone
	twin.Exceptions = []hotspot.Exception{{Value: hotspot.ValueOf("refused"), Threshold: 0}}
	for text, key := range g.seen {
		if limit, named, _ := g.limit(key); named {
			twin.Exceptions = append(twin.Exceptions, hotspot.Exception{Value: hotspot.ValueOf(text), Threshold: limit})
		}
	}
	if g.keys == nil {
		g.keys, g.twin = newGuard(t, g.rule), newGuard(t, twin)
		return
	}
	g.keys.load(g.rule)
	g.twin.load(twin)
}

// keysOf returns the keys of a call, naively: the text that the twin gets for each. Not nil if the call
// is limited.
func (g *keyGame) keysOf(values [][]any) (texts []string) {
	missing := g.rule.Missing
	keys := [][]any{{}}
	several := false
	for _, list := range values {
		list = slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == nil })
		if len(list) == 0 {
			if missing == hotspot.MissingNone {
				return nil
			}
			list = []any{""}
		}
		if len(list) > 1 && several {
			list = list[:1]
		}
		several = several || len(list) > 1
		var longer [][]any
		for _, key := range keys {
			for _, v := range list {
				longer = append(longer, append(slices.Clone(key), v))
			}
		}
		keys = longer
	}
	for _, key := range keys {
		switch {
		case slices.Contains(key, any("")) && missing == hotspot.MissingUnlimited:
		case slices.Contains(key, any("")) && missing == hotspot.MissingRefuse && len(key) > 1:
			return []string{"refused"}
		case slices.Contains(key, any("")) && missing == hotspot.MissingRefuse:
			texts = append(texts, "refused") // a rule about one value looks at the others as well
		default:
			texts = append(texts, textOf(key))
			if _, _, starred := g.limit(key); starred {
				g.starred++
			}
		}
	}
	return texts
}

// enter makes a call of both.
func (g *keyGame) enter(t *testing.T) {
	r := g.r
	ctx, opts, args := context.Background(), []engine.Option(nil), []any{"x"}
	var values [][]any
	several := func() (list []any) {
		for range []int{0, 1, 1, 1, 1, 2, 3}[r.IntN(7)] {
			list = append(list, g.pick(partValues...))
		}
		return list
	}
	for _, part := range g.rule.Keys {
		var list []any
		switch part {
		case "origin":
			name := g.pick("", "app", "acme", "a, b").(string)
			ctx = engine.WithOrigin(ctx, name)
			if list = []any{name}; name == "" {
				list = nil
			}
		case "resource":
			list = []any{"orders"}
		case "arg 1", "arg -1":
			list = several()
			if len(list) == 1 && r.IntN(2) == 0 { // a list of one is a list as well
				args = append(args, list[0])
			} else {
				args = append(args, list)
			}
		default:
			list = several()
			for _, v := range list {
				opts = append(opts, engine.Param(strings.TrimPrefix(part, "param "), v))
			}
		}
		values = append(values, list)
	}
	opts = append(opts, engine.Args(args...), engine.Units(1+r.IntN(2)))
	texts := g.keysOf(values)
	var also []engine.Option
	if g.rule.Unit != "" && r.IntN(4) > 0 {
		also = append(also, engine.Cost(g.rule.Unit, int64(r.IntN(4))))
	}
	twinOpts := append(slices.Clone(also), opts[len(opts)-1], engine.Param("key", texts))
	opts = append(opts, also...)

	wanted, err := g.twin.Explain(ctx, "orders", twinOpts)
	require.NoError(t, err)
	explained, err := g.keys.Explain(ctx, "orders", opts)
	require.NoError(t, err)
	require.Equal(t, wanted.Rules[0].Outcome, explained.Rules[0].Outcome)
	require.Equal(t, wanted.Rules[0].Next, explained.Rules[0].Next)

	a, err := g.keys.Enter(ctx, "orders", opts)
	b, twinErr := g.twin.Enter(ctx, "orders", twinOpts)
	require.Equal(t, twinErr == nil, err == nil, "%v of %+v: the twin says %v, not %v", values, g.rule, twinErr, err)
	require.Equal(t, g.twin.clock.Slept(), g.keys.clock.Slept())
	left, known := a.Remaining(g.rule.Unit)
	twinLeft, twinKnown := b.Remaining(g.rule.Unit)
	require.Equal(t, twinKnown, known)
	require.Equal(t, twinLeft.Left, left.Left, "%v (%v) of %+v", values, texts, g.rule)
	g.calls++
	if err != nil {
		g.blocked++
		one, other := sameRefusal(t, err, twinErr)
		if text, _ := other.Value.Scalar().(string); text != "" && text != "refused" {
			if _, named, _ := g.limit(g.seen[text]); one.Value.IsNone() && !named {
				return // refused before it had a cell
			}
			require.Equal(t, shownOf(g.seen[text]), one.Value.String())
		}
		return
	}
	g.open = append(g.open, [2]engine.Entry{a, b})
}

// sameRefusal checks that two refusals have the same limit and time to retry.
func sameRefusal(t *testing.T, err, twinErr error) (one, other *core.BlockError) {
	one, other = refusalOf(t, err), refusalOf(t, twinErr)
	wait, known := one.RetryAfter()
	twinWait, twinKnown := other.RetryAfter()
	require.Equal(t, twinKnown, known)
	require.Equal(t, twinWait, wait)
	limit, _ := one.Limit()
	twinLimit, _ := other.Limit()
	require.Equal(t, twinLimit, limit)
	return one, other
}

// exitPair ends one of the calls of a rule and its twin, which may be settled first.
func exitPair(r *rand.Rand, open [][2]engine.Entry, unit string) [][2]engine.Entry {
	i := r.IntN(len(open))
	pair := open[i]
	if used := r.Int64N(7); unit != "" && r.IntN(3) > 0 {
		pair[0].Settle(unit, used)
		pair[1].Settle(unit, used)
	}
	pair[0].Exit()
	pair[1].Exit()
	return slices.Delete(open, i, i+1)
}

func refusalOf(t *testing.T, err error) *core.BlockError {
	var block *core.BlockError
	require.ErrorAs(t, err, &block)
	return block
}

func shownOf(key []any) string {
	var texts []string
	for _, part := range key {
		texts = append(texts, argument.Of(part).String())
	}
	return strings.Join(texts, ", ")
}

func (g *keyGame) exit() {
	if len(g.open) > 0 {
		g.open = exitPair(g.r, g.open, g.rule.Unit)
	}
}

// A key gets what the text of its parts gets in a rule about one value: the same verdicts, waits, times
// to retry and amounts left, with every metric and behavior, across reloads, with settled costs, and
// whatever exceptions match it.
func TestKeysGetWhatTheirTextsGet(t *testing.T) {
	r := random(t)
	calls, blocked, starred := 0, 0, 0
	for range figure.Size(400, 400, 5_000, 50_000) {
		g := newKeyGame(t, r)
		for range 150 {
			g.step(t)
		}
		for len(g.open) > 0 {
			g.exit()
		}
		calls, blocked, starred = calls+g.calls, blocked+g.blocked, starred+g.starred
	}
	t.Log(calls, "calls,", blocked, "blocked,", starred, "under an exception with a star")
	assert.Greater(t, blocked, calls/10)
	assert.Greater(t, starred, calls/20)
}

func newKeyGame(t *testing.T, r *rand.Rand) *keyGame {
	g := &keyGame{r: r, seen: make(map[string][]any)}
	rule := hotspot.Rule{ID: "r", Keys: [][]string{
		{"param tenant", "origin", "resource"}, {"param tenant", "origin"}, {"origin", "param tenant"}, {"param tenant", "param user"},
		{"arg 1", "param tenant"}, {"resource", "arg -1"}, {"origin"}, {"param tenant"}, {"arg 1"},
	}[r.IntN(9)]}
	rule.Missing = hotspot.Missing(r.IntN(4))
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
	keys := [][]any{{}}
	for _, part := range rule.Keys {
		var longer [][]any
		for _, key := range keys {
			for _, v := range append(map[string][]any{"origin": {"app"}, "resource": {"orders"}}[part], partValues...) {
				longer = append(longer, append(slices.Clone(key), v))
			}
		}
		keys = longer
	}
	for _, key := range keys {
		g.seen[textOf(key)] = key
	}
	g.rule = rule
	g.draw()
	g.load(t)
	return g
}

func (g *keyGame) step(t *testing.T) {
	switch n := g.r.IntN(40); {
	case n == 0:
		g.draw()
		g.load(t)
	case n < 8:
		g.now += time.Duration(g.r.Int64N(int64(400 * ms)))
		g.keys.at(g.now)
		g.twin.at(g.now)
	case n < 14:
		g.exit()
	default:
		g.enter(t)
	}
}
