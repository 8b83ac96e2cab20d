package adaptive_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/figure"
)

// plants are the sizes: so many workers, and what a call takes. The knee is at as many
// units in flight as there are workers.
var plants = []struct {
	workers int
	mean    time.Duration
}{{4, 10 * ms}, {16, 20 * ms}, {64, 50 * ms}, {256, 100 * ms}}

// seen is what a stretch of a run has shown.
type seen struct {
	limits     []float64 // means of five seconds
	mean       float64
	throughput float64 // units a second
	rt         time.Duration
}

// watch runs the service for a number of stretches of five seconds.
func (s *service) watch(load float64, stretches int) (v seen) {
	const length = 5 * time.Second
	s.done, s.refused = 0, 0
	for range stretches {
		sum, n := 0.0, 0.0
		s.run(load*s.capacity(), length, func() {
			sum += float64(s.limit().Limit)
			n++
		})
		v.limits = append(v.limits, sum/n)
		v.mean += sum / n / float64(stretches)
	}
	v.throughput = float64(s.done) / (float64(stretches) * length.Seconds())
	return v
}

func (s *service) settle(load float64, length time.Duration) {
	s.run(load*s.capacity(), length, func() {})
}

// off is by which share of the knee the limit is off.
func (v seen) off(workers int) float64 { return math.Abs(v.mean/float64(workers) - 1) }

// amplitude is half the swing of the limit as a share of its mean.
func (v seen) amplitude() float64 {
	return (slices.Max(v.limits) - slices.Min(v.limits)) / 2 / v.mean
}

// served is what the service does under a limit at its knee that nobody moves: less
// than its capacity, for at random calls come sometimes too seldom and sometimes too
// often.
func served(t *testing.T, seed uint64, workers int, mean time.Duration, times func(*rand.Rand) float64, load float64, length time.Duration) float64 {
	s := newService(t, newGuard(t), seed, workers, mean, times)
	s.run(load*s.capacity(), length, func() {})
	return float64(s.done) / length.Seconds()
}

func TestX(t *testing.T) {
	_ = figure.Size
	_ = assert.Equal
	_ = core.Off
	for _, p := range plants {
		for name, times := range map[string]func(*rand.Rand) float64{"always": always, "ln1": lognormal(1), "par": pareto(2.2)} {
			for _, kind := range []int{0, 1, 2, 3, 4} {
				s := newService(t, newGuard(t, adaptive.Rule{Resource: "orders"}), 1, p.workers, p.mean, times)
				s.sharing, s.bounces = kind == 1, kind == 2
				if kind == 3 {
					s.fails = 0.3
				}
				if kind == 4 {
					s.units = func(r *rand.Rand) int { return 1 + r.IntN(3) }
				}
				s.settle(1.5, 60*time.Second)
				v := s.watch(1.5, 6)
				fmt.Println(p.workers, name, kind, math.Round(1000*v.off(p.workers))/10, "amp", math.Round(100*v.amplitude()), v.throughput/s.capacity(), s.limit())
			}
		}
	}
}
