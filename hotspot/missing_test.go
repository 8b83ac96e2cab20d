package hotspot_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// shapes are rules of each kind, with the options that give a call a value.
var shapes = []struct {
	name string
	rule hotspot.Rule
	call func(v any) engine.Option
}{
	{"an attachment", hotspot.Rule{Param: "user"}, asParam},
	{"an argument", hotspot.Rule{Index: hotspot.At(0)}, asArgument},
	{"tokens", hotspot.Rule{Param: "user", Behavior: hotspot.TokenBucket}, asParam},
	{"turns", hotspot.Rule{Param: "user", Behavior: hotspot.Throttle, MaxWait: 1}, asParam},
	{"in flight", hotspot.Rule{Param: "user", Metric: hotspot.Concurrency}, asParam},
}

func asParam(v any) engine.Option    { return engine.Param("user", v) }
func asArgument(v any) engine.Option { return engine.Args(v) }

// A rule decides what a call without the value means: one that doesn't attach it, or attaches nil,
// an empty list or empty text, in any form.
func TestMissing(t *testing.T) {
	type name string
	for _, shape := range shapes {
		for what, nothing := range map[string]struct {
			opts []engine.Option
			text bool // a value, unless the rule sets Missing
		}{
			"absent":     {nil, false},
			"nil":        {[]engine.Option{shape.call(nil)}, false},
			"no list":    {[]engine.Option{shape.call([]string{})}, false},
			"text":       {[]engine.Option{shape.call("")}, true},
			"named text": {[]engine.Option{shape.call(name(""))}, true},
			"bytes":      {[]engine.Option{shape.call([]byte{})}, true},
			"a list":     {[]engine.Option{shape.call([]string{""})}, true},
			"a pointer":  {[]engine.Option{shape.call(new(string))}, true},
		} {
			for missing, want := range map[hotspot.Missing]int64{ // passed calls of 3
				hotspot.MissingNone: 0, hotspot.MissingUnlimited: 0, hotspot.MissingShared: 2, hotspot.MissingRefuse: 3,
			} {
				if missing == hotspot.MissingNone && nothing.text {
					want = 2
				}
				for _, mode := range []spec.Mode{spec.Enforce, spec.Shadow} {
					for among := 1; among <= 2; among++ { // with a second rule, calls are asked before they take
						rule := shape.rule
						rule.ID, rule.Threshold, rule.Mode, rule.Missing = "r", 1, mode, missing
						rules := []hotspot.Rule{rule, {ID: "beside", Param: "tenant", Threshold: 1}}
						g := newGuard(t, rules[:among]...)
						for range 3 { // open calls count under a concurrency rule
							e, _ := g.enter(nothing.opts...)
							defer e.Exit()
						}
						f := g.figures("r")
						assert.Equal(t, want, f.Refused+f.ShadowBlocked, "%s, %s, %v, %v, %d", shape.name, what, missing, mode, among)
					}
				}
			}
		}
	}
}

// A call with a value gets that value's limit, regardless of what the rule does with calls without
// one. For a list with a missing value, the values that it has decide.
func TestMissingBesideValues(t *testing.T) {
	for _, shape := range shapes {
		for missing, want := range map[hotspot.Missing]string{
			hotspot.MissingNone: "pass, block, block", hotspot.MissingUnlimited: "pass, block, pass",
			hotspot.MissingShared: "pass, block, block", hotspot.MissingRefuse: "pass, block, block",
		} {
			rule := shape.rule
			rule.ID, rule.Threshold, rule.Missing = "r", 1, missing
			g := newGuard(t, rule)
			var got []string
			for _, v := range []any{"ann", "ann", []string{"", "bob", ""}} {
				if v, ok := v.([]string); ok && missing != hotspot.MissingRefuse {
					e, _ := g.enter(shape.call(v[0])) // its limit is used up
					defer e.Exit()
				}
				e, err := g.enter(shape.call(v))
				defer e.Exit()
				got = append(got, map[bool]string{true: "pass", false: "block"}[err == nil])
			}
			assert.Equal(t, want, strings.Join(got, ", "), "%s, %v", shape.name, missing)
		}
	}
}

// A rule whose Missing changes keeps its other values.
func TestMissingAfterAReload(t *testing.T) {
	rule := hotspot.Rule{ID: "r", Param: "user", Threshold: 1}
	g := newGuard(t, rule)
	load := func(missing hotspot.Missing) {
		rule.Missing = missing
		g.load(rule)
	}
	assert.Equal(t, "pass, block", g.outcomes(2, user("")))
	assert.Equal(t, "pass, block", g.outcomes(2, user("ann")))
	load(hotspot.MissingUnlimited)
	assert.Equal(t, "pass x2", g.outcomes(2, user("")))
	assert.Equal(t, "block", g.outcomes(1, user("ann")))
	load(hotspot.MissingShared)
	assert.Equal(t, "block", g.outcomes(1, user("")), "it was not refilled in the meantime")
	assert.Equal(t, "block", g.outcomes(1))
	load(hotspot.MissingRefuse)
	g.clock.Advance(3 * rule.Interval)
	assert.Equal(t, "block", g.outcomes(1))
	load(hotspot.MissingNone)
	assert.Equal(t, "pass", g.outcomes(1))
}

// Calls without a value may have their own limit.
func TestMissingWithAnException(t *testing.T) {
	rule := hotspot.Rule{ID: "r", Param: "user", Threshold: 1, Missing: hotspot.MissingShared,
		Exceptions: []hotspot.Exception{{Value: hotspot.ValueOf(""), Threshold: 3}}}
	g := newGuard(t, rule)
	assert.Equal(t, "pass x3, block", g.outcomes(4))
	for _, missing := range []hotspot.Missing{hotspot.MissingUnlimited, hotspot.MissingRefuse, 9} {
		rule.Missing, rule.Resource = missing, "orders"
		_, err := rule.Normalized()
		assert.Error(t, err, "%v", missing)
	}
}

// Explain says in words what the call would get.
func TestMissingExplained(t *testing.T) {
	rule := hotspot.Rule{ID: "r", Param: "user", Threshold: 1, Missing: hotspot.MissingRefuse}
	g := newGuard(t, rule)
	x, err := g.Explain(t.Context(), "orders", nil)
	require.NoError(t, err)
	require.Len(t, x.Rules, 1)
	assert.Equal(t, core.Refused, x.Rules[0].Outcome)
	assert.Equal(t, `the call has no value for "user"; the rule refuses such calls`, x.Rules[0].Why)
}

// The log reports once that a rule found no value in its first hundred calls, regardless of what it
// does with them.
func TestLogOfMissingValues(t *testing.T) {
	for _, shape := range shapes {
		for _, missing := range []hotspot.Missing{hotspot.MissingNone, hotspot.MissingUnlimited, hotspot.MissingShared, hotspot.MissingRefuse} {
			for _, mode := range []spec.Mode{spec.Enforce, spec.Shadow} {
				for among := 1; among <= 2; among++ {
					name := fmt.Sprint(shape.name, ", ", missing, ", ", mode, ", ", among)
					var text bytes.Buffer
					e, clock := trial.Engine(t, engine.Config{Logger: slog.New(slog.NewTextHandler(&text, nil))})
					clock.SetSleep(clocks.SleepRecord)
					g := &guard{e, t, clock}
					rule := shape.rule
					rule.Threshold, rule.Missing, rule.Mode = 1, missing, mode
					load := func(id string) {
						rule.ID = id
						rules := []hotspot.Rule{rule, {ID: "beside", Param: "tenant", Threshold: 1}}
						g.load(rules[:among]...)
					}
					lines := func(id string) int {
						return strings.Count(text.String(), "no value in its first 100 calls\" rule="+id+" ")
					}
					call := func(n int, opts ...engine.Option) {
						for range n {
							if e, err := g.enter(opts...); err == nil {
								e.Exit()
							}
						}
					}
					load("r")
					call(99)
					assert.Zero(t, lines("r"), name)
					call(1)
					assert.Equal(t, 1, lines("r"), name)
					call(300)
					rule.Threshold = 2
					load("r")
					call(300)
					assert.Equal(t, 1, lines("r"), "%s: once", name)

					load("s")
					call(50)
					call(1, shape.call("ann"))
					call(300)
					assert.Zero(t, lines("s"), "%s: one call had a value", name)
				}
			}
		}
	}
}
