package argument_test

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core/argument"
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
		{[]any{7, int8(7), int16(7), int32(7), int64(7), uint(7), uint8(7), uint16(7), uint32(7), uint64(7), uintptr(7), number(7), &seven, &p, argument.Of(7)}, "7"},
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
		{[]any{nil, (*int)(nil), (**int)(nil), (*string)(nil), []byte(nil), map[string]int(nil), (chan int)(nil), (func())(nil), error(nil), argument.Value{}}, "none"},
	} {
		first := argument.Of(tt.same[0])
		for i, v := range tt.same {
			assert.Equal(t, first, argument.Of(v), "%T and %T", tt.same[0], v)
			assert.Equal(t, first.Hash(), argument.Of(v).Hash(), "number %d", i)
			assert.Equal(t, first, argument.Of(v).Clone())
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

var valuesSeen = map[argument.Value]string{}
