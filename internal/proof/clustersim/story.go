package clustersim

import (
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/stat"
)

// Story is one run for a picture: the units that each of four members admits while traffic moves,
// one of them leaves and rejoins, and the store is unreachable for a while.
type Story struct {
	Limit    int64
	Step     time.Duration
	Admitted [][]int64 // of each member, step by step
	// The steps at which the store becomes unreachable and reachable again, and at which the last
	// member leaves and rejoins.
	Away, Back, Gone, Again int
}

// Tell plays the story.
func Tell() Story {
	const limit = 4000
	st := Story{Limit: limit, Step: 50 * time.Millisecond, Gone: 70, Again: 110, Away: 150, Back: 210}
	w := NewWorld(7)
	defer w.End()
	r := w.Random
	s := w.NewServer(0)
	book := s.NewBook("story", sharing.WindowConfig{
		Shape: stat.Shape{Interval: time.Second, Buckets: 20, Strict: true}, Threshold: limit,
		Rule: cluster.Rule{Scope: cluster.Global, Timeout: 10 * time.Millisecond},
	})
	callers := make([]*Caller, 4)
	before := make([]int64, 4)
	join := func(i int) {
		l := s.NewLink(w.NewClock(0, 1))
		l.Latency, l.Jitter = 300*time.Microsecond, 300*time.Microsecond
		callers[i] = s.NewNode(l.clock, l, 0).Share(book)
		before[i] = 0
	}
	alive := []bool{true, true, true, true}
	begin := w.now
	for i := range callers {
		join(i)
		var next func()
		next = func() {
			if alive[i] {
				callers[i].Take(1, 0)
			}
			rate := 1500.0 // calls per second: one and a half times the limit
			if now := w.now - begin; now > int64(30*st.Step) && now < int64(60*st.Step) {
				rate = [4]float64{4500, 500, 500, 500}[i]
			}
			w.After(time.Duration(r.ExpFloat64()/rate*float64(time.Second)), next)
		}
		w.After(time.Duration(1+i)*time.Millisecond, next)
	}
	st.Admitted = make([][]int64, len(callers))
	for step := range 260 {
		switch step {
		case st.Gone:
			alive[3] = false
			callers[3].node.Link.Cut = true
		case st.Again:
			join(3)
			alive[3] = true
		case st.Away:
			s.Down = true
		case st.Back:
			s.Down = false
		}
		w.Run(st.Step)
		for i, c := range callers {
			st.Admitted[i] = append(st.Admitted[i], c.Admitted-before[i])
			before[i] = c.Admitted
		}
	}
	return st
}
