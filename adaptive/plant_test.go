package adaptive_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/isolation"
)

// plant is a size: the number of workers, and the mean duration of a call. The knee is at the
// number of workers.
type plant struct {
	workers int
	mean    time.Duration
}

var plants = []plant{{4, 10 * ms}, {16, 20 * ms}, {64, 50 * ms}, {256, 200 * ms}}

type distribution struct {
	name  string
	times func(*rand.Rand) float64
}

// distributions are distributions of durations: with little noise, with much, and with a tail
// heavier than any power.
var distributions = []distribution{
	{"always the same", always},
	{"exponential", exponential},
	{"lognormal", lognormal(1)},
	{"with a heavy tail", pareto(2.2)},
}

// seen holds the results of a stretch of a run.
type seen struct {
	limits     []float64 // the learned limit, means of stretches
	mean       float64
	throughput []float64 // units per second, of stretches
	refused    int
}

const stretch = 5 * time.Second

// watch runs the service for some stretches under a load: a share of its capacity.
func (s *service) watch(load float64, stretches int) (v seen) {
	s.refused = 0
	for range stretches {
		sum, n := 0.0, 0.0
		s.done = 0
		s.run(load*s.capacity(), stretch, func() {
			if s.learns {
				sum += float64(s.limit().Limit)
			}
			n++
		})
		v.limits = append(v.limits, sum/n)
		v.mean += sum / n / float64(stretches)
		v.throughput = append(v.throughput, float64(s.done)/stretch.Seconds())
	}
	v.refused = s.refused
	return v
}

func (s *service) settle(load float64, length time.Duration) {
	s.run(load*s.capacity(), length, func() {})
}

// off returns the error of the limit, as a share of the knee.
func (v seen) off(workers int) float64 { return math.Abs(v.mean/float64(workers) - 1) }

// amplitude returns half the swing of the limit, as a share of its mean.
func (v seen) amplitude() float64 {
	return (slices.Max(v.limits) - slices.Min(v.limits)) / 2 / v.mean
}

// loss returns the loss of throughput compared with a limit at the knee. That is below the capacity
// as well: at random, too few calls come sometimes.
func (v seen) loss(at seen) float64 { return 1 - mean(v.throughput)/mean(at.throughput) }

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

func (p plant) String() string { return fmt.Sprintf("%d workers", p.workers) }

// under returns the plant under an adaptive rule that knows nothing yet.
func (p plant) under(t *testing.T, seed uint64, d distribution) *service {
	return p.shedding(t, seed, d, spec.ShedNone)
}

// shedding is like under, but with calls of all levels and a rule with that shed order.
func (p plant) shedding(t *testing.T, seed uint64, d distribution, order spec.Shed) *service {
	s := newService(t, newGuard(t, adaptive.Rule{Resource: "orders", Shed: order}), seed, p.workers, p.mean, d.times)
	s.learns = true
	if order != spec.ShedNone {
		s.mix = usualMix
	}
	return s
}

// usualMix is the mix of levels under which the rules are tested: at three times the load, 20, 50, 100
// and 130 % of the capacity.
var usualMix = []float64{0.2 / 3, 0.5 / 3, 1.0 / 3, 1.3 / 3}

// fixed returns the plant under the limit that it ought to have.
func (p plant) fixed(t *testing.T, seed uint64, d distribution) *service {
	g := newGuard(t)
	require.NoError(t, g.Update(func(b *engine.SnapshotBuilder) error {
		return isolation.Compile(b, []isolation.Rule{{Resource: "orders", Threshold: p.workers}})
	}))
	return newService(t, g, seed, p.workers, p.mean, d.times)
}

// seeds returns the seeds to run: one in an ordinary run.
func seeds() []uint64 {
	var all []uint64
	for i := range figure.Size(1, 1, 4, 40) {
		all = append(all, *seed+uint64(i))
	}
	return all
}

// sizes returns the plants from number i on to run: in an ordinary run up to number j.
func sizes(i, j int) []plant {
	switch {
	case race.Enabled:
		return plants[i : i+1]
	case figure.Size(0, 0, 1, 1) == 1:
		return plants[i:]
	case testing.Short():
		return plants[i : i+1]
	}
	return plants[i:j]
}

// The demand is 1.5 times the capacity. For any size and any duration of calls, the rule finds the
// number of calls to run at a time, from a limit that is five times too high or thirteen times too
// low, and stays there.
// known bug 95
func TestFindsTheKnee(t *testing.T) { findsTheKnee(t, spec.ShedNone, 1.5, "") }

// The same with calls of all levels, where those below the highest leave a part of the limit free.
func TestFindsTheKneeByLevels(t *testing.T) { findsTheKnee(t, spec.ShedLevels, 3, ", by levels") }

func findsTheKnee(t *testing.T, order spec.Shed, load float64, how string) {
	race.OneGoroutine(t)
	var off, amplitude, loss float64
	runs := 0
	for _, p := range sizes(0, 3) {
		for _, d := range distributions {
			for _, seed := range seeds() {
				name := fmt.Sprintf("%v, %s, -seed=%d", p, d.name, seed)
				s := p.shedding(t, seed, d, order)
				s.settle(load, 60*time.Second)
				v := s.watch(load, 6)
				at := p.fixed(t, seed, d).watch(load, 6)
				assert.LessOrEqual(t, v.off(p.workers), 0.1, "%s: %v", name, v.limits)
				assert.Less(t, v.amplitude(), 0.2, "%s: %v", name, v.limits)
				off, amplitude, loss = max(off, v.off(p.workers)), max(amplitude, v.amplitude()), max(loss, v.loss(at))
				runs++
			}
		}
	}
	figure.Report(t, figure.Figure{Name: fmt.Sprintf("how far an adaptive limit is from the knee under %v times the load%s", load, how), Value: off, AtMost: 0.1, N: int64(runs), Seed: *seed})
	figure.Report(t, figure.Figure{Name: "its amplitude once settled" + how, Value: amplitude, AtMost: 0.2, N: int64(runs), Seed: *seed})
	if order != spec.ShedNone {
		return // TestShedsTheLowestLevelsFirst has the throughput
	}
	figure.Report(t, figure.Figure{Name: "throughput lost against a limit that stands at the knee", Value: loss, AtMost: 0.1, N: int64(runs), Seed: *seed})
}

// The load goes up and down in steps, workers stop and start, and durations grow and shrink. Soon
// after each step the limit is at the knee, the number of workers.
// known bug 95
func TestFollowsSteps(t *testing.T) { followsSteps(t, spec.ShedNone, "") }

// The same with calls of all levels.
func TestFollowsStepsByLevels(t *testing.T) { followsSteps(t, spec.ShedLevels, ", by levels") }

func followsSteps(t *testing.T, order spec.Shed, how string) {
	race.OneGoroutine(t)
	worst, runs := 0.0, 0
	for _, p := range sizes(1, 2) {
		for _, seed := range seeds() {
			s := p.shedding(t, seed, distributions[2], order)
			s.settle(1.5, 60*time.Second)
			for _, step := range []struct {
				name    string
				load    float64
				workers int
				mean    time.Duration
			}{
				{"three times the load", 3, p.workers, p.mean},
				{"little more than it can do", 1.1, p.workers, p.mean},
				{"half the workers", 1.5, p.workers / 2, p.mean},
				{"all of them again", 1.5, p.workers, p.mean},
				{"twice as many", 1.5, 2 * p.workers, p.mean},
				{"three times as long", 1.5, p.workers, 3 * p.mean},
				{"a fifth of it", 1.5, p.workers, 3 * p.mean / 5},
			} {
				s.resize(step.workers)
				s.mean = step.mean
				s.settle(step.load, max(40*time.Second, 120*step.mean)) // a round takes some ten calls' time
				v := s.watch(step.load, 4)
				assert.LessOrEqual(t, v.off(step.workers), 0.1, "%v, %s, -seed=%d: %v", p, step.name, seed, v.limits)
				assert.Less(t, v.amplitude(), 0.2, "%v, %s, -seed=%d: %v", p, step.name, seed, v.limits)
				worst = max(worst, v.off(step.workers))
				runs++
			}
		}
	}
	figure.Report(t, figure.Figure{Name: "how far an adaptive limit is from the knee forty seconds, or the time of 120 calls, after a step" + how, Value: worst, AtMost: 0.1, N: int64(runs), Seed: *seed})
}

// With durations that vary so much that their mean hardly exists, the limit stays somewhat low, but
// does not collapse. At all times the throughput is at least three quarters of the throughput at the
// knee.
func TestNoiseDoesNotCollapseIt(t *testing.T) {
	race.OneGoroutine(t)
	worst, runs := 0.0, 0
	for _, p := range sizes(1, 3) {
		for _, d := range []distribution{{"lognormal, wide", lognormal(1.5)}, {"without a variance", pareto(1.5)}} {
			for _, seed := range seeds() {
				s := p.under(t, seed, d)
				s.settle(1.5, 100*time.Second)
				v := s.watch(1.5, 12)
				at := p.fixed(t, seed, d).watch(1.5, 12)
				for chunk := range slices.Chunk(v.throughput, 4) {
					worst = max(worst, 1-mean(chunk)/mean(at.throughput))
				}
				assert.LessOrEqual(t, v.off(p.workers), 0.25, "%v, %s, -seed=%d: %v", p, d.name, seed, v.limits)
				runs++
			}
		}
	}
	figure.Report(t, figure.Figure{Name: "throughput lost under latency that is nearly all noise, in the worst twenty seconds", Value: worst, AtMost: 0.25, N: int64(runs), Seed: *seed})
}

// The knee is also found for services without a queue: one whose processors all calls share, one
// that sheds load without a free worker, one where a third of the calls fail anyway, and calls of
// several units. The limit is off by at most a tenth, or by one where it is small.
func TestOtherServices(t *testing.T) {
	race.OneGoroutine(t)
	for _, p := range sizes(1, 3) {
		for name, change := range map[string]func(*service){
			"shared":           func(s *service) { s.sharing = true },
			"a third fails":    func(s *service) { s.fails = 0.3 },
			"of several units": func(s *service) { s.units = func(r *rand.Rand) int { return 1 + r.IntN(3) } },
			"sheds":            func(s *service) { s.sheds = true },
		} {
			if name == "sheds" && p.workers < 64 {
				continue // if shedding ends so soon, few units are ever above the limit
			}
			s := p.under(t, *seed, distributions[2])
			change(s)
			s.settle(1.5, 60*time.Second)
			v := s.watch(1.5, 4)
			assert.InDelta(t, p.workers, v.mean, max(1, 0.1*float64(p.workers)), "%v, %s: %v", p, name, v.limits)
		}
	}
}
