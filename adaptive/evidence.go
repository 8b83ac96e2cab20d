package adaptive

// evidence is what some calls have shown. Those that failed say nothing of how long a
// call takes: they may be over at once, or when somebody lost patience.
type evidence struct {
	calls, failed int64
	units         float64 // in flight when they came in, added up
	time, square  float64 // what the others took, in ns
}

func (e *evidence) add(inFlight int64, time float64, failed bool) {
	e.calls++
	e.units += float64(inFlight)
	if failed {
		e.failed++
		return
	}
	e.time += time
	e.square += time * time
}

// good is how many calls went well.
func (e *evidence) good() float64 { return float64(e.calls - e.failed) }

// success is their share.
func (e *evidence) success() float64 { return e.good() / float64(e.calls) }

// mean is how long they took. There must be one.
func (e *evidence) mean() float64 { return max(e.time/e.good(), resolution) }

// doubt is the variance of mean times success, as a share of its square; 1 if too few
// calls went well to tell.
func (e *evidence) doubt() float64 {
	n := e.good()
	if n < 2 {
		return 1
	}
	mean := e.mean()
	spread := max(0, e.square/n-(e.time/n)*(e.time/n)) / (mean * mean)
	return spread/n + (1-e.success())/n
}
