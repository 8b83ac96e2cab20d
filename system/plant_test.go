package system_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/plant"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/internal/sampler"
	"github.com/penstock-go/penstock/system"
)

// service is a simulated machine that serves calls and that rules read.
type service struct {
	*guard
	plant.Plant
	rand     *rand.Rand
	work     func(*rand.Rand) (cpu, idle time.Duration)
	admitted int
	done     int
}

// step simulates one millisecond of calls; rate is per second.
func (s *service) step(rate float64) {
	for range s.Due(rate) {
		if e, err := s.enter(1); err == nil {
			cpu, idle := s.work(s.rand)
			s.Begin(cpu, idle, func() {
				e.Exit()
				s.done++
			})
			s.admitted++
		}
	}
	s.Serve()
	s.clock.Advance(plant.Step)
}

func newService(t *testing.T, rule system.Rule, cpus float64, work func(*rand.Rand) (cpu, idle time.Duration)) *service {
	s := &service{guard: newGuard(t), Plant: plant.Plant{CPUs: cpus}, rand: random(t), work: work}
	s.dial.plant = &s.Plant
	s.load(rule)
	t.Cleanup(s.Stop)
	return s
}

// run simulates calls at the given rate, and returns for each sample how many were admitted and
// finished, both per second, and how many were in flight at its end.
func (s *service) run(rate float64, samples int) (admitted, done, inFlight []float64) {
	for range samples {
		s.admitted, s.done = 0, 0
		for range sampler.Period / ms {
			s.step(rate)
		}
		admitted = append(admitted, float64(s.admitted)/sampler.Period.Seconds())
		done = append(done, float64(s.done)/sampler.Period.Seconds())
		inFlight = append(inFlight, float64(s.InFlight()))
	}
	return admitted, done, inFlight
}

func fixed(cpu, idle time.Duration) func(*rand.Rand) (time.Duration, time.Duration) {
	return func(*rand.Rand) (time.Duration, time.Duration) { return cpu, idle }
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

func amplitude(v []float64) float64 {
	return (slices.Max(v) - slices.Min(v)) / 2 / mean(v)
}

// The demand is three times the machine's capacity. After ten samples a steady rule has settled:
// the admissions vary by less than a fifth of their mean, nearly all of the capacity is used, and
// no queue is left. A gate oscillates between all and nothing forever, which shows that the plant
// can oscillate.
// known bug 92
func TestPlantSettles(t *testing.T) {
	const settling = 10
	watched := figure.Size(30, 110, 400, 4000)
	if race.Enabled {
		watched = 30
	}
	for _, tt := range []struct {
		name string
		cpus float64
		rate float64 // calls that the machine can serve
	}{
		{"four processors", 4, 400},
		{"sixteen", 16, 1600},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newService(t, system.Rule{Metric: system.CPU, Threshold: 0.8}, tt.cpus, fixed(10*ms, 40*ms))
			quiet, _, _ := p.run(tt.rate/2, 20)
			assert.InDelta(t, tt.rate/2, mean(quiet), 1, "nobody is refused while there is room")
			admitted, done, inFlight := p.run(tt.rate*3, settling+watched)
			swing := amplitude(admitted[settling:])
			assert.Less(t, swing, 0.2)
			assert.Less(t, amplitude(done[settling:]), 0.2)
			assert.Greater(t, mean(done[settling:]), 0.75*tt.rate)
			assert.Less(t, slices.Max(inFlight[settling:]), 2*tt.rate*0.05, "and a call takes less than twice as long as by itself")
			figure.Report(t, figure.Figure{
				Name:  "amplitude of what a steady CPU rule admits under three times the load, after ten samples, " + tt.name,
				Value: swing, AtMost: 0.2, N: int64(watched), Seed: *seed,
			})

			// When the demand has fallen, every call is admitted again.
			p.run(tt.rate/2, 40)
			quiet, _, _ = p.run(tt.rate/2, 20)
			assert.InDelta(t, tt.rate/2, mean(quiet), 1)
		})
	}
	t.Run("a gate swings", func(t *testing.T) {
		p := newService(t, system.Rule{Metric: system.CPU, Threshold: 0.8, Strategy: system.Gate}, 4, fixed(10*ms, 40*ms))
		p.run(200, 20)
		admitted, _, _ := p.run(1200, settling+30)
		assert.Greater(t, amplitude(admitted[settling:]), 1.0)
	})
}

// Calls are of very different sizes, so the admissions in one sample vary at random, and samples are
// averaged over two seconds. The reading repeatedly falls below the threshold by chance.
// known bug 92
func TestPlantOfMixedWorkSettles(t *testing.T) {
	const each = 7.15 // mean CPU time in ms
	for _, threshold := range []float64{0.5, 0.8} {
		p := newService(t, system.Rule{Metric: system.CPU, Threshold: threshold}, 8, mixedWork)
		p.run(300, 20)
		p.run(4000, 24)
		admitted, _, inFlight := p.run(4000, 160)
		var together []float64
		for chunk := range slices.Chunk(admitted, 8) {
			together = append(together, mean(chunk))
		}
		assert.Less(t, amplitude(together), 0.2, "%v", together)
		assert.Less(t, amplitude(inFlight), 0.3)
		served := 8 * 1000 / each
		assert.InDelta(t, threshold*served, mean(admitted), 0.2*served, "about what the threshold leaves")
	}
}

// The load average lags by a minute. A rule on it settles all the same.
// known bug 92
func TestPlantSettlesByItsLoad(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("a load average takes minutes, of which this test plays three")
	}
	p := newService(t, system.Rule{Metric: system.Load, Threshold: 10}, 4, fixed(10*ms, 40*ms))
	p.run(200, 20)
	p.run(800, 160) // until the load average has followed, and the backlog is gone
	admitted, done, _ := p.run(800, 480)
	assert.Less(t, amplitude(admitted), 0.2)
	assert.Greater(t, mean(done), 0.8*400)
}
