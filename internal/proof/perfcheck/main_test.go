package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
)

func TestOver(t *testing.T) {
	s := &scenario{name: "a", of: "b", most: 2}
	assert.False(t, s.over(map[string]float64{"a": 2, "b": 1}))
	assert.True(t, s.over(map[string]float64{"a": 2.1, "b": 1}))
	first := &scenario{name: "b"}
	assert.False(t, first.over(map[string]float64{"b": 1}))
}

// The second family refuses, and the first one takes nothing.
func TestBlockedBySecond(t *testing.T) {
	_, err := calls{rules: twoFamilies(0)}.guard().Entry(t.Context(), hot)
	var b *core.BlockError
	require.ErrorAs(t, err, &b)
	assert.Equal(t, core.KindIsolation, b.Kind)
}

func TestExceeds(t *testing.T) {
	s := &scenario{instructions: 1000}
	assert.False(t, s.exceeds(1030))
	assert.True(t, s.exceeds(1031))
	assert.Contains(t, s.verdict(1031), "FAIL")
	assert.Empty(t, s.verdict(970))
	assert.Contains(t, s.verdict(969), "lower the figure")
}

// A missing count is not a cost of 0.
func TestCollected(t *testing.T) {
	n, err := collected([]byte("==7== Events    : Ir\n==7== Collected : 7697000\n"))
	require.NoError(t, err)
	assert.Equal(t, 7697000, n)
	for _, out := range []string{"", "Collected : 0", "valgrind: failed to start"} {
		_, err := collected([]byte(out))
		assert.Error(t, err, out)
	}
}
