package clustersim

import (
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/stat"
)

// Setup is a cluster and its traffic: calls at random moments, equally many at each member. The
// traffic to several keys begins one after the other within an interval: if all of it began at once
// and exceeded the limits, the windows would return units at the same moment of every interval.
type Setup struct {
	Members, Keys int
	Limit         int64 // of each key, in an interval
	Shape         stat.Shape
	RoundTrip     time.Duration // on average; a third of it varies
	Offered       float64       // relative to the limit
	Units         int64         // of a call
	For           time.Duration // after a second for warming up, or an interval; two with several keys
	// Moves sends all traffic to one member at a time, and to the next one after this time.
	Moves time.Duration
	// First is the share of all traffic that arrives at the first member; the others get the
	// remainder. 0 means equal shares.
	First float64
	// Unready disables leases of the next bucket.
	Unready bool
}

// Outcome is the result of a setup.
type Outcome struct {
	Over      int64         // units beyond the limit, at worst
	Used      float64       // admitted units, relative to one window in one process
	Waited    float64       // calls that waited for the store, or for a lease to begin
	Longest   time.Duration // longest such wait
	Long      float64       // share of waiting calls whose wait exceeded two of the longest round trips
	Requests  float64       // commands per member, key and bucket
	Most      int64         // maximum number of commands of a member for a key in one bucket
	Peak      float64       // commands in the busiest 50 ms, relative to the mean
	Fair      float64       // minimum units admitted by a member, relative to the maximum
	PerSecond float64       // commands
	Rest      float64       // admitted share of the calls to all members but the first
}

// Play simulates the setup.
func Play(setup Setup, seed uint64) (o Outcome) {
	w := NewWorld(seed)
	defer w.End()
	r := w.Random
	s := w.NewServer(0)
	s.Unready = setup.Unready
	cfg := sharing.WindowConfig{Shape: setup.Shape, Threshold: float64(setup.Limit), Rule: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed}}
	keys := max(1, setup.Keys)
	books, locals := make([]*Book, keys), make([]*stat.Window, keys)
	for k := range books {
		books[k] = s.NewBook(string(rune('a'+k)), cfg)
		locals[k] = books[k].Local()
	}
	local := int64(0)
	callers := make([][]*Caller, setup.Members)
	for i := range callers {
		c := w.NewClock(time.Duration(r.Int64N(int64(time.Hour))), 1+(r.Float64()-0.5)/1000)
		l := s.NewLink(c)
		l.Latency, l.Jitter = setup.RoundTrip/3, setup.RoundTrip/3
		n := s.NewNode(c, l, 0)
		for k := range books {
			caller := n.Share(books[k])
			caller.Patience = 2 * (setup.RoundTrip + setup.RoundTrip/3)
			callers[i] = append(callers[i], caller)
		}
	}
	rate := setup.Offered * float64(setup.Limit) / setup.Shape.Interval.Seconds() / float64(setup.Units) // calls per second and key
	each := func(int) float64 { return rate }
	switch {
	case setup.First > 0:
		each = func(i int) float64 {
			if i == 0 {
				return rate * setup.First
			}
			return rate * (1 - setup.First) / float64(setup.Members-1)
		}
	case setup.Moves == 0:
		rate /= float64(setup.Members)
	}
	begin := w.now
	call := func(c *Caller, k int) {
		if _, ok := locals[k].TryAdd(0, w.now, setup.Units, setup.Limit); ok {
			local += setup.Units
		}
		c.Take(setup.Units, 0)
	}
	for i := range callers {
		if setup.Moves > 0 && i > 0 {
			break
		}
		rate := each(i)
		for k, c := range callers[i] {
			var next func()
			next = func() {
				if setup.Moves > 0 {
					c = callers[int((w.now-begin)/int64(setup.Moves))%setup.Members][k]
				}
				call(c, k)
				w.After(time.Duration(r.ExpFloat64()/rate*float64(time.Second)), next)
			}
			starts := setup.Shape.Interval * time.Duration(k) / time.Duration(keys)
			w.After(starts+time.Duration(r.ExpFloat64()/rate*float64(time.Second)), next)
		}
	}
	warm := max(time.Second, setup.Shape.Interval)
	if keys > 1 {
		warm += setup.Shape.Interval
	}
	w.Run(warm)
	local = 0
	s.Commands, s.Busiest, s.MostTaken = 0, 0, 0
	for _, of := range callers {
		for _, c := range of {
			c.Calls, c.Waited, c.Admitted, c.Longest, c.Long = 0, 0, 0, 0, 0
		}
	}
	w.Run(setup.For)

	var calls, waited, long, admitted, first, firsts int64
	least, most := int64(-1), int64(0)
	for i, of := range callers {
		mine := int64(0)
		for _, c := range of {
			calls += c.Calls
			waited += c.Waited
			long += c.Long
			mine += c.Admitted
			o.Longest = max(o.Longest, c.Longest)
		}
		admitted += mine
		if i == 0 {
			first, firsts = mine, calls
		}
		if most = max(most, mine); least < 0 || mine < least {
			least = mine
		}
	}
	for _, b := range books {
		o.Over = max(o.Over, b.Over())
	}
	buckets := setup.For.Seconds() / setup.Shape.Width().Seconds()
	o.Used = float64(admitted) / float64(max(1, local))
	o.Waited = float64(waited) / float64(max(1, calls))
	o.Long = float64(long) / float64(max(1, waited))
	o.Requests = float64(s.Commands) / float64(setup.Members*keys) / buckets
	o.Most = s.MostTaken
	o.PerSecond = float64(s.Commands) / setup.For.Seconds()
	o.Peak = float64(s.Busiest) / (o.PerSecond / 20)
	o.Rest = float64(admitted-first) / float64(max(1, calls-firsts)*setup.Units)
	o.Fair = float64(least) / float64(max(1, most))
	return o
}
