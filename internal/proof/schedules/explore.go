//go:build sim

package schedules

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
)

var (
	count = flag.Int("sim.n", 0, "how many random schedules of each machine; 0 means 20,000, or the number that FIGURES or -short selects")
	seed  = flag.Uint64("sim.seed", 0, "seed of the random schedules; 0 means package chance's")
	at    = flag.Int("sim.at", -1, "run only the schedule with this number, and print it")
)

// Fix sets the seed and the number of random schedules until restore is called, for
// tests of this package.
func Fix(newSeed uint64, n int) (restore func()) {
	oldSeed, oldCount := *seed, *count
	*seed, *count = newSeed, n
	return func() { *seed, *count = oldSeed, oldCount }
}

// Random runs a machine under 20,000 random schedules chosen by the seed, or under a million if
// FIGURES asks for the larger size. For each, make sets up the machine and adds its callers.
func Random(t *testing.T, make func(*Schedule)) {
	t.Helper()
	explore(t, 20_000, make)
}

// Sample is like Random, but plays a twentieth as many schedules: for machines that are whole
// engines and take longer.
func Sample(t *testing.T, make func(*Schedule)) {
	t.Helper()
	explore(t, 1_000, make)
}

func explore(t *testing.T, ordinary int, make func(*Schedule)) {
	t.Helper()
	n := *count
	if n == 0 {
		n = figure.Size(ordinary/4, ordinary, 50*ordinary, 1000*ordinary) // a night runs 10^6 of every machine
	}
	base := *seed
	if base == 0 {
		base = *chance.Seed
	}
	play := func(p *pool, i int, tracing bool) *Schedule {
		r := rand.New(rand.NewPCG(base, uint64(i)))
		s := &Schedule{Rand: r, pool: p, tracing: tracing, chooser: newRandom(r)}
		make(s)
		s.play()
		return s
	}
	if *at >= 0 {
		alone := new(pool)
		s := play(alone, *at, true)
		t.Logf("schedule %d of seed %d:\n%s", *at, base, strings.Join(s.trace, "\n"))
		if s.failure != "" {
			t.Fatal(s.failure)
		}
		alone.stop()
		return
	}
	workers := new(pool)
	for i := range n {
		if s := play(workers, i, false); s.failure != "" {
			report(t, s.failure, play(new(pool), i, true))
			t.Logf("again: go test -tags sim -run '^%s$' -v -sim.seed=%d -sim.at=%d (in this package)", t.Name(), base, i)
			noteFigure(t, figure.Figure{Name: "violations: " + t.Name(), Value: 1, N: int64(i + 1), Seed: base})
			return
		}
	}
	workers.stop()
	noteFigure(t, figure.Figure{Name: "violations: " + t.Name(), N: int64(n), Seed: base})
}

// Exhaustive runs a machine under every schedule, except that it ignores the order of accesses that
// don't touch each other. (So the instants at which calls begin and return mean nothing here; their
// results do.) It fails if there are more than most. An ordinary run stops after 20,000; if FIGURES
// asks for the larger size, all are played.
func Exhaustive(t *testing.T, most int, make func(*Schedule)) {
	t.Helper()
	stop := figure.Size(20_000, 20_000, most+1, most+1)
	every := new(exhaustive)
	play := func(p *pool, tracing bool) *Schedule {
		every.begin()
		s := &Schedule{Rand: rand.New(rand.NewPCG(1, 1)), pool: p, tracing: tracing, chooser: every}
		make(s)
		s.play()
		return s
	}
	workers := new(pool)
	n := 0
	for more := true; more; more = every.next() {
		s := play(workers, false)
		if every.played() {
			continue
		}
		if s.failure != "" {
			report(t, s.failure, play(new(pool), true))
			t.FailNow()
		}
		switch n++; {
		case n >= stop:
			t.Logf("stopped after %d schedules; make figures runs them all", n)
			workers.stop()
			return
		case n >= most:
			t.Fatalf("more than %d schedules: make the machine smaller", n)
		}
	}
	workers.stop()
	noteFigure(t, figure.Figure{Name: "violations: " + t.Name() + ", every schedule", N: int64(n)})
}

// SampleOrAll is for machines that are whole engines. If FIGURES asks for the larger size, it plays
// every schedule, like Exhaustive; otherwise it plays as many random schedules as Sample, since the
// first exhaustive ones would differ only in their last steps.
func SampleOrAll(t *testing.T, most int, make func(*Schedule)) {
	t.Helper()
	if figure.Size(0, 0, 1, 1) == 0 {
		Sample(t, make)
		return
	}
	Exhaustive(t, most, make)
}

// noteFigure reports the result of a schedule test, except for tests of this package.
func noteFigure(t *testing.T, f figure.Figure) {
	t.Helper()
	if strings.HasPrefix(t.Name(), "TestSim") {
		figure.Report(t, f)
	}
}

// report shows a failed schedule while running it again.
func report(t *testing.T, failure string, again *Schedule) {
	t.Helper()
	trace := again.trace
	if n := len(trace); n > 300 {
		trace = append([]string{"…"}, trace[n-300:]...)
	}
	t.Errorf("%s\n%s", failure, strings.Join(trace, "\n"))
	if again.failure != failure {
		t.Logf("run again, the same choices gave %q: the machine depends on something else, such as the order of a map", again.failure)
	}
}
