package adaptive

// evidence summarizes a set of calls.
type evidence struct {
	calls, good  int64
	units        float64 // units in flight at each arrival, summed
	time, square float64 // durations in ns, summed, and their squares
}

func (e *evidence) add(inFlight int64, time float64, failed bool) {
	e.calls++
	if !failed {
		e.good++
	}
	e.units += float64(inFlight)
	e.time += time
	e.square += time * time
}

// inFlight returns the mean number of units in flight.
func (e *evidence) inFlight() float64 { return e.units / float64(e.calls) }

// mean returns the mean duration of a call, regardless of its outcome. There must be at least one
// call.
func (e *evidence) mean() float64 { return max(e.time/float64(e.calls), resolution) }

// price returns the time spent per successful call. There must be at least one. A call that fails
// immediately costs little; one that fails after a long time costs a lot.
func (e *evidence) price() float64 { return e.mean() / e.success() }

func (e *evidence) success() float64 { return float64(e.good) / float64(e.calls) }

// doubt returns the variance of price, as a share of its square, or 1 if unknown.
func (e *evidence) doubt() float64 {
	if e.good < 2 {
		return 1
	}
	n, mean := float64(e.calls), e.time/float64(e.calls)
	spread := max(0, e.square/n-mean*mean) / (e.mean() * e.mean())
	return spread/n + (1-e.success())/float64(e.good)
}
