package argument_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/proof/chance"
)

func tupleOf(parts ...any) argument.Tuple {
	var t argument.Tuple
	for _, part := range parts {
		t = t.With(argument.Of(part))
	}
	return t
}

func TestTuples(t *testing.T) {
	v := tupleOf("acme", 7, true, 1.5).Value()
	assert.Equal(t, `"acme", 7, true, 1.5`, v.String())
	assert.Equal(t, []argument.Value{argument.Of("acme"), argument.Of(7), argument.Of(true), argument.Of(1.5)}, v.Parts())
	assert.Equal(t, []argument.Value{argument.Of(7)}, argument.Of(7).Parts())
	assert.Equal(t, v, argument.Of(v))
	assert.Equal(t, v, v.Clone())
	assert.Equal(t, v.Hash(), tupleOf("acme", 7, true, 1.5).Hash())
	assert.True(t, tupleOf("acme", 7, true, 1.5).Is(v))
	assert.False(t, tupleOf("acme", 7, true).Is(v))
	assert.False(t, tupleOf("acme").Is(argument.Of("acme")))
	assert.Nil(t, v.Scalar())
	assert.Equal(t, tupleOf("acme", nil, true, nil), argument.Tuple(nil).WithParts(v, 0b101))

	assert.False(t, v.IsEmpty())
	assert.True(t, tupleOf("acme", "").Value().IsEmpty())
	assert.True(t, argument.Of("").IsEmpty())
	assert.False(t, tupleOf("acme", 0, nil, false).Value().IsEmpty(), "neither 0 nor none is empty text")
}

// No part can pass for two parts, for a part of another kind, or for the end of a tuple, not even one
// made of the bytes that tuples consist of: neither here nor in the keys of a cluster.
func TestTuplesCantBeForged(t *testing.T) {
	r := chance.Source(t)
	parts := []any{"", "\x00", "\x05", "\x05\x01", ",", `"`, `", "`, "a", "b", "a, b", strings.Repeat("x", 64), strings.Repeat("x", 65), 0, 5, 7, "7", 7.0, true, "true", math.NaN(), uint64(math.MaxUint64), -1}
	seen := make(map[string][]any) // by the key of a cluster
	values := make(map[argument.Value]string)
	add := func(all []any) (v argument.Value) {
		v = tupleOf(all...).Value()
		readable := v.String()
		if before, ok := values[v]; ok {
			assert.Equal(t, before, readable)
		}
		values[v] = readable
		if before, ok := seen[v.Key()]; ok {
			assert.Equal(t, tupleOf(before...), tupleOf(all...), "%v and %v have one key", before, all)
		}
		seen[v.Key()] = all
		assert.NotEqual(t, v, argument.Of(string(tupleOf(all...))), "text with the bytes of a tuple")
		assert.NotEqual(t, v.Key(), argument.Of(string(tupleOf(all...))).Key())
		assert.NotEqual(t, v.Key(), argument.Of(v.Key()).Key())
		return v
	}
	for range 20_000 {
		all := make([]any, 1+r.IntN(4))
		for i := range all {
			all[i] = parts[r.IntN(len(parts))]
		}
		v := add(all)
		// The bytes of the tuple, or a piece of its key, become a part of another.
		for _, text := range []string{string(tupleOf(all...)), v.Key()} {
			from := r.IntN(len(text) + 1)
			if piece := text[from : from+r.IntN(len(text)+1-from)]; len(piece) <= argument.MaxText && len(parts) < 300 {
				parts = append(parts, piece)
			}
		}
	}
	byText := make(map[string]argument.Value)
	for v, text := range values {
		if before, ok := byText[text]; ok {
			assert.Equal(t, before, v, "shown alike: %s", text)
		}
		byText[text] = v
	}
}

func TestTuplesAllocateNothing(t *testing.T) {
	origin, v := "mobile-app", tupleOf("mobile-app", 7).Value()
	buffer, masked := make(argument.Tuple, 0, 100), make(argument.Tuple, 0, 100)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		built := buffer.With(argument.Of(origin)).With(argument.Int(7))
		if !built.Is(v) || built.Hash() != v.Hash() || len(masked.WithParts(v, 1)) == 0 {
			t.Error("another value")
		}
	}))
}
