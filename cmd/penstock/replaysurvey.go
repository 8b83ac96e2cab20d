package main

import (
	"cmp"
	"container/heap"
	"fmt"
	"iter"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/sketch"
	"github.com/penstock-go/penstock/replay"
)

// Bounds of a survey's memory.
const (
	maxRoutes   = 1000    // the others count as otherRoutes
	maxHeavy    = 2000    // clients that are counted
	maxInFlight = 1 << 20 // calls
)

// Bounds of the screen.
const (
	shownRoutes  = 10
	shownClients = 10
)

const otherRoutes = "(other routes)"

// suggestedRefusals is the share of a route's calls that a suggested limit may refuse.
const suggestedRefusals = 0.001

// survey describes traffic.
type survey struct {
	From          time.Time     `json:"from"`
	To            time.Time     `json:"to"`
	Calls         int64         `json:"calls"`
	Failed        int64         `json:"failed"`
	BusiestSecond peak          `json:"busiestSecond"`
	BusiestMinute peak          `json:"busiestMinute"`
	InFlight      *peak         `json:"mostInFlight,omitempty"` // nil if no durations are logged
	Routes        []routeSurvey `json:"routes"`
	OtherRoutes   int           `json:"otherRoutes"`
	Clients       int64         `json:"clients"`
	Heaviest      []clientShare `json:"heaviestClients"`
	Input         jsonInput     `json:"input"`

	routes  map[string]*routeTally
	all     *routeTally
	minute  peak
	clients sketch.Distinct
	heavy   *sketch.Frequent
	running inFlight
	timed   bool
	most    peak // in flight
}

// peak is a number of calls, and its time.
type peak struct {
	At    time.Time `json:"at"`
	Calls int64     `json:"calls"`
}

// routeSurvey describes the traffic of a route. The quantiles are calls a second, over the seconds
// with calls.
type routeSurvey struct {
	Route    string `json:"route"`
	Calls    int64  `json:"calls"`
	Median   int64  `json:"median"`
	P99      int64  `json:"p99"`
	P999     int64  `json:"p999"`
	Max      int64  `json:"max"`
	InFlight int64  `json:"inFlight,omitempty"`
	// Limit is the suggested threshold of a flow rule, in calls a second, and Refused the number of
	// calls that this rule would have refused. 0 if there is none.
	Limit   int64 `json:"limit,omitempty"`
	Refused int64 `json:"refused"`
}

// clientShare is a client's share of all calls.
type clientShare struct {
	Client string  `json:"client,omitempty"`
	Calls  int64   `json:"calls"`
	Share  float64 `json:"share"`
}

// routeTally counts the calls of a route.
type routeTally struct {
	name      string
	calls     int64
	second    int64 // of the count below
	count     int64
	perSecond sketch.Histogram
	running   int64
	most      int64
}

// inFlight are the calls that run, by their end.
type inFlight []running

type running struct {
	end   int64
	route *routeTally
}

func (r inFlight) Len() int           { return len(r) }
func (r inFlight) Less(i, j int) bool { return r[i].end < r[j].end }
func (r inFlight) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *inFlight) Push(x any)        { *r = append(*r, x.(running)) }
func (r *inFlight) Pop() any {
	last := len(*r) - 1
	x := (*r)[last]
	*r = (*r)[:last]
	return x
}

func newSurvey() *survey {
	return &survey{routes: make(map[string]*routeTally), all: new(routeTally), heavy: sketch.NewFrequent(maxHeavy)}
}

// add counts a call. Calls are in order.
func (s *survey) add(c replay.Call) {
	now := c.At.UnixNano()
	if s.Calls == 0 {
		s.From = c.At.UTC()
	}
	s.To = c.At.UTC()
	s.Calls++
	if c.Failed {
		s.Failed++
	}
	second, minute := c.At.Truncate(time.Second).UTC(), c.At.Truncate(time.Minute).UTC()
	s.all.add(now)
	if s.all.count > s.BusiestSecond.Calls {
		s.BusiestSecond = peak{second, s.all.count}
	}
	if !s.minute.At.Equal(minute) {
		s.minute = peak{At: minute}
	}
	if s.minute.Calls++; s.minute.Calls > s.BusiestMinute.Calls {
		s.BusiestMinute = s.minute
	}
	route := s.routes[c.Resource]
	if route == nil {
		name := c.Resource
		if len(s.routes) >= maxRoutes {
			name = otherRoutes
		}
		if route = s.routes[name]; route == nil {
			route = &routeTally{name: name}
			s.routes[name] = route
		}
	}
	route.add(now)
	if c.Client != "" {
		s.clients.Add(c.Client)
		s.heavy.Add(c.Client, 1)
	}
	if c.Took < 0 {
		return
	}
	s.timed = true
	for len(s.running) > 0 && (s.running[0].end <= now || len(s.running) == maxInFlight) {
		heap.Pop(&s.running).(running).route.running--
	}
	heap.Push(&s.running, running{now + int64(c.Took), route})
	route.running++
	route.most = max(route.most, route.running)
	if n := int64(len(s.running)); n > s.most.Calls {
		s.most = peak{c.At.UTC(), n}
	}
}

func (r *routeTally) add(now int64) {
	if second := now / int64(time.Second); second != r.second {
		r.perSecond.Add(r.count, min(r.count, 1))
		r.second, r.count = second, 0
	}
	r.count++
	r.calls++
}

// finish fills in the results, except for what the suggestions would have refused.
func (s *survey) finish() {
	if s.timed {
		s.InFlight = &s.most
	}
	s.Clients = s.clients.Count()
	for _, c := range s.heavy.Top(shownClients) {
		n := c.Count - c.Extra
		if s.Clients > maxHeavy && n*maxHeavy < s.Calls {
			break // it may not be among the heaviest
		}
		s.Heaviest = append(s.Heaviest, clientShare{c.Text, n, float64(n) / float64(s.Calls)})
	}
	for _, r := range s.routes {
		r.perSecond.Add(r.count, 1)
		h := &r.perSecond
		route := routeSurvey{
			Route: r.name, Calls: r.calls, Median: h.Quantile(0.5), P99: h.Quantile(0.99), P999: h.Quantile(0.999), Max: h.Max(), InFlight: r.most,
		}
		if r.name != otherRoutes && plain(r.name) {
			route.Limit = h.Limit(int64(suggestedRefusals * float64(r.calls)))
		}
		s.Routes = append(s.Routes, route)
	}
	slices.SortFunc(s.Routes, func(a, b routeSurvey) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Route, b.Route))
	})
	if len(s.Routes) > shownRoutes {
		s.OtherRoutes = len(s.Routes) - shownRoutes
		s.Routes = s.Routes[:shownRoutes]
	}
}

// plain reports whether a name may stand in a suggested rule: clients choose the names of learned
// routes.
func plain(name string) bool { return utf8.ValidString(name) && harmless(name) == name }

// candidates returns the thresholds to try for a route, from the limit that is enough in seconds of
// the clock: a flow rule's limit holds in every second, so some calls more may exceed it.
func candidates(limit int64) []int64 {
	all := []int64{limit, limit + 1, limit + 2, limit + 3}
	for _, percent := range []int64{2, 5, 10, 25, 50, 100} {
		all = append(all, limit+(limit*percent+99)/100)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// judge plays the calls through rules with all candidates, in shadow mode, where each decides for
// itself. It suggests the least that refuses at most the share suggestedRefusals.
func (s *survey) judge(calls iter.Seq[replay.Call]) error {
	var set api.RuleSet
	for _, r := range s.Routes {
		if r.Limit > 0 {
			for _, limit := range candidates(r.Limit) {
				set.Flow = append(set.Flow, flow.Rule{
					ID: fmt.Sprint(r.Route, " ", limit), Resource: r.Route, Threshold: float64(limit), Mode: api.Shadow,
				})
			}
		}
	}
	report, err := replay.Play(set, calls)
	if err != nil {
		return err
	}
	refused := make(map[string]int64)
	for _, r := range report.Rules {
		refused[r.ID] = r.Refused
	}
	for i := range s.Routes {
		r := &s.Routes[i]
		if r.Limit == 0 {
			continue
		}
		for _, limit := range candidates(r.Limit) {
			r.Limit, r.Refused = limit, refused[fmt.Sprint(r.Route, " ", limit)]
			if float64(r.Refused) <= suggestedRefusals*float64(r.Calls) {
				break
			}
		}
	}
	return nil
}
