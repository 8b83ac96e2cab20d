package adaptive_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/race"
)

// There are few calls, and their durations are long and varied. When its time is up, a round uses the few
// calls that it has. A round takes minutes, and several rounds find the knee, whether the limit is
// too high by half or by more. At the knee the limit varies by one call, which is a large share of
// so small a limit. Of 500 stretches of twenty minutes, 7 had a mean more than a tenth off, none a
// mean off by a call and a half, and the mean of them all was off by less than a hundredth.
func TestFewCalls(t *testing.T) {
	const (
		before  = 20 * time.Minute // from twice the knee, found in less than 13 minutes on 250 seeds
		watched = int(20 * time.Minute / stretch)
	)
	// Less than one seed in a thousand has more: the fewer stretches, the more may be off.
	share := float64(figure.Size(20, 20, 12, 5)) / 100
	all := float64(figure.Size(75, 75, 25, 15)) / 1000
	p := plant{8, time.Second}
	sum := map[int]float64{}
	runs, off := 0, 0
	many := figure.Size(6, 6, 40, 250)
	if race.Enabled {
		many = 1
	}
	for i := range many {
		seed := *seed + uint64(i)
		s := p.under(t, seed, distributions[2])
		for _, workers := range []int{p.workers, p.workers / 2} {
			s.resize(workers)
			s.settle(1.5, before)
			v := s.watch(1.5, watched)
			assert.InDelta(t, workers, v.mean, 1.5, "%d workers, -seed=%d: %v", workers, seed, v.limits)
			sum[workers] += v.mean / float64(many)
			if v.off(workers) > 0.1 {
				off++
			}
			runs++
		}
	}
	if race.Enabled {
		return // two stretches prove nothing
	}
	worst := 0.0
	for workers, mean := range sum {
		worst = max(worst, math.Abs(mean/float64(workers)-1))
	}
	figure.Report(t, figure.Figure{Name: "share of stretches with few calls in which an adaptive limit is more than a tenth off", Value: float64(off) / float64(runs), AtMost: share, N: int64(runs), Seed: *seed})
	figure.Report(t, figure.Figure{Name: "how far it is off in the mean of all of them", Value: worst, AtMost: all, N: int64(runs), Seed: *seed})
}
