package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every scenario runs, and is measured against one that there is.
func TestScenarios(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			if s.of != "" {
				require.NotNil(t, find(s.of))
			}
			s.setup()(3)
		})
	}
}

func TestOver(t *testing.T) {
	s := &scenario{name: "a", of: "b", most: 2}
	assert.False(t, s.over(map[string]float64{"a": 2, "b": 1}))
	assert.True(t, s.over(map[string]float64{"a": 2.1, "b": 1}))
	first := &scenario{name: "b"}
	assert.False(t, first.over(map[string]float64{"b": 1}))
}

func TestMeasureFindsTheSlowerOne(t *testing.T) {
	run := make([]func(int), len(scenarios))
	for i := range run {
		run[i] = func(n int) {
			for range n * (1 + i*i) {
				find(scenarios[0].name)
			}
		}
	}
	cost := measure(run)
	assert.Greater(t, cost[scenarios[len(run)-1].name], cost[scenarios[0].name])
}
