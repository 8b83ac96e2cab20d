package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/internal/simulation"
	"github.com/penstock-go/penstock/rules"
)

// traffic describes the simulated calls.
type traffic struct {
	resource string
	caller
	rate       float64 // per second
	length     time.Duration
	responds   time.Duration // duration of the guarded code
	patience   time.Duration // longest wait of a caller; 0 means as long as the rule allows
	priority   float64       // share
	failures   float64       // share
	random     bool          // calls arrive at random times
	seed       uint64
	busy       machine
	progressed func(share float64)
}

// mostCalls is the maximum number of calls: a few seconds' work.
const mostCalls = 5_000_000

// outcome is the result of the calls.
type outcome struct {
	seconds  []second
	waits    []time.Duration // of the calls that passed after a wait, sorted
	asked    int
	passed   int
	refused  int
	longest  time.Duration // until the end of the last call
	by       []refusals    // by number of refusals, the most first
	shadow   []refusals    // of rules in shadow mode, which let calls pass
	breakers []string
	ruled    bool // a rule applies to the resource
}

// second is the result of one second.
type second struct {
	asked, passed, refused int
	waited                 int           // calls that passed after a wait
	waits                  time.Duration // in total
	longest                time.Duration
	inFlight               int // maximum
}

// refusals counts the calls that a rule refused.
type refusals struct {
	Rule  string `json:"rule"` // family and id
	Calls int    `json:"calls"`
}

// start is the start of the traffic: the beginning of a second, and of every larger unit.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// play runs the traffic through an engine with these rules.
func (t traffic) play(set rules.Set) (out outcome, err error) {
	sim, guard, err := t.busy.guard(set)
	if err != nil {
		return out, err
	}
	defer sim.Close()
	defer guard.Close()
	guard.OnBreaker(func(ch breaker.Change) {
		turn := fmt.Sprintf("%v after %v: %v -> %v", ch.Rule, short(ch.At.Sub(start)), ch.From, ch.To)
		out.breakers = append(out.breakers, turn)
	})
	p := player{traffic: t, sim: sim, guard: guard, out: &out, by: make(map[string]int)}
	// Each purpose has its own stream of random numbers: more failures don't change which calls are
	// prioritized.
	p.arrivals, p.priorities, p.fails = stream(t.seed, 1), stream(t.seed, 2), stream(t.seed, 3)
	p.arrive(0)
	for (p.coming || sim.Active() > 0) && p.err == nil && sim.Step() {
	}
	out.longest = time.Duration(sim.Now() - start.UnixNano())
	slices.Sort(out.waits)
	out.by = ranked(p.by)
	shadow := make(map[string]int)
	for _, r := range guard.Tree().Rules {
		out.ruled = out.ruled || r.Asked
		if r.ShadowBlocked > 0 {
			shadow[r.Kind.String()+" "+r.ID] += int(r.ShadowBlocked)
		}
	}
	out.shadow = ranked(shadow)
	return out, p.err
}

// machine is the machine's load as rules see it.
type machine struct{ load, cpu, memory float64 }

// guard returns a guard with these rules on such a machine, and its clock.
func (m machine) guard(set rules.Set) (*simulation.Simulation, *api.Guard, error) {
	sim := simulation.New(start)
	host := simulation.Machine{LoadAverage: m.load, CPUShare: m.cpu, MemoryShare: m.memory}
	guard, err := api.New(api.Config{Clock: sim, Host: host, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, err
	}
	if err := guard.LoadRules(set); err != nil {
		return nil, nil, errors.Join(err, guard.Close())
	}
	return sim, guard, nil
}

func stream(seed, purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, purpose)) }

func ranked(by map[string]int) []refusals {
	all := make([]refusals, 0, len(by))
	for rule, calls := range by {
		all = append(all, refusals{rule, calls})
	}
	slices.SortFunc(all, func(a, b refusals) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Rule, b.Rule))
	})
	return all
}

// player is one run of the traffic.
type player struct {
	traffic
	sim                         *simulation.Simulation
	guard                       *api.Guard
	out                         *outcome
	by                          map[string]int
	arrivals, priorities, fails *rand.Rand
	number                      int  // of the next call
	coming                      bool // there is a next call
	inFlight                    int
	err                         error
}

// arrive plans the next call at a time after the start.
func (p *player) arrive(after float64) {
	if p.coming = after < p.length.Seconds(); !p.coming {
		return
	}
	p.sim.At(start.UnixNano()+int64(after*1e9), func() {
		n := p.number
		p.number++
		if p.random {
			p.arrive(after + p.arrivals.ExpFloat64()/p.rate)
		} else {
			p.arrive(float64(p.number) / p.rate)
		}
		if p.progressed != nil {
			p.progressed(after / p.length.Seconds())
		}
		p.sim.Call(func() { p.call(n) })
	})
}

// second returns the row of the current time.
func (p *player) second() *second {
	i := int((p.sim.Now() - start.UnixNano()) / int64(time.Second))
	for len(p.out.seconds) <= i {
		p.out.seconds = append(p.out.seconds, second{inFlight: p.inFlight})
	}
	return &p.out.seconds[i]
}

var errFailed = errors.New("failed")

// call runs call number n.
func (p *player) call(n int) {
	begun := p.sim.Now()
	p.out.asked++
	p.second().asked++
	ctx, opts := p.options(n)
	if p.priorities.Float64() < p.priority {
		opts = append(opts, api.Prioritized())
	}
	fails := p.fails.Float64() < p.failures
	if p.patience > 0 {
		ctx = callContext{ctx, begun + int64(p.patience)}
	}
	e, err := p.guard.Entry(ctx, p.resource, opts...)
	row := p.second()
	if err != nil {
		block, ok := errors.AsType[*api.BlockError](err)
		if !ok {
			p.err = err
			return
		}
		p.out.refused++
		row.refused++
		p.by[block.Kind.String()+" "+block.Rule]++
		return
	}
	p.out.passed++
	row.passed++
	if waited := time.Duration(p.sim.Now() - begun); waited > 0 {
		row.waited++
		row.waits += waited
		row.longest = max(row.longest, waited)
		p.out.waits = append(p.out.waits, waited)
	}
	p.inFlight++
	row.inFlight = max(row.inFlight, p.inFlight)
	err = p.sim.Sleep(context.Background(), p.responds)
	if fails {
		err = errFailed
	}
	p.inFlight--
	e.ExitOn(&err)
}

// caller describes the callers and their arguments.
type caller struct {
	origin    string
	context   string
	args      []argument
	units     int
	costs     []argument // by unit
	endpoints []string   // used in turn
	internal  bool       // the call is not inbound
}

// argument is a name or a number, and the values that calls use in turn.
type argument struct {
	name   string
	values []any
}

// options returns the options of call number n.
func (c caller) options(n int) (context.Context, []api.Option) {
	ctx := context.Background()
	if c.context != "" {
		ctx = api.WithContext(ctx, c.context)
	}
	if c.origin != "" {
		ctx = api.WithOrigin(ctx, c.origin)
	}
	opts := []api.Option{api.Units(c.units)}
	if !c.internal {
		opts = append(opts, api.Inbound())
	}
	if len(c.endpoints) > 0 {
		opts = append(opts, api.Endpoint(c.endpoints[n%len(c.endpoints)]))
	}
	for _, cost := range c.costs {
		opts = append(opts, api.Cost(cost.name, cost.values[n%len(cost.values)].(int64)))
	}
	var args []any
	for _, a := range c.args {
		value := a.values[n%len(a.values)]
		i, err := strconv.Atoi(a.name)
		if err != nil {
			opts = append(opts, api.Param(a.name, value))
			continue
		}
		for len(args) <= i {
			args = append(args, nil)
		}
		args[i] = value
	}
	if args != nil {
		opts = append(opts, api.Args(args...))
	}
	return ctx, opts
}

// callContext is the context of a call whose caller waits only until a time of the simulation.
type callContext struct {
	context.Context
	deadline int64
}

// Deadline returns the time when the caller gives up.
func (c callContext) Deadline() (time.Time, bool) { return time.Unix(0, c.deadline), true }
