package clustersim

import (
	"cmp"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/stat"
)

// Trouble is a failure, and the allowed excess over a limit during it.
type Trouble struct {
	Name  string
	Bound float64 // relative to the limit, in one interval
	// guess is the number of members that each member is configured with; 0 means the true number.
	// With a guess the store is unreachable from the start, so that no member can correct it.
	guess  int
	uneven bool
	closed bool // nothing is decided without the store
	// offered is the traffic relative to the limit; 0 means 2.
	offered float64
	begin   func(*stage, time.Duration) // for that long
}

// stage is the cluster in which it happens.
type stage struct {
	world   *World
	server  *Server
	book    *Book
	guess   int
	callers []*Caller
}

// join adds a new member at a position.
func (s *stage) join(place int) {
	r := s.world.Random
	l := s.server.NewLink(s.world.NewClock(time.Duration(r.Int64N(int64(time.Hour))), 1+(r.Float64()-0.5)/1000))
	l.Latency, l.Jitter = 500*time.Microsecond, time.Millisecond
	s.callers[place] = s.server.NewNode(l.clock, l, s.guess).Share(s.book)
}

const (
	troubleMembers = 8
	troubleLimit   = 1600
)

// Troubles lists the failures that the page names.
var Troubles = []Trouble{
	{Name: "batches lost, repeated and late, with closed", Bound: 1, closed: true, begin: func(s *stage, d time.Duration) {
		for _, c := range s.callers {
			l := c.node.Link
			l.LostBefore, l.LostAfter, l.Repeated, l.Jitter = 0.05, 0.05, 0.2, 8*time.Millisecond
			s.world.After(d, func() { l.LostBefore, l.LostAfter, l.Repeated = 0, 0, 0 })
		}
	}},
	{Name: "members stopped and resumed", Bound: 1, begin: func(s *stage, d time.Duration) {
		for i, c := range s.callers[:4] {
			c.node.Clock.Stop(d / time.Duration(1+i))
		}
	}},
	{Name: "a member gone, a new one there", Bound: 1, begin: func(s *stage, d time.Duration) {
		c := s.callers[0]
		c.node.Member.Close()
		c.node.Clock.Stop(time.Hour)
		s.world.After(d, func() { s.join(0) })
	}},
	{Name: "3 of 8 members cut off", Bound: 1 + 3.0/8, begin: func(s *stage, d time.Duration) {
		for _, c := range s.callers[:3] {
			c.node.Link.Cut = true
			s.world.After(d, func() { c.node.Link.Cut = false })
		}
	}},
	{Name: "the store away, even traffic up to the limit", Bound: 1, offered: 0.95, begin: func(s *stage, d time.Duration) {
		s.server.Down = true
		s.world.After(d, func() { s.server.Down = false })
	}},
	{Name: "the store away, even traffic beyond it", Bound: 2 - 1.0/8, begin: func(s *stage, d time.Duration) {
		s.server.Down = true
		s.world.After(d, func() { s.server.Down = false })
	}},
	{Name: "the store away, traffic moves", Bound: 2 - 1.0/8, uneven: true, begin: func(s *stage, d time.Duration) {
		s.server.Down = true
		s.world.After(d, func() { s.server.Down = false })
	}},
	{Name: "the store away from the start, 8 assume 4", Bound: 8.0/4 + 1 - 1.0/4, guess: 4, offered: 3, begin: func(s *stage, d time.Duration) {
		s.world.After(d, func() { s.server.Down = false })
	}},
	{Name: "all keys lost", Bound: 2, begin: func(s *stage, _ time.Duration) { s.server.Flush() }},
	{Name: "a replica takes over, 100 ms behind", Bound: 2, begin: func(s *stage, _ time.Duration) { s.server.Failover() }},
	{Name: "the clock of the store jumps ahead by 300 ms", Bound: 2, begin: func(s *stage, _ time.Duration) { s.server.Clock.Step(300 * time.Millisecond) }},
	{Name: "it jumps ahead by an hour", Bound: 2, begin: func(s *stage, _ time.Duration) { s.server.Clock.Step(time.Hour) }},
	{Name: "it jumps back by 50 ms", Bound: 1, begin: func(s *stage, _ time.Duration) { s.server.Clock.Step(-50 * time.Millisecond) }},
	{Name: "it jumps back by 900 ms", Bound: 1, begin: func(s *stage, _ time.Duration) { s.server.Clock.Step(-900 * time.Millisecond) }},
	{Name: "it jumps back by an hour", Bound: 1, begin: func(s *stage, _ time.Duration) { s.server.Clock.Step(-time.Hour) }},
}

// Play simulates the failure with a seed. It returns the most units admitted in any interval of
// real time, relative to the limit.
func (tr Trouble) Play(seed uint64) float64 {
	w := NewWorld(seed)
	defer w.End()
	r := w.Random
	s := w.NewServer(100 * time.Millisecond)
	s.Down = tr.guess > 0
	shape := stat.Shape{Interval: time.Second, Buckets: 10, Strict: true}
	rule := cluster.Rule{Scope: cluster.Global}
	if tr.closed {
		rule.OnFailure = cluster.Closed
	}
	book := s.NewBook("w", sharing.WindowConfig{Shape: shape, Threshold: troubleLimit, Rule: rule})
	book.Keeps = true
	st := &stage{world: w, server: s, book: book, guess: tr.guess, callers: make([]*Caller, troubleMembers)}
	for i := range st.callers {
		st.join(i)
	}
	turned := false
	for i := range st.callers {
		var next func()
		next = func() {
			c := st.callers[i]
			if tr.uneven && !turned { // until then one member has all the traffic
				c = st.callers[0]
			}
			if !c.node.Clock.Stopped() {
				c.Take(1, 0)
			}
			w.After(time.Duration(r.ExpFloat64()*float64(time.Second)*troubleMembers/(cmp.Or(tr.offered, 2)*troubleLimit)), next)
		}
		w.After(time.Duration(r.Int64N(int64(10*time.Millisecond))), next)
	}
	w.Run(2500*time.Millisecond + time.Duration(r.Int64N(int64(time.Second))))
	turned = true
	tr.begin(st, 1500*time.Millisecond+time.Duration(r.Int64N(int64(500*time.Millisecond))))
	w.Run(4 * time.Second)
	return float64(book.MostIn(shape.Interval)) / troubleLimit
}

// Worst returns the worst result over the given number of seeds.
func (tr Trouble) Worst(seeds int) (worst float64) {
	for seed := range uint64(seeds) {
		worst = max(worst, tr.Play(1+seed))
	}
	return worst
}
