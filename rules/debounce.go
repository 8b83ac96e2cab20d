package rules

import "time"

// debounce waits until nothing has happened for a while, but not forever.
type debounce struct {
	quiet, longest time.Duration
	timer          *time.Timer
	first          time.Time // time of the first touch; zero while idle
}

func newDebounce(quiet, longest time.Duration) *debounce {
	d := &debounce{quiet: quiet, longest: longest, timer: time.NewTimer(quiet)}
	d.timer.Stop()
	return d
}

// fires receives after a quiet period, or when things have been busy for too long. done must be called
// then.
func (d *debounce) fires() <-chan time.Time { return d.timer.C }

func (d *debounce) touch() {
	now := time.Now()
	if d.first.IsZero() {
		d.first = now
	}
	d.timer.Reset(min(d.quiet, d.first.Add(d.longest).Sub(now)))
}

func (d *debounce) done() { d.first = time.Time{} }
