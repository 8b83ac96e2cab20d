// Package plant simulates a service on a machine, for tests of what heeds the machine's load
// and the use of its processors.
package plant

import (
	"math"
	"slices"
	"time"
)

// Step is how far a plant moves at once.
const Step = time.Millisecond

// Plant is a service whose processors the calls in flight share. Each call wants some
// processor time, and before that waits for others, such as a database. It is for one
// goroutine. The zero value has no processors.
type Plant struct {
	CPUs float64

	jobs    []job
	elapsed time.Duration
	backlog float64

	busy    float64 // processor seconds since the last reading of the use
	read    time.Duration
	use     float64
	average float64
}

type job struct {
	cpu, idle time.Duration // still to come
	end       func()
}

// Due is how many calls come in this step, at a rate a second.
func (p *Plant) Due(rate float64) (calls int) {
	p.backlog += rate * Step.Seconds()
	calls = int(p.backlog)
	p.backlog -= float64(calls)
	return calls
}

// Begin has a call run. It waits for idle, works for cpu, and then end is called.
func (p *Plant) Begin(cpu, idle time.Duration, end func()) {
	p.jobs = append(p.jobs, job{cpu, idle, end})
}

// InFlight is how many calls run.
func (p *Plant) InFlight() int { return len(p.jobs) }

// Serve has every call go on for a step.
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

// Stop ends the calls that run.
func (p *Plant) Stop() {
	for _, j := range slices.Clone(p.jobs) {
		j.end()
	}
	p.jobs = nil
}

// Load is the load average as a kernel reckons it: each five seconds a step towards the
// calls that want a processor.
func (p *Plant) Load() float64 { return p.average }

// CPU is the share of the processors in use since it was read last, and half of what it was
// before.
func (p *Plant) CPU() float64 {
	if passed := p.elapsed - p.read; passed > 0 {
		p.use = (p.use + p.busy/(p.CPUs*passed.Seconds())) / 2
		p.busy, p.read = 0, p.elapsed
	}
	return p.use
}
