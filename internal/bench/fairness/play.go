package main

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/meter"
)

// scenario is a limit and the tenants that ask for it.
type scenario struct {
	limit   int64
	queue   int
	length  time.Duration
	tenants []tenant
}

// tenant either asks at random with a rate, or always has calls waiting.
type tenant struct {
	rate    float64 // calls per second
	waiting int
	mean    time.Duration // of an exponential distribution
	weight  int64
	units   int64
}

// outcome holds the figures of each tenant, without the first tenth of the time.
type outcome struct {
	scenario
	tenants    []share
	inversions int // calls served of a tenant at or above its fair part while one below waited
}

type share struct {
	asked, turnedAway int
	waits             []time.Duration
	area              float64 // units by seconds

	held    int64
	waiting int
}

func (x *share) refused() float64 { return float64(x.turnedAway) / float64(max(1, x.asked)) }

func (x *share) permits(length time.Duration) float64 { return x.area / (length.Seconds() * 9 / 10) }

func (x *share) wait() (mean time.Duration) {
	for _, w := range x.waits {
		mean += w
	}
	return mean / time.Duration(max(1, len(x.waits)))
}

func (x *share) p99() time.Duration {
	slices.Sort(x.waits)
	return x.waits[len(x.waits)*99/100]
}

// jain returns Jain's index of what tenants got over what max-min fairness gives them: what they
// ask for, and to those who ask for more, the rest.
func (o *outcome) jain() float64 {
	fair := o.maxMin()
	sum, squares := 0.0, 0.0
	for i := range o.tenants {
		x := o.tenants[i].permits(o.length) / fair[i]
		sum, squares = sum+x, squares+x*x
	}
	return sum * sum / (float64(len(fair)) * squares)
}

func (o *outcome) maxMin() []float64 {
	fair := make([]float64, len(o.tenants))
	left, open := float64(o.limit), len(fair)
	for open > 0 {
		part, settled := left/float64(open), false
		for i, x := range o.scenario.tenants {
			if want := x.rate * x.mean.Seconds() * float64(x.units); fair[i] == 0 && want < part {
				fair[i], left, open, settled = want, left-want, open-1, true
			}
		}
		if !settled {
			for i := range fair {
				if fair[i] == 0 {
					fair[i], open = part, 0
				}
			}
		}
	}
	return fair
}

// event happens at a time; equal times in the order of their numbers.
type event struct {
	at     time.Duration
	number int
	run    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].number < e[j].number
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// simulation runs one scenario.
type simulation struct {
	outcome
	sharing   *meter.Sharing // nil if calls are served in order
	semaphore meter.Semaphore
	now       time.Duration
	events    events
	number    int
	random    *rand.Rand
}

// play returns the outcome of a scenario, with shares or without.
func play(s scenario, fair bool) *outcome {
	x := &simulation{outcome: outcome{scenario: s, tenants: make([]share, len(s.tenants))}, random: rand.New(rand.NewPCG(1, 2))}
	if fair {
		x.sharing = &meter.Sharing{Now: func() int64 { return int64(x.now) + 1 }, By: "param tenant", PerShare: s.queue, MaxShares: 1000, Weights: map[argument.Value]int64{}}
		for i, t := range s.tenants {
			x.sharing.Weights[argument.Int(int64(i))] = t.weight
		}
	}
	for i, t := range s.tenants {
		if t.rate > 0 {
			x.arrive(i)
		}
		x.fill(i)
	}
	x.play()
	return &x.outcome
}

func (x *simulation) play() {
	for len(x.events) > 0 && x.now < x.length {
		e := heap.Pop(&x.events).(event)
		x.now = e.at
		e.run()
	}
}

func (x *simulation) after(d time.Duration, run func()) {
	x.number++
	heap.Push(&x.events, event{x.now + d, x.number, run})
}

func (x *simulation) exponential(mean time.Duration) time.Duration {
	return time.Duration(x.random.ExpFloat64() * float64(mean))
}

func (x *simulation) counts() bool { return x.now >= x.length/10 }

// arrive makes a tenant ask at random times.
func (x *simulation) arrive(i int) {
	x.after(x.exponential(time.Duration(float64(time.Second)/x.scenario.tenants[i].rate)), func() {
		x.ask(i)
		x.arrive(i)
	})
}

// fill keeps the calls of a tenant waiting.
func (x *simulation) fill(i int) {
	for x.outcome.tenants[i].waiting < x.scenario.tenants[i].waiting {
		x.ask(i)
	}
}

func (x *simulation) ask(i int) {
	t, got := &x.scenario.tenants[i], &x.outcome.tenants[i]
	c := meter.Claim{Units: t.units, Queue: x.queue, Limit: x.limit, Revision: 1}
	var ok bool
	var s *meter.Share
	var place *meter.Waiter
	if x.sharing == nil {
		ok, place = x.semaphore.Join(0, c)
	} else {
		ok, s, place = x.semaphore.JoinShare(c, x.sharing, &meter.Tenant{Name: argument.Int(int64(i))}, int64(x.now)+1)
	}
	counts, since := x.counts(), x.now
	if counts {
		got.asked++
	}
	refuse := func() {
		if counts {
			got.turnedAway++
		}
	}
	switch {
	case ok:
		x.serve(i, s, since, counts)
	case place == nil:
		refuse()
	default:
		got.waiting++
		place.Attend(func() {
			got.waiting--
			if place.Granted() {
				x.judge(i)
				x.serve(i, place.Share(), since, counts)
			} else {
				refuse()
			}
			x.after(0, func() { x.fill(i) })
		})
	}
}

// judge counts a call that is served although its tenant isn't below its fair part, and one below
// waits.
func (x *simulation) judge(i int) {
	weights := x.scenario.tenants[i].weight // its call has just stopped waiting
	for j, y := range x.outcome.tenants {
		if j != i && (y.held > 0 || y.waiting > 0) {
			weights += x.scenario.tenants[j].weight
		}
	}
	below := func(j int) bool {
		return x.outcome.tenants[j].held*weights < x.limit*x.scenario.tenants[j].weight
	}
	if below(i) {
		return
	}
	for j, y := range x.outcome.tenants {
		if j != i && y.waiting > 0 && below(j) {
			x.inversions++
			return
		}
	}
}

// serve runs a call.
func (x *simulation) serve(i int, s *meter.Share, since time.Duration, counts bool) {
	t, got := &x.scenario.tenants[i], &x.outcome.tenants[i]
	if counts {
		got.waits = append(got.waits, x.now-since)
	}
	got.held += t.units
	began := x.now
	x.after(max(1, x.exponential(t.mean)), func() {
		if from := max(began, x.length/10); x.now > from {
			got.area += float64(t.units) * (x.now - from).Seconds()
		}
		got.held -= t.units
		if s != nil {
			s.Release(t.units, false)
		} else {
			x.semaphore.Release(0, t.units)
		}
	})
}
