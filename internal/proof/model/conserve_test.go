package model

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/stat"
)

// sum counts the callers' steps at a node, each once before it begins and once after its end. The
// node's counts lie in between.
type sum struct{ asked, answered, passed, leaving, left, failed atomic.Int64 }

// known bug 3, 7: while callers come and go on every lane and buckets turn, readers of a node's
// totals see no counter decrease, no unit missing and none invented; at the end every unit is
// there.
func TestConservation(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	g, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	books.Keep(t, g.Engine())
	require.NoError(t, g.LoadRules(rules.Set{Flow: []flow.Rule{
		{ID: "rate", Resource: "a", Threshold: 40, Interval: 100 * ms},
		{ID: "room", Resource: "a", Threshold: 5, Metric: flow.Concurrency},
		{ID: "crowd", Resource: "b", Threshold: 3, Origin: "x"},
	}}))
	const writers = 8
	perWriter := figure.Size(2_000, 20_000, 200_000, 5_000_000)
	sums := make(map[place]*sum)
	for _, resource := range []string{"a", "b"} {
		sums[cluster(resource)] = new(sum)
		for _, name := range []string{"x", "y"} {
			sums[place{"origin", resource, name}] = new(sum)
			sums[place{"call", resource, contextName("")}] = new(sum)
		}
	}
	sums[inboundRoot] = new(sum)
	for p := range sums { // so that there is a node from the start
		if p.kind == "origin" {
			e, _ := g.Entry(api.WithOrigin(t.Context(), p.name), p.resource, api.Inbound())
			e.Exit()
		}
	}
	before := make(map[place]stat.Counts)
	for p := range sums {
		before[p] = nodeAt(t, g, p).Totals()
	}

	var over atomic.Bool
	var reads atomic.Int64
	var aside, callers sync.WaitGroup
	aside.Go(func() {
		for !over.Load() {
			clock.Advance(7 * ms)
			runtime.Gosched()
		}
	})
	aside.Go(func() {
		last := maps.Clone(before)
		for !over.Load() {
			for p, s := range sums {
				reads.Add(1)
				got, problem := s.look(nodeAt(t, g, p), before[p], last[p])
				if problem != "" {
					t.Errorf("%v: %s", p, problem)
					return
				}
				last[p] = got
				runtime.Gosched()
			}
		}
	})
	for w := range writers {
		callers.Go(func() { write(t, g, rand.New(rand.NewPCG(*chance.Seed, uint64(w))), perWriter, sums) })
	}
	callers.Wait()
	over.Store(true)
	aside.Wait()

	lost := int64(0)
	for p, s := range sums {
		got, was := nodeAt(t, g, p).Totals(), before[p]
		for name, d := range map[string]int64{
			"pass":      got.Pass - was.Pass - s.passed.Load(),
			"block":     got.Block - was.Block - (s.asked.Load() - s.passed.Load()),
			"complete":  got.Complete - was.Complete - s.left.Load(),
			"exception": got.Exception - was.Exception - s.failed.Load(),
		} {
			assert.Zero(t, d, "%v: %s", p, name)
			lost += max(d, -d)
		}
	}
	t.Logf("%d reads", reads.Load())
	figure.Report(t, figure.Figure{Name: "counts lost or doubled", Value: float64(lost), N: int64(writers * perWriter), Seed: *chance.Seed})
}

// look reads the totals of a node and describes any error in them.
func (s *sum) look(n *node.StatisticNode, base, was stat.Counts) (got stat.Counts, problem string) {
	answered, passed, left := s.answered.Load(), s.passed.Load(), s.left.Load()
	got = n.Totals()
	asked, leaving := s.asked.Load(), s.leaving.Load()
	for _, c := range [][2]int64{
		{was.Pass, got.Pass}, {was.Block, got.Block}, {was.Complete, got.Complete}, {was.Exception, got.Exception},
		{was.Entered, got.Entered}, {was.Exited, got.Exited}, {int64(was.RT), int64(got.RT)},
	} {
		if c[1] < c[0] {
			return got, fmt.Sprintf("a counter went back: %+v, then %+v", was, got)
		}
	}
	all, gone := got.Total()-base.Total(), got.Complete-base.Complete
	switch {
	case all < answered || all > asked:
		return got, fmt.Sprintf("%d units counted, but %d had returned before and %d had asked after", all, answered, asked)
	case got.Pass-base.Pass < passed:
		return got, fmt.Sprintf("%d units passed, %d had before", got.Pass-base.Pass, passed)
	case gone < left || gone > leaving:
		return got, fmt.Sprintf("%d units completed, %d had before and %d were about to after", gone, left, leaving)
	}
	return got, ""
}

// write makes calls and adds them up.
func write(t *testing.T, g *api.Guard, rnd *rand.Rand, calls int, sums map[place]*sum) {
	type inside struct {
		entry api.Admitted
		units int64
		at    []*sum
	}
	var open []inside
	leave := func() {
		i := rnd.IntN(len(open))
		in := open[i]
		open = append(open[:i], open[i+1:]...)
		failed := rnd.IntN(4) == 0
		for _, s := range in.at {
			s.leaving.Add(in.units)
			if failed {
				s.failed.Add(in.units)
			}
		}
		if failed {
			in.entry.Fail(errStumbled)
		}
		in.entry.Exit()
		for _, s := range in.at {
			s.left.Add(in.units)
		}
	}
	for range calls {
		c := Call{Resource: "a", Units: 1 + rnd.Int64N(3), Inbound: rnd.IntN(2) == 0, Context: contextName("")}
		if rnd.IntN(2) == 0 {
			c.Resource = "b"
		}
		c.Origin = []string{"", "x", "y"}[rnd.IntN(3)]
		c.place()
		opts := []engine.Option{api.Units(int(c.Units))}
		if c.Inbound {
			opts = append(opts, api.Inbound())
		}
		var at []*sum
		for _, p := range c.nodes {
			at = append(at, sums[p])
			sums[p].asked.Add(c.Units)
		}
		e, err := g.Entry(api.WithOrigin(t.Context(), c.Origin), c.Resource, opts...)
		for _, s := range at {
			s.answered.Add(c.Units)
			if err == nil {
				s.passed.Add(c.Units)
			}
		}
		switch {
		case err == nil:
			open = append(open, inside{e, c.Units, at})
		case !errors.Is(err, core.ErrBlocked):
			t.Error(err)
			return
		}
		for len(open) > rnd.IntN(4) {
			leave()
		}
	}
	for len(open) > 0 {
		leave()
	}
}

func nodeAt(t *testing.T, g *api.Guard, p place) *node.StatisticNode {
	t.Helper()
	if p == inboundRoot {
		return &g.Engine().Tree().Inbound().StatisticNode
	}
	r, ok := g.Engine().FindResource(p.resource)
	require.True(t, ok, p)
	switch p.kind {
	case "origin":
		o, ok := r.Origins().Find(p.name)
		require.True(t, ok, p)
		return &o.StatisticNode
	case "call":
		c, ok := r.Calls().Find(p.name)
		require.True(t, ok, p)
		return &c.StatisticNode
	}
	return &r.StatisticNode
}
