package engine_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/engine"
)

type pair struct{ A, B any }

// known bug 86: no value that a caller can pass causes a panic, and equal values stay equal.
func FuzzValueOf(f *testing.F) {
	f.Add("a", int64(1), 1.5, []byte{1}, true)
	f.Add("", int64(math.MinInt64), math.NaN(), []byte(nil), false)
	f.Fuzz(func(t *testing.T, s string, n int64, x float64, b []byte, flag bool) {
		shared := &s
		for _, make := range []func() any{
			func() any { return s },
			func() any { return n },
			func() any { return x },
			func() any { return b },
			func() any { return flag },
			func() any { return &shared },
			func() any { return pair{s, n} },
			func() any { return pair{x, pair{b, flag}} },
			func() any { return [3]any{s, n, x} },
			func() any { return []any{s, []any{b, []any{x}}} },
			func() any { return struct{ m map[string]any }{nil} },
			func() any { return struct{ f func() }{} },
			func() any { return complex(x, x) },
		} {
			v, again := argument.Of(make()), argument.Of(make())
			if v != again || v.Hash() != again.Hash() || v.String() != again.String() {
				t.Errorf("%#v: %v, then %v", make(), v, again)
			}
			engine.Param("p", make())
			if scalar := v.Scalar(); scalar != nil && argument.Of(scalar) != v {
				t.Errorf("%v becomes %v", v, argument.Of(scalar))
			}
		}
	})
}

func TestWhatIsDeepOrLargeIsStillOneValue(t *testing.T) {
	deep := any(0)
	for range 10_000 {
		deep = []any{deep}
	}
	assert.Equal(t, argument.Of(pair{deep, 1}), argument.Of(pair{deep, 1}))
	assert.Equal(t, argument.Of([1000]int{}), argument.Of([1000]int{}))
}

func TestOccurrences(t *testing.T) {
	type seen struct{ first, last, user []engine.Occurrence }
	var got seen
	copied := func(o []engine.Occurrence) []engine.Occurrence { return append([]engine.Occurrence(nil), o...) }
	spy := &fake{name: "spy", ask: func(inv *engine.Invocation) engine.Verdict {
		got = seen{copied(inv.ArgValues(0)), copied(inv.ArgValues(-1)), copied(inv.ParamValues("user"))}
		return engine.Verdict{}
	}}
	e, _ := newEngine(t, engine.Config{Chain: engine.NewChain(spy)})
	one := func(v any) []engine.Occurrence { return []engine.Occurrence{{Value: argument.Of(v), Times: 1}} }
	many := make([]int, 40)
	for i := range many {
		many[i] = i % 20
	}
	for _, tt := range []struct {
		opts []engine.Option
		want seen
	}{
		{nil, seen{}},
		{[]engine.Option{engine.Args("a")}, seen{first: one("a"), last: one("a")}},
		{[]engine.Option{engine.Args("a", nil)}, seen{first: one("a")}},
		{[]engine.Option{engine.Args([]any{"a", nil, "a"}, 7)}, seen{first: []engine.Occurrence{{Value: argument.Of("a"), Times: 2}}, last: one(7)}},
		{[]engine.Option{engine.Param("user", 1), engine.Param("item", 2), engine.Param("user", uint8(1))}, seen{user: []engine.Occurrence{{Value: argument.Of(1), Times: 2}}}},
		{[]engine.Option{engine.Param("user", []byte("ann"))}, seen{user: one("ann")}},
		{[]engine.Option{engine.Param[any]("user", nil)}, seen{}},
	} {
		enter(t, e, t.Context(), tt.opts...).Exit()
		assert.Equal(t, tt.want, got)
	}
	enter(t, e, t.Context(), engine.Param("user", many)).Exit()
	assert.Len(t, got.user, 20)
	for i, o := range got.user {
		assert.Equal(t, engine.Occurrence{Value: argument.Of(i), Times: 2}, o)
	}
}
