package inspect_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/outlier"
)

func (l *lab) breakers(breakers []breaker.Rule, outliers ...outlier.Rule) {
	l.t.Helper()
	require.NoError(l.t, l.Update(func(b *engine.SnapshotBuilder) error {
		return errors.Join(breaker.Compile(b, breakers), outlier.Compile(b, outliers))
	}))
}

func (l *lab) fail(resource string, opts ...engine.Option) {
	l.t.Helper()
	e := l.enter(anywhere, resource, opts...)
	e.Fail(errors.New("x"))
	e.Exit()
}

func (l *lab) text() string {
	l.t.Helper()
	var text strings.Builder
	require.NoError(l.t, l.tree().WriteText(&text))
	return text.String()
}

// The states of breakers are in the text, next to the calls and below the tree, and in the JSON of
// their resource.
func TestTreeTellsTheStatesOfBreakers(t *testing.T) {
	l := newLab(t, engine.Config{})
	l.breakers([]breaker.Rule{
		{ID: "b", Resource: "o.*", Match: spec.MatchRegex, MinCalls: 2, Interval: time.Second, Recovery: 5 * time.Second},
		{ID: "try", Resource: "idle", MinCalls: 1, Recovery: time.Second, Mode: spec.Shadow},
	})
	l.call(anywhere, 1, 0, "orbit")
	l.call(anywhere, 1, 0, "orders")
	require.NotRegexp(t, `breaker (open|rule b)`, l.text(), "all are closed")
	l.fail("orders")
	l.fail("idle")
	l.clock.Advance(1500 * time.Millisecond)

	text := l.text()
	require.Regexp(t, `(?m)─ orders +.*  breaker open$`, text)
	require.Regexp(t, `(?m)─ orbit .* 0$`, text)
	require.Regexp(t, `(?m)─ idle .* 0$`, text, "nobody is refused there")
	require.Contains(t, text, "\nbreaker rule b: orders open for 1.5s, next probe in 3.5s\n")
	require.Contains(t, text, "\nshadow breaker rule try: idle open for 1.5s, the next call is a probe\n")

	tree := l.tree()
	data, err := json.Marshal(tree)
	require.NoError(t, err)
	var got jsonTree
	decode(t, data, &got)
	require.Equal(t, map[string]int{"open": 1, "closed": 1}, got.Rules[0].Details.States)
	orders, ok := tree.Resource("orders")
	require.True(t, ok)
	require.Equal(t, []core.ResourceDetails{&breaker.Status{
		Kind: core.KindBreaker, Rule: "b", Resource: "orders", State: breaker.Open, Since: start, RetryAt: start.Add(5 * time.Second),
		Why: "share of failed calls in 1s: 0.5, threshold 0", Trip: breaker.Trip{At: start, Value: 0.5, Calls: 2, Bad: 1},
	}}, orders.Details)
	for _, n := range got.Resources {
		switch n.Name {
		case "orbit":
			require.Equal(t, []jsonBreaker{{Kind: "breaker", Rule: "b", Resource: "orbit", Mode: "enforce", State: "closed"}}, n.Details)
		case "orders":
			require.Equal(t, []jsonBreaker{{
				Kind: "breaker", Rule: "b", Resource: "orders", Mode: "enforce", State: "open",
				Since: start, RetryAt: start.Add(5 * time.Second),
				Why: "share of failed calls in 1s: 0.5, threshold 0", Trip: breaker.Trip{At: start, Value: 0.5, Calls: 2, Bad: 1},
			}}, n.Details)
		case "idle":
			require.Equal(t, []jsonBreaker{{
				Kind: "breaker", Rule: "try", Resource: "idle", Mode: "shadow", State: "open",
				Since: start, RetryAt: start.Add(time.Second),
				Why: "share of failed calls in 10s: 1, threshold 0", Trip: breaker.Trip{At: start, Value: 1, Calls: 1, Bad: 1},
			}}, n.Details)
		}
	}

	l.clock.Advance(4 * time.Second)
	probe := l.enter(anywhere, "orders")
	require.Contains(t, l.text(), "\nbreaker rule b: orders halfOpen for 0ms, 1 probes in flight\n")
	probe.Exit()
	require.NotContains(t, l.text(), "breaker rule b")
}

func TestTreeTellsWhoIsEjected(t *testing.T) {
	l := newLab(t, engine.Config{})
	l.breakers(nil, outlier.Rule{ID: "o", Resource: "orders", MinCalls: 1, MaxEndpoints: 10, MaxEjected: 1, Interval: time.Minute})
	for addr := range strings.FieldsSeq("a b c d e f") {
		e := l.enter(anywhere, "orders", engine.Endpoint(addr))
		e.Exit()
	}
	require.NotContains(t, l.text(), "outlier")
	for addr := range strings.FieldsSeq("b c d e f") {
		l.fail("orders", engine.Endpoint(addr))
	}
	l.clock.Advance(time.Second)
	text := l.text()
	require.Contains(t, text, "\noutlier rule o: 6 endpoints; b of orders open for 1s, next probe in 4s; c of orders open for 1s, next probe in 4s; d of orders open for 1s, next probe in 4s; and 2 more\n")
	require.NotContains(t, text, "breaker")
	orders, ok := l.tree().Resource("orders")
	require.True(t, ok)
	require.Len(t, orders.Details, 5)

	for addr := range strings.FieldsSeq("g h i j k k") {
		e := l.enter(anywhere, "orders", engine.Endpoint(addr))
		e.Exit()
	}
	require.Contains(t, l.text(), "\noutlier rule o: 10 endpoints, 2 calls to others were not tracked; b of ")
	data, err := json.Marshal(l.tree())
	require.NoError(t, err)
	var got jsonTree
	decode(t, data, &got)
	require.Equal(t, jsonBreaker{
		Kind: "outlier", Rule: "o", Resource: "orders", Endpoint: "b", Mode: "enforce", State: "open",
		Since: start, RetryAt: start.Add(5 * time.Second),
		Why: "share of failed calls in 1m0s: 0.5, threshold 0", Trip: breaker.Trip{At: start, Value: 0.5, Calls: 2, Bad: 1},
	}, got.Resources[0].Details[0])
	require.Equal(t, jsonDetails{Endpoints: 10, NotJudged: 2, States: map[string]int{"open": 5}}, got.Rules[0].Details)
}

// An endpoint may have any name.
func TestHostileEndpoints(t *testing.T) {
	l := newLab(t, engine.Config{})
	l.breakers(nil, outlier.Rule{ID: "o", Resource: "orders", MinCalls: 1})
	l.call(anywhere, 1, 0, "orders", engine.Endpoint("a"))
	l.fail("orders", engine.Endpoint("b\n\x1b[31m\u2028"+strings.Repeat("x", 400)))
	text := l.text()
	require.Equal(t, 1, strings.Count(text, "outlier rule o"))
	for line := range strings.Lines(text) {
		require.Less(t, len(line), 200)
		require.NotContains(t, line, "\x1b")
		require.NotContains(t, line, "\u2028")
	}
}
