// Package plant simulates a service on a machine, to test rules that depend on the machine's load
// and CPU usage.
package plant

import (
	"math"
	"slices"
	"time"
)

// Step is the time that a plant advances at once.
const Step = time.Millisecond

// Plant is a service whose calls in flight share its processors. Each call needs some processor
// time, after waiting for something else, such as a database. It is for one goroutine. The zero
// value has no processors.
type Plant struct {
	CPUs float64

	jobs    []job
	elapsed time.Duration
	backlog float64

	busy    float64 // processor seconds since the last reading of the CPU usage
	read    time.Duration
	use     float64
	average float64
}

type job struct {
	cpu, idle time.Duration // remaining
	end       func()
}

// Due returns how many calls arrive in this step, at the given rate per second.
func (p *Plant) Due(rate float64) (calls int) {
	p.backlog += rate * Step.Seconds()
	calls = int(p.backlog)
	p.backlog -= float64(calls)
	return calls
}

// Begin starts a call. The call waits for idle and works for cpu, and then end is called.
func (p *Plant) Begin(cpu, idle time.Duration, end func()) {
	p.jobs = append(p.jobs, job{cpu, idle, end})
}

// InFlight returns the number of running calls.
func (p *Plant) InFlight() int { return len(p.jobs) }

// Serve advances every call by a step.
func (p *Plant) Serve() {
	running := 0
	for _, j := range p.jobs {
		if j.idle <= 0 {
			running++
		}
	}
	share := time.Duration(float64(Step) * min(1, p.CPUs/max(1, float64(running))))
	left := p.jobs[:0]
	for _, j := range p.jobs {
		if j.idle > 0 {
			j.idle -= Step
		} else {
			p.busy += min(j.cpu, share).Seconds()
			if j.cpu -= share; j.cpu <= 0 {
				j.end()
				continue
			}
		}
		left = append(left, j)
	}
	clear(p.jobs[len(left):])
	p.jobs = left
	if p.elapsed += Step; p.elapsed%(5*time.Second) == 0 {
		decay := math.Exp(-5.0 / 60)
		p.average = p.average*decay + float64(running)*(1-decay)
	}
}

// Stop ends the running calls.
func (p *Plant) Stop() {
	for _, j := range slices.Clone(p.jobs) {
		j.end()
	}
	p.jobs = nil
}

// Load returns the load average as a kernel computes it: every five seconds a step towards the
// number of calls that want a processor.
func (p *Plant) Load() float64 { return p.average }

// CPU returns the share of the processors in use since the last reading, averaged with the previous
// value.
func (p *Plant) CPU() float64 {
	if passed := p.elapsed - p.read; passed > 0 {
		p.use = (p.use + p.busy/(p.CPUs*passed.Seconds())) / 2
		p.busy, p.read = 0, p.elapsed
	}
	return p.use
}
