package measure

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Of a case whose core somebody shared half of the time, the other half counts.
func TestCalmRoundsCount(t *testing.T) {
	r := new(runner)
	for i := range 40 {
		calm := float64(i % 2)
		r.rounds = append(r.rounds, taken{ns: 150 - 50*calm, ratio: 3 - calm, control: 140 - 40*calm})
	}
	longest := calmest([]*runner{r})
	assert.InDelta(t, 101, longest, 1e-9)
	assert.Equal(t, 20, r.calm(longest))
	got := r.result(longest)
	assert.Equal(t, Spread{100, 100, 100, 100}, got.NS)
	assert.Equal(t, Spread{2, 2, 2, 2}, got.Ratio)
	assert.InDelta(t, 0.5, got.Calm, 1e-9)
	assert.Len(t, got.rounds, 40, "to be taken off, round by round")
	assert.Equal(t, []float64{150, 100}, got.rounds[:2], "in their order")
}

// Where too few are calm, the calmest count.
func TestCalmestRoundsCount(t *testing.T) {
	r := new(runner)
	for i := range 30 {
		r.rounds = append(r.rounds, taken{ns: float64(i), control: 100 + float64(2*i)})
	}
	got := r.result(101)
	assert.InDelta(t, 1.0/30, got.Calm, 1e-9)
	assert.Equal(t, Spread{0.9, 2.25, 4.5, 6.75}, got.NS, "of ten")
	assert.Equal(t, 1, r.calm(101))
}

// More rounds are made of a case that has too few calm ones, and no more than told.
func TestMoreRoundsWhereFewAreCalm(t *testing.T) {
	batches := 0
	results := Run(Plan{Rounds: 2, Most: 5}, []Case{{Calls: 1, Call: func(int, int) { batches++ }}})
	assert.Len(t, results[0].rounds, 5)
	assert.Equal(t, 6, batches, "one to get warm")
}
