package measure

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Case is one thing to time, at one number of processors and callers.
type Case struct {
	// Procs is GOMAXPROCS while it runs; 0 leaves it.
	Procs int
	// Callers is the number of goroutines that share the calls; 0 is 1.
	Callers int
	// Start sets up the work, once. Nil: Call.
	Start func() Work
	// Call makes n calls as caller i; for cases that need no setup.
	Call Call
	// Calls fixes the calls of a batch; 0 lets a batch take Plan.Batch.
	Calls int
}

// Call makes n calls as caller i. Several callers may run at once.
type Call func(i, n int)

// Work is the work of a case, and how it ends.
type Work struct {
	Call Call
	Stop func() // may be nil
}

// Plan sets the extent of a measurement.
type Plan struct {
	Rounds int
	Most   int           // rounds of a case if too few are calm; 0 is Rounds
	Batch  time.Duration // of one case in one round
	// Progress is called after each step, if it isn't nil.
	Progress func(done, all int)
}

// Result holds the times of a case, in the rounds that were calm.
type Result struct {
	NS     Spread  // wall time per call, all callers together
	Ratio  Spread  // NS relative to the unit next to it
	Allocs float64 // per call
	Bytes  float64 // allocated per call
	Calm   float64 // share of the rounds that were calm

	rounds []float64 // NS of all rounds, in order
}

// Beyond returns by how many nanoseconds a call took longer than one of another case of the same
// run, round by round.
func Beyond(r, other Result) Spread {
	var more []float64
	for i, ns := range r.rounds {
		more = append(more, ns-other.rounds[i])
	}
	return SpreadOf(more)
}

// Spread is the median of the rounds, the quartiles around it, and the value that a tenth of the
// rounds stay below, which is close to the value on an otherwise idle machine.
type Spread struct{ Tenth, Low, Median, High float64 }

// SpreadOf returns the spread of some values. It sorts them.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	slices.Sort(values)
	return Spread{quantile(values, 0.1), quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75)}
}

// quantile takes sorted values; there must be at least one.
func quantile(values []float64, q float64) float64 {
	place := q * float64(len(values)-1)
	i := int(place)
	if i+1 == len(values) {
		return values[i]
	}
	return values[i] + (place-float64(i))*(values[i+1]-values[i])
}

// Run measures the cases in turns.
func Run(plan Plan, cases []Case) []Result {
	running := make([]*runner, len(cases))
	for i, c := range cases {
		running[i] = start(c)
	}
	defer func() {
		for _, r := range running {
			r.stop()
		}
	}()
	unit := start(Case{Procs: 1, Call: Readings})
	unit.calibrate(max(plan.Batch/8, time.Millisecond))
	for _, r := range running {
		r.calibrate(plan.Batch)
	}
	calm := 0.0
	for round := 0; round < max(plan.Rounds, plan.Most); round++ {
		due := running
		if round >= plan.Rounds {
			due = slices.DeleteFunc(slices.Clone(running), func(r *runner) bool { return r.calm(calm) >= fewest })
		}
		for i, r := range due {
			if plan.Progress != nil {
				plan.Progress(round*len(running)+i, max(plan.Rounds, round+1)*len(running))
			}
			// Collect one case's garbage before the next one runs.
			runtime.GC()
			// The unit is taken on both sides, so that a machine that gets slower in between does
			// not look like a slow case; the same goes for the control.
			beside, before := control(), unit.batch()
			ns := r.measured()
			after := unit.batch()
			r.rounds = append(r.rounds, taken{ns: ns, ratio: ns / ((before + after) / 2), control: max(beside, control())})
		}
		calm = calmest(running)
	}
	results := make([]Result, len(cases))
	for i, r := range running {
		results[i] = r.result(calm)
	}
	return results
}

// control times a computation that keeps all of a processor's adders busy. It takes longer while
// another hardware thread of the same core works; so does any code with many instructions, but
// hardly the unit, which waits for the clock. Rounds next to a slow control therefore show the cost
// of a call on half a core.
//
// It is the quickest of four: something that a case leaves running for a moment, such as a timer,
// does not disturb all of them.
func control() float64 {
	return min(controlOnce(), controlOnce(), controlOnce(), controlOnce())
}

func controlOnce() float64 {
	start := time.Now()
	a, b, c, d := uint64(1), uint64(2), uint64(3), uint64(4)
	for i := range uint64(70_000) {
		a += i ^ b
		b += i + c
		c ^= d + i
		d += a >> 1
	}
	sink.Store(a + b + c + d)
	return float64(time.Since(start))
}

var sink atomic.Uint64 // keeps the computation alive

// calmest returns the longest control of a calm round: a little more than the quickest.
func calmest(running []*runner) float64 {
	var controls []float64
	for _, r := range running {
		for _, one := range r.rounds {
			controls = append(controls, one.control)
		}
	}
	slices.Sort(controls)
	return 1.01 * quantile(controls, 0.005)
}

// TwoReadings returns the unit: two readings of the clock, the minimum for a call with a response
// time.
func TwoReadings(plan Plan) Spread {
	return Run(plan, []Case{{Procs: 1, Call: Readings}})[0].NS
}

var began = time.Now()

// Readings runs n units that share no state, so the speedup from one caller to two shows how far
// the machine can scale.
func Readings(_, n int) {
	for range n {
		_ = time.Since(began)
		_ = time.Since(began)
	}
}

// runner is a case that has been started.
type runner struct {
	Case
	work  Work
	calls int // of a batch

	rounds        []taken
	allocs, bytes []float64
}

// taken holds the times of a case in one round.
type taken struct{ ns, ratio, control float64 }

func start(c Case) *runner {
	r := &runner{Case: c, work: Work{Call: c.Call}, calls: c.Calls}
	r.Callers = max(1, c.Callers)
	if c.Start != nil {
		r.work = c.Start()
	}
	return r
}

func (r *runner) stop() {
	if r.work.Stop != nil {
		r.work.Stop()
	}
}

// calibrate finds the number of calls that take as long as a batch.
func (r *runner) calibrate(batch time.Duration) {
	if r.Calls != 0 {
		r.batch()
		return
	}
	for r.calls = 64 * r.Callers; ; r.calls *= 4 {
		if took := time.Duration(r.batch() * float64(r.calls)); took > batch/8 {
			r.calls = max(r.Callers, int(float64(r.calls)*float64(batch)/float64(took)))
			return
		}
	}
}

// batch makes the calls once and returns the time of one, in nanoseconds.
func (r *runner) batch() float64 {
	if r.Procs > 0 && r.Procs != runtime.GOMAXPROCS(0) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(r.Procs))
	}
	if r.Callers == 1 {
		start := time.Now()
		r.work.Call(0, r.calls)
		return float64(time.Since(start)) / float64(r.calls)
	}
	// Callers take small portions until none is left: if one begins late, the others do more, and
	// the batch takes no longer.
	portion := max(1, r.calls/(r.Callers*64))
	var (
		left    atomic.Int64
		ready   sync.WaitGroup
		done    sync.WaitGroup
		started = make(chan struct{})
	)
	left.Store(int64(r.calls))
	ready.Add(r.Callers)
	for i := range r.Callers {
		done.Go(func() {
			ready.Done()
			<-started
			for {
				rest := left.Add(-int64(portion)) + int64(portion)
				if rest <= 0 {
					return
				}
				r.work.Call(i, int(min(rest, int64(portion))))
			}
		})
	}
	ready.Wait()
	start := time.Now()
	close(started)
	done.Wait()
	return float64(time.Since(start)) / float64(r.calls)
}

// measured runs a batch and counts its allocations.
func (r *runner) measured() float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ns := r.batch()
	runtime.ReadMemStats(&after)
	r.allocs = append(r.allocs, float64(after.Mallocs-before.Mallocs)/float64(r.calls))
	r.bytes = append(r.bytes, float64(after.TotalAlloc-before.TotalAlloc)/float64(r.calls))
	return ns
}

// fewest is the minimum number of rounds that count: if fewer are calm, the calmest.
const fewest = 10

// calm returns how many rounds had a control of at most longest.
func (r *runner) calm(longest float64) (n int) {
	for _, one := range r.rounds {
		if one.control <= longest {
			n++
		}
	}
	return n
}

func (r *runner) result(longest float64) Result {
	calm := r.calm(longest)
	result := Result{
		Allocs: SpreadOf(r.allocs).Median, Bytes: SpreadOf(r.bytes).Median,
		Calm: float64(calm) / float64(len(r.rounds)),
	}
	for _, one := range r.rounds {
		result.rounds = append(result.rounds, one.ns)
	}
	slices.SortStableFunc(r.rounds, func(a, b taken) int { return cmp.Compare(a.control, b.control) })
	var ns, ratios []float64
	for _, one := range r.rounds[:min(max(calm, fewest), len(r.rounds))] {
		ns, ratios = append(ns, one.ns), append(ratios, one.ratio)
	}
	result.NS, result.Ratio = SpreadOf(ns), SpreadOf(ratios)
	return result
}
