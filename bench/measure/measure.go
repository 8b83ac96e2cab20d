package measure

import (
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
	// Start makes what is timed, once. Nil: Call.
	Start func() Work
	// Call makes n calls as caller i; for cases that need no start.
	Call Call
	// Calls fixes the calls of a batch; 0 lets a batch take Plan.Batch.
	Calls int
}

// Call makes n calls as caller i. Several callers may be under way.
type Call func(i, n int)

// Work is what a case does, and how it ends.
type Work struct {
	Call Call
	Stop func() // may be nil
}

// Plan is how much is measured.
type Plan struct {
	Rounds int
	Batch  time.Duration // of one case in one round
	// Progress is told how far it is; may be nil.
	Progress func(done, all int)
}

// Result is what a case took.
type Result struct {
	NS     Spread  // wall time for a call, all callers together
	Ratio  Spread  // NS to the unit beside it
	Allocs float64 // for a call
	Bytes  float64 // allocated for a call

	rounds []float64 // NS, in their order
}

// Beyond is by how many nanoseconds a call took longer than one of another case of
// the same run, round by round.
func Beyond(r, other Result) Spread {
	var more []float64
	for i, ns := range r.rounds {
		more = append(more, ns-other.rounds[i])
	}
	return SpreadOf(more)
}

// Spread is the median of the rounds, the quartiles around it, and the value that a tenth
// of the rounds stay below: about what it is where nobody else has the machine.
type Spread struct{ Tenth, Low, Median, High float64 }

// SpreadOf is the spread of some values. It sorts them.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	slices.Sort(values)
	at := func(q float64) float64 {
		place := q * float64(len(values)-1)
		i := int(place)
		if i+1 == len(values) {
			return values[i]
		}
		return values[i] + (place-float64(i))*(values[i+1]-values[i])
	}
	return Spread{at(0.1), at(0.25), at(0.5), at(0.75)}
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
	for round := range plan.Rounds {
		for i, r := range running {
			if plan.Progress != nil {
				plan.Progress(round*len(running)+i, plan.Rounds*len(running))
			}
			// The garbage of one is not collected at the cost of the next.
			runtime.GC()
			before := unit.batch()
			ns := r.measured()
			// The unit is taken on both sides, so that a machine that gets slower in
			// between does not look like a slow case.
			r.keep(ns, (before+unit.batch())/2)
		}
	}
	results := make([]Result, len(cases))
	for i, r := range running {
		results[i] = r.result()
	}
	return results
}

// TwoReadings is the unit: two readings of the clock, which is what a call can't
// do without that has a response time.
func TwoReadings(plan Plan) Spread {
	return Run(plan, []Case{{Procs: 1, Call: Readings}})[0].NS
}

var began = time.Now()

// Readings makes n units. Callers that do nothing else share nothing: what two of them
// gain over one is what the machine has for two.
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

	ns, ratios, allocs, bytes []float64
}

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

// calibrate finds how many calls a batch makes to take so long.
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
	// Callers take small portions until none is left: one that began late makes the
	// others do more, and not the batch longer.
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

// measured is a batch whose allocations are counted.
func (r *runner) measured() float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ns := r.batch()
	runtime.ReadMemStats(&after)
	r.allocs = append(r.allocs, float64(after.Mallocs-before.Mallocs)/float64(r.calls))
	r.bytes = append(r.bytes, float64(after.TotalAlloc-before.TotalAlloc)/float64(r.calls))
	return ns
}

func (r *runner) keep(ns, unit float64) {
	r.ns = append(r.ns, ns)
	r.ratios = append(r.ratios, ns/unit)
}

func (r *runner) result() Result {
	rounds := slices.Clone(r.ns)
	return Result{SpreadOf(r.ns), SpreadOf(r.ratios), SpreadOf(r.allocs).Median, SpreadOf(r.bytes).Median, rounds}
}
