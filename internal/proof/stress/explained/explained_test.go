package explained

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
)

func TestMain(m *testing.M) { books.Main(m) }

// pair is a guard that explains each call before it is made, and one that never explains.
type pair struct {
	*testing.T
	*rand.Rand
	guards [2]*api.Guard
	clocks [2]*clocks.Manual
	open   [][2]api.Admitted
	set    api.RuleSet
}

func newPair(t *testing.T, r *rand.Rand, cfg api.Config) *pair {
	t.Helper()
	p := &pair{T: t, Rand: r}
	for i := range p.guards {
		p.clocks[i] = api.NewManualClock(time.Unix(1_700_000_000, 0))
		p.clocks[i].SetSleep(clocks.SleepAdvance)
		cfg.Clock, cfg.Logger = p.clocks[i], slog.New(slog.DiscardHandler)
		var err error
		p.guards[i], err = api.New(cfg)
		require.NoError(t, err)
		books.Keep(t, p.guards[i].Engine())
	}
	return p
}

func (p *pair) load(set api.RuleSet) {
	p.Helper()
	p.set = set
	for _, g := range p.guards {
		require.NoError(p, g.LoadRules(set))
	}
}

func (p *pair) advance(d time.Duration) {
	for _, c := range p.clocks {
		c.Advance(d)
	}
}

// ended is a context that has ended, and counts how often its end is checked, which waiting callers
// do.
type ended struct {
	context.Context
	is    bool
	asked *int
}

func (c *ended) Err() error {
	*c.asked++
	return context.Canceled
}

// call is a call with its options.
type call struct {
	ctx      context.Context
	resource string
	opts     []api.Option
	text     string

	prioritized bool
}

func (p *pair) drawCall() call {
	c := call{ctx: p.Context(), resource: pick(p.Rand, resources...)}
	if name := pick(p.Rand, contexts...); name != "" {
		c.ctx = api.WithContext(c.ctx, name)
	}
	origin := pick(p.Rand, origins...)
	if origin != "" {
		c.ctx = api.WithOrigin(c.ctx, origin)
	}
	units, inbound, prioritized, user := 1, p.IntN(2) == 0, p.IntN(5) == 0, pick(p.Rand, "", "u1", "u2", "u3", "u4", "u5", "u6")
	if p.IntN(4) == 0 {
		units = pick(p.Rand, 2, 3, 10)
	}
	c.opts = append(c.opts, api.Units(units), api.Args(pick(p.Rand, 1, 2, 3, 4)))
	if inbound {
		c.opts = append(c.opts, api.Inbound())
	}
	if c.prioritized = prioritized; prioritized {
		c.opts = append(c.opts, api.Prioritized())
	}
	switch p.IntN(10) {
	case 0, 1, 2:
	case 3, 4: // several values, unless they may share a limit: each is explained by itself
		if !slices.ContainsFunc(p.set.Hotspot, few) {
			c.opts = append(c.opts, api.Param("user", []string{"u1", user, "u2"}))
		}
	default:
		c.opts = append(c.opts, api.Param("user", user))
	}
	c.opts = append(c.opts, api.Endpoint(pick(p.Rand, endpoints...)))
	c.text = fmt.Sprintf("%s by %q, %d units, inbound %v, prioritized %v", c.resource, origin, units, inbound, prioritized)
	return c
}

// few reports whether values may end up sharing limits.
func few(rule hotspot.Rule) bool { return rule.MaxValues < 10 }

func (p *pair) explain(c call) api.Explanation {
	p.Helper()
	x, err := p.guards[0].Explain(c.ctx, c.resource, c.opts...)
	require.NoError(p, err)
	return x
}

// enter makes the call at both guards, which must agree.
func (p *pair) enter(c call) (ran bool, err error) {
	p.Helper()
	var both [2]api.Admitted
	var errs [2]error
	for i, g := range p.guards {
		both[i], errs[i] = g.Entry(c.ctx, c.resource, c.opts...)
	}
	require.Equal(p, fmt.Sprint(errs[1]), fmt.Sprint(errs[0]), "explaining changed the outcome: %s", c.text)
	require.Equal(p, p.clocks[1].Now(), p.clocks[0].Now(), "explaining changed the wait")
	if errs[0] == nil {
		p.open = append(p.open, both)
	}
	return errs[0] == nil, errs[0]
}

// check compares the explanation of a call with its outcome.
func (p *pair) check(c call) {
	p.Helper()
	x := p.explain(c)
	require.Equal(p, x, p.explain(c), "explaining changed the state")
	over := &ended{Context: c.ctx, asked: new(int)}
	if over.is = p.IntN(3) == 0; over.is {
		c.ctx = over
	}
	before := p.clocks[0].Now()
	_, err := p.enter(c)
	waited := time.Duration(p.clocks[0].Now() - before)
	report := func() string { return fmt.Sprintf("%s\ngot %v after %v\n%v\n%+v", c.text, err, waited, x, p.set) }
	var block *api.BlockError
	blocked := errors.As(err, &block)
	switch {
	case x.Outcome == core.Passes:
		require.NoError(p, err, report())
		require.Zero(p, waited, report())
	case x.Outcome == core.Refused:
		require.Error(p, err, report())
		require.True(p, blocked, report())
		by := x.Rules[x.By]
		if by.Kind == api.KindHotspot && slices.ContainsFunc(p.set.Hotspot, few) {
			break // if values share limits, another rule may allow a retry sooner
		}
		require.Zero(p, *over.asked, report())
		require.Equal(p, [2]any{by.Kind, by.ID}, [2]any{block.Kind, block.Rule}, report())
	case over.is:
		require.Error(p, err, report())
		require.Positive(p, *over.asked, report())
	case x.Runs.IsZero(): // in a queue that never ends
		require.Error(p, err, report())
	default:
		require.NoError(p, err, report())
		require.Equal(p, x.Runs.Sub(x.At), waited, report())
	}
}

// checkNext checks the announced retry time of a refused call: each rule that refuses it still does
// a nanosecond before, and doesn't then.
func (p *pair) checkNext(c call) {
	p.Helper()
	x := p.explain(c)
	for _, r := range x.Rules {
		if r.Outcome != core.Refused || r.Next.IsZero() || r.About {
			continue
		}
		wait := r.Next.Sub(time.Unix(0, p.clocks[0].Now()))
		if wait <= 0 || wait > time.Hour {
			continue
		}
		of := func(x api.Explanation) core.ExplainedRule {
			for _, other := range x.Rules {
				if other.Kind == r.Kind && other.ID == r.ID {
					return other
				}
			}
			return core.ExplainedRule{}
		}
		p.advance(wait - 1)
		early := p.explain(c)
		require.Equal(p, core.Refused, of(early).Outcome, "%s %+v\n%v\n%v\n%+v", c.text, r, x, early, p.set)
		if early.Outcome == core.Refused {
			ran, _ := p.enter(c)
			require.False(p, ran, "%s, a nanosecond too early", c.text)
		}
		p.advance(1)
		due := p.explain(c)
		require.NotEqual(p, core.Refused, of(due).Outcome, "%s %+v\n%v\n%v\n%+v", c.text, r, x, due, p.set)
		return
	}
}

// checkRemaining checks the announced remaining units: that many calls are admitted at the same
// instant.
func (p *pair) checkRemaining(c call) {
	p.Helper()
	if c.prioritized {
		return // and may borrow beyond
	}
	c.opts = append(c.opts[:len(c.opts):len(c.opts)], api.Units(1))
	x := p.explain(c)
	least := int64(1 << 40)
	for _, r := range x.Rules {
		if r.Mode != api.Enforce {
			continue
		}
		for _, m := range r.Measures {
			if m.Of == "calls queued" {
				continue // those would only wait
			}
			if m.Remaining == nil && r.Kind != api.KindBreaker && r.Kind != api.KindOutlier && m.Unit != "ms" || len(r.Measures) > 1 && r.Kind == api.KindHotspot {
				return
			}
			if m.Remaining != nil {
				least = min(least, *m.Remaining)
			}
		}
		if r.Kind == api.KindBreaker && r.Why != "" && len(r.Measures) == 0 || r.Kind == api.KindOutlier && r.Outcome != core.NotJudged {
			return
		}
	}
	if x.Outcome == core.Refused || x.Outcome == core.Waits || least > 100 {
		return
	}
	for _, r := range p.set.Flow { // the units that a call takes there aren't listed
		if r.Relation == flow.Associated {
			return
		}
	}
	for _, clock := range p.clocks {
		clock.SetSleep(clocks.SleepRecord)
		defer clock.SetSleep(clocks.SleepAdvance)
	}
	for i := range least {
		ran, err := p.enter(c)
		require.True(p, ran, "%s: call %d of %d: %v\n%v\n%+v", c.text, i, least, err, x, p.set)
	}
	ran, _ := p.enter(c)
	require.False(p, ran, "%s: more than %d\n%v\n%+v", c.text, least, x, p.set)
}

func (p *pair) exit(i int) {
	err := pick(p.Rand, nil, nil, errors.New("failed"))
	for _, e := range p.open[i] {
		if err != nil {
			e.Fail(err)
		}
		e.Exit()
	}
	p.open[i] = p.open[len(p.open)-1]
	p.open = p.open[:len(p.open)-1]
}

// A call's explanation matches its outcome, and explaining changes nothing.
func TestExplainedAndThenDone(t *testing.T) {
	random := chance.Source(t)
	for range figure.Size(60, 100, 3_000, 30_000) {
		p := newPair(t, random, api.Config{})
		p.load(drawSet(random))
		for range 80 {
			switch random.IntN(20) {
			case 0, 1, 2:
				p.advance(time.Duration(random.Int64N(int64(pick(random, 10*ms, 300*ms, 3*time.Second)))))
			case 3, 4, 5:
				if n := len(p.open); n > 0 {
					p.exit(random.IntN(n))
				}
			case 6:
				if random.IntN(4) == 0 {
					p.load(drawSet(random))
				}
			case 7:
				p.checkNext(p.drawCall())
			case 8:
				p.checkRemaining(p.drawCall())
			default:
				p.check(p.drawCall())
			}
		}
		for len(p.open) > 0 {
			p.exit(0)
		}
		var trees [2]string
		for i, g := range p.guards {
			tree, err := json.MarshalIndent(g.Tree(), "", " ")
			require.NoError(t, err)
			trees[i] = string(tree)
			require.NoError(t, g.Close())
		}
		require.Equal(t, trees[1], trees[0], "explaining changed the tree")
	}
}
