package core_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
)

type pair struct{ A, B any }

// known bug 86: nothing that a caller can pass makes it panic, and what is equal stays so.
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
			core.Param("p", make())
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
	type seen struct{ first, last, user []core.Occurrence }
	var got seen
	copied := func(o []core.Occurrence) []core.Occurrence { return append([]core.Occurrence(nil), o...) }
	spy := &fake{name: "spy", ask: func(inv *core.Invocation) core.Verdict {
		got = seen{copied(inv.ArgValues(0)), copied(inv.ArgValues(-1)), copied(inv.ParamValues("user"))}
		return core.Verdict{}
	}}
	e, _ := newEngine(t, core.Config{Chain: core.NewChain(spy)})
	one := func(v any) []core.Occurrence { return []core.Occurrence{{Value: argument.Of(v), Times: 1}} }
	many := make([]int, 40)
	for i := range many {
		many[i] = i % 20
	}
	for _, tt := range []struct {
		opts []core.Option
		want seen
	}{
		{nil, seen{}},
		{[]core.Option{core.Args("a")}, seen{first: one("a"), last: one("a")}},
		{[]core.Option{core.Args("a", nil)}, seen{first: one("a")}},
		{[]core.Option{core.Args([]any{"a", nil, "a"}, 7)}, seen{first: []core.Occurrence{{Value: argument.Of("a"), Times: 2}}, last: one(7)}},
		{[]core.Option{core.Param("user", 1), core.Param("item", 2), core.Param("user", uint8(1))}, seen{user: []core.Occurrence{{Value: argument.Of(1), Times: 2}}}},
		{[]core.Option{core.Param("user", []byte("ann"))}, seen{user: one("ann")}},
		{[]core.Option{core.Param[any]("user", nil)}, seen{}},
	} {
		enter(t, e, t.Context(), tt.opts...).Exit()
		assert.Equal(t, tt.want, got)
	}
	enter(t, e, t.Context(), core.Param("user", many)).Exit()
	assert.Len(t, got.user, 20)
	for i, o := range got.user {
		assert.Equal(t, core.Occurrence{Value: argument.Of(i), Times: 2}, o)
	}
}
