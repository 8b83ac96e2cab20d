package replay

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/simulation"
	"github.com/penstock-go/penstock/internal/sketch"
)

// Call is a call of the traffic.
type Call struct {
	At       time.Time     // arrival
	Took     time.Duration // from the time at which the call may run; 0 or less if it ends at once
	Resource string
	Client   string  // the caller in the Report, such as an address; "" if unknown
	Origin   string  // see api.WithOrigin
	Params   []Param // arguments, for hotspot rules
	Units    int     // 0 means 1
	Failed   bool    // breakers count it as a failure
}

// Param is an argument of a call; see api.Param.
type Param struct {
	Name  string
	Value any
}

// Bounds of a replay.
const (
	maxRunning = 1 << 20 // calls
	maxKnown   = 50_000  // targets whose rules are remembered
	maxClients = 1000    // counted for each rule
	topClients = 10      // reported for each rule
)

// Play plays inbound calls through rules and reports the outcome. The calls must be in the order of
// their arrival: an earlier one arrives with the one before it. The machine is idle, so rules about
// its load refuse nothing. Rules that processes share need a store, and are an error. Memory doesn't
// depend on the number of calls.
func Play(set api.RuleSet, calls iter.Seq[Call]) (report Report, err error) {
	p := player{
		known: make(map[target][]int),
		index: make(map[rule]int),
		last:  -1 << 63,
	}
	for call := range calls {
		if p.guard == nil {
			if err := p.begin(set, call.At); err != nil {
				return Report{}, err
			}
			defer p.sim.Close()
			defer p.guard.Close()
		}
		if p.play(call); p.err != nil {
			return Report{}, p.err
		}
	}
	if p.guard == nil {
		if err := p.begin(set, time.Unix(0, 0)); err != nil {
			return Report{}, err
		}
		defer p.guard.Close()
	}
	for (p.running > 0 || p.sim.Active() > 0) && p.err == nil && p.sim.Step() {
	}
	if p.err != nil {
		return Report{}, p.err
	}
	return p.finished(), nil
}

type player struct {
	sim     *simulation.Simulation
	guard   *api.Guard
	call    Call             // that arrives now
	enter   func()           // runs it
	known   map[target][]int // the rules that apply
	index   map[rule]int     // in rules
	rules   []*tally
	running int
	last    int64 // arrival of the last call
	first   int64
	clients sketch.Distinct
	report  Report
	err     error
}

// target is a resource, and what else decides which of its rules apply to a call: its origin, and
// which params it has.
type target struct {
	resource, origin string
	params           uint64 // a hash of the names
}

// rule is a rule's family and id.
type rule struct {
	kind, id string
}

// tally counts the calls of one rule.
type tally struct {
	Rule
	waits   bool // it makes calls wait
	wait    sketch.Histogram
	clients sketch.Distinct
	top     *sketch.Frequent
	second  int64 // of the counts below
	offered int64
	refused int64
}

var errFailed = errors.New("failed")

func (p *player) begin(set api.RuleSet, at time.Time) (err error) {
	p.first = at.UnixNano()
	p.sim = simulation.New(at)
	p.enter = p.run
	p.guard, err = api.New(api.Config{Clock: p.sim, Host: simulation.Machine{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := p.guard.LoadRules(set); err != nil {
		return errors.Join(err, p.guard.Close())
	}
	waits := waiting(p.guard.Rules())
	for _, r := range p.guard.RuleStats() {
		if r.Mode == api.Off {
			continue
		}
		p.index[rule{r.Kind.String(), r.ID}] = len(p.rules)
		p.rules = append(p.rules, &tally{
			Rule:  Rule{Kind: r.Kind.String(), ID: r.ID, Resource: r.Resource, Shadow: r.Mode == api.Shadow},
			waits: waits[rule{r.Kind.String(), r.ID}],
			top:   sketch.NewFrequent(maxClients),
		})
	}
	p.guard.OnBreaker(func(c breaker.Change) {
		if i, ok := p.index[rule{api.KindBreaker.String(), c.Rule}]; ok && c.To == breaker.Open {
			p.rules[i].Opened++
		}
	})
	return nil
}

// waiting returns the rules with a longest wait, of any family.
func waiting(set api.RuleSet) map[rule]bool {
	waits := make(map[rule]bool)
	for family, list := range reflect.ValueOf(set).Fields() {
		kind, _, _ := strings.Cut(family.Tag.Get("yaml"), ",")
		for i := range list.Len() {
			r := list.Index(i)
			if wait := r.FieldByName("MaxWait"); wait.IsValid() && wait.Int() > 0 {
				waits[rule{kind, r.FieldByName("ID").String()}] = true
			}
		}
	}
	return waits
}

// play advances the clock to a call and runs it until it waits or ends.
func (p *player) play(call Call) {
	at := max(call.At.UnixNano(), p.last)
	p.last = at
	p.sim.Run(at)
	p.call = call
	p.sim.Call(p.enter)
}

func (p *player) run() {
	call := p.call
	began := p.sim.Now()
	p.report.Offered++
	if call.Client != "" {
		p.clients.Add(call.Client)
	}
	ctx := context.Background()
	if call.Origin != "" {
		ctx = api.WithOrigin(ctx, call.Origin)
	}
	opts := make([]api.Option, 0, 8)
	opts = append(opts, api.Inbound(), api.Units(max(call.Units, 1)))
	for _, param := range call.Params {
		opts = append(opts, api.Param(param.Name, param.Value))
	}
	applied, err := p.applied(ctx, call, opts)
	if err != nil {
		p.err = err
		return
	}
	for _, i := range applied {
		p.rules[i].at(began).offered++
		p.rules[i].Offered++
	}
	e, err := p.guard.Entry(ctx, call.Resource, opts...)
	if err != nil {
		p.refused(call, err)
		return
	}
	waited := p.sim.Now() - began
	p.report.Passed++
	if waited > 0 {
		p.report.Waited++
	}
	for _, i := range applied {
		r := p.rules[i]
		r.Passed++
		if waited > 0 && r.waits {
			r.wait.Add(waited, 1)
		}
	}
	exit := func() {
		if call.Failed {
			err := errFailed
			p.report.Failed++
			e.ExitOn(&err)
			return
		}
		e.Exit()
	}
	switch {
	case call.Took <= 0:
		exit()
	case p.running == maxRunning:
		p.report.Cut++
		exit()
	default:
		p.running++
		p.sim.At(p.sim.Now()+int64(call.Took), func() {
			p.running--
			exit()
		})
	}
}

// refused counts a refusal at its rule.
func (p *player) refused(call Call, err error) {
	block, ok := errors.AsType[*api.BlockError](err)
	if !ok {
		p.err = err
		return
	}
	p.report.Refused++
	i, ok := p.index[rule{block.Kind.String(), block.Rule}]
	if !ok {
		return
	}
	r := p.rules[i]
	r.Refused++
	r.at(p.sim.Now()).refused++
	if call.Client != "" {
		r.clients.Add(call.Client)
		r.top.Add(call.Client, 1)
	}
}

// applied returns the rules that apply to a call, and remembers them for calls of the same target.
func (p *player) applied(ctx context.Context, call Call, opts []api.Option) ([]int, error) {
	at := target{call.Resource, call.Origin, 0}
	for _, param := range call.Params {
		at.params = sketch.Hash(at.params, param.Name)
	}
	if known, ok := p.known[at]; ok {
		return known, nil
	}
	x, err := p.guard.Explain(ctx, call.Resource, opts...)
	if err != nil {
		return nil, err
	}
	var all []int
	for _, r := range x.Rules {
		if i, ok := p.index[rule{r.Kind.String(), r.ID}]; ok && r.Outcome != core.NotJudged {
			all = append(all, i)
		}
	}
	if len(p.known) == maxKnown {
		clear(p.known)
	}
	p.known[at] = all
	return all, nil
}

// at returns the tally with its counts of the second of a time.
func (r *tally) at(now int64) *tally {
	second := now - now%int64(time.Second)
	if second != r.second {
		r.compare()
		r.second, r.offered, r.refused = second, 0, 0
	}
	return r
}

// compare makes the current second the worst one if it is.
func (r *tally) compare() {
	if r.refused > r.Worst.Refused {
		r.Worst = Second{time.Unix(0, r.second).UTC(), r.offered, r.refused}
	}
}

func (p *player) finished() Report {
	report := p.report
	if report.Offered > 0 {
		report.From, report.To = time.Unix(0, p.first).UTC(), time.Unix(0, p.last).UTC()
	}
	report.Clients = p.clients.Count()
	for _, s := range p.guard.RuleStats() {
		i, ok := p.index[rule{s.Kind.String(), s.ID}]
		if !ok {
			continue
		}
		r := p.rules[i]
		r.compare()
		if r.Shadow {
			r.Refused = s.ShadowBlocked
		}
		r.Waited = r.wait.Count()
		r.WaitP50, r.WaitP99 = time.Duration(r.wait.Quantile(0.5)), time.Duration(r.wait.Quantile(0.99))
		r.WaitMax = time.Duration(r.wait.Max())
		r.Clients = r.clients.Count()
		for _, c := range r.top.Top(topClients) {
			r.Top = append(r.Top, Client{c.Text, c.Count - c.Extra})
		}
		report.Rules = append(report.Rules, r.Rule)
	}
	return report
}
