package adaptive

// evidence is what some calls have shown.
type evidence struct {
	calls, good  int64
	units        float64 // in flight when each came in, added up
	time, square float64 // what they took, in ns
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

// inFlight is how many units were in flight on average.
func (e *evidence) inFlight() float64 { return e.units / float64(e.calls) }

// mean is how long a call took on average, whatever its outcome. There must be at least one call.
func (e *evidence) mean() float64 { return max(e.time/float64(e.calls), resolution) }

// price is how much time was spent per call that went well. There must be at least one. A call that
// fails immediately costs little, one that fails after a long time costs much.
func (e *evidence) price() float64 { return e.mean() / e.success() }

func (e *evidence) success() float64 { return float64(e.good) / float64(e.calls) }

// doubt is the variance of price, as a share of its square; 1 if nothing can be said.
func (e *evidence) doubt() float64 {
	if e.good < 2 {
		return 1
	}
	n, mean := float64(e.calls), e.time/float64(e.calls)
	spread := max(0, e.square/n-mean*mean) / (e.mean() * e.mean())
	return spread/n + (1-e.success())/float64(e.good)
}
