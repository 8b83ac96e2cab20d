package core_test

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
)

type (
	userID  string
	number  int32
	pair    struct{ A, B any }
	listed  struct{ L []string }
	knotted struct{ Next *knotted }
)

func TestValuesAreEqualIfTheyAreWorthTheSame(t *testing.T) {
	seven, text := 7, "7"
	p := &seven
	loop := &knotted{}
	loop.Next = loop
	m := map[string]int{"a": 1}
	for _, tt := range []struct {
		same []any
		show string
	}{
		{[]any{7, int8(7), int16(7), int32(7), int64(7), uint(7), uint8(7), uint16(7), uint32(7), uint64(7), uintptr(7), number(7), &seven, &p, core.ValueOf(7)}, "7"},
		{[]any{-7, int8(-7), number(-7)}, "-7"},
		{[]any{uint64(math.MaxUint64)}, "18446744073709551615"},
		{[]any{7.0, float32(7)}, "7.0"},
		{[]any{1.5, float32(1.5)}, "1.5"},
		{[]any{0.0, math.Copysign(0, -1)}, "0.0"},
		{[]any{math.NaN(), float32(math.NaN()), -math.NaN(), math.Float64frombits(0x7ff8000000000123)}, "NaN"},
		{[]any{math.Inf(1)}, "+Inf"},
		{[]any{true}, "true"},
		{[]any{false}, "false"},
		{[]any{"7", userID("7"), &text, []byte("7")}, `"7"`},
		{[]any{"", []byte{}}, `""`},
		{[]any{"true"}, `"true"`},
		{[]any{strings.Repeat("x", 64), userID(strings.Repeat("x", 64))}, `"` + strings.Repeat("x", 64) + `"`},
		{[]any{strings.Repeat("x", 65), []byte(strings.Repeat("x", 65))}, ""},
		{[]any{strings.Repeat("x", 1<<20)}, ""},
		{[]any{strings.Repeat("x", 1<<20-1) + "y"}, ""},
		{[]any{pair{1, "a"}, pair{1, "a"}}, ""},
		{[]any{pair{math.NaN(), nil}, pair{math.NaN(), nil}}, ""},
		{[]any{pair{"a", 1}}, ""},
		{[]any{pair{[]any{1}, nil}, pair{[]any{1}, nil}}, ""},
		{[]any{listed{[]string{"a", "b"}}, listed{[]string{"a", "b"}}}, ""},
		{[]any{listed{[]string{"ab", ""}}}, ""},
		{[]any{[16]byte{1}, [16]byte{1}}, ""},
		{[]any{[16]byte{2}}, ""},
		{[]any{netip.MustParseAddr("::1"), netip.MustParseAddr("::1")}, ""},
		{[]any{netip.MustParseAddr("::2")}, ""},
		{[]any{complex(1, 2), complex(1, 2)}, ""},
		{[]any{loop}, ""},
		{[]any{&pair{}}, ""},
		{[]any{m, m}, ""},
		{[]any{t.Fail}, ""},
		{[]any{make(chan int)}, ""},
		{[]any{nil, (*int)(nil), (**int)(nil), (*string)(nil), []byte(nil), map[string]int(nil), (chan int)(nil), (func())(nil), error(nil), core.Value{}}, "none"},
	} {
		first := core.ValueOf(tt.same[0])
		for i, v := range tt.same {
			assert.Equal(t, first, core.ValueOf(v), "%T and %T", tt.same[0], v)
			assert.Equal(t, first.Hash(), core.ValueOf(v).Hash(), "number %d", i)
			assert.Equal(t, first, core.ValueOf(v).Clone())
		}
		if tt.show != "" {
			assert.Equal(t, tt.show, first.String())
		}
		seen := valuesSeen[first]
		assert.Empty(t, seen, "%v is equal to it", tt.same[0])
		valuesSeen[first] = fmt.Sprintf("%T", tt.same[0])
		assert.Less(t, len(first.String()), 200)
	}
}

var valuesSeen = map[core.Value]string{}

// museum 86: nothing that a caller can pass makes it panic, and what is equal stays so.
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
			v, again := core.ValueOf(make()), core.ValueOf(make())
			if v != again || v.Hash() != again.Hash() || v.String() != again.String() {
				t.Errorf("%#v: %v, then %v", make(), v, again)
			}
			core.Param("p", make())
			if scalar := v.Scalar(); scalar != nil && core.ValueOf(scalar) != v {
				t.Errorf("%v becomes %v", v, core.ValueOf(scalar))
			}
		}
	})
}

func TestWhatIsDeepOrLargeIsStillOneValue(t *testing.T) {
	deep := any(0)
	for range 10_000 {
		deep = []any{deep}
	}
	assert.Equal(t, core.ValueOf(pair{deep, 1}), core.ValueOf(pair{deep, 1}))
	assert.Equal(t, core.ValueOf([1000]int{}), core.ValueOf([1000]int{}))
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
	one := func(v any) []core.Occurrence { return []core.Occurrence{{Value: core.ValueOf(v), Times: 1}} }
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
		{[]core.Option{core.Args([]any{"a", nil, "a"}, 7)}, seen{first: []core.Occurrence{{Value: core.ValueOf("a"), Times: 2}}, last: one(7)}},
		{[]core.Option{core.Param("user", 1), core.Param("item", 2), core.Param("user", uint8(1))}, seen{user: []core.Occurrence{{Value: core.ValueOf(1), Times: 2}}}},
		{[]core.Option{core.Param("user", []byte("ann"))}, seen{user: one("ann")}},
		{[]core.Option{core.Param[any]("user", nil)}, seen{}},
	} {
		enter(t, e, t.Context(), tt.opts...).Exit()
		assert.Equal(t, tt.want, got)
	}
	enter(t, e, t.Context(), core.Param("user", many)).Exit()
	assert.Len(t, got.user, 20)
	for i, o := range got.user {
		assert.Equal(t, core.Occurrence{Value: core.ValueOf(i), Times: 2}, o)
	}
}
