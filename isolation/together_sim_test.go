//go:build sim

package isolation_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/isolation"
)

// Calls of two resources race for the permits and the window of a rule that counts both, while it is
// replaced, perhaps by one with other buckets and another pattern. Outer calls are never more than
// the rule admits; a call nested in one that runs is admitted, however many there are; and a call
// whose outer call exits meanwhile is either nested, or counted.
func TestSimTogether(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		e := newSim(s, trial.Chain())
		permits := isolation.Rule{ID: "permits", Resource: "[ab]", Match: spec.MatchRegex, Together: true, Threshold: 1 + s.Rand.IntN(2)}
		rate := flow.Rule{ID: "rate", Resource: "[ab]", Match: spec.MatchRegex, Together: true, Threshold: float64(1 + s.Rand.IntN(3)), Interval: time.Hour, Buckets: 2}
		loadSim(s, e, []flow.Rule{rate}, permits)
		if s.Rand.IntN(2) == 0 { // otherwise the resources are new
			for _, name := range []string{"a", "b"} {
				if in, err := e.Enter(context.Background(), name, nil); err == nil {
					in.Exit()
				}
			}
		}
		left := int64(rate.Threshold) - counted(s, e)
		inside, passed := 0, int64(0)
		nested := func(outer engine.Entry) {
			in, err := e.Enter(outer.Context(), []string{"a", "b"}[s.Rand.IntN(2)], nil)
			if err != nil {
				s.Failf("a nested call was refused: %v", err)
			}
			in.Exit()
		}
		for i := range 3 {
			name := []string{"a", "b"}[i%2]
			s.Named("caller of "+name, func() {
				outer, err := e.Enter(context.Background(), name, nil)
				if err != nil {
					return
				}
				passed++
				if inside++; inside > permits.Threshold {
					s.Failf("%d calls run", inside)
				}
				nested(outer)
				inside--
				outer.Exit()
			})
		}
		if s.Rand.IntN(2) == 0 {
			next, wider := rate, permits
			if s.Rand.IntN(2) == 0 {
				next.Buckets, wider.Resource = 4, ".*"
			}
			s.Named("reload", func() { loadSim(s, e, []flow.Rule{next}, wider) })
		}
		s.Check(func() {
			if passed > left {
				s.Failf("%d calls passed, %d were left", passed, left)
			}
		})
	})
}

// counted returns the number of units that the rule counts now.
func counted(s *schedules.Schedule, e *engine.Engine) int64 {
	x, err := e.Explain(context.Background(), "a", nil)
	if err != nil {
		s.Failf("%v", err)
	}
	for _, r := range x.Rules {
		if r.ID == "rate" && len(r.Measures) > 0 {
			return int64(r.Measures[0].Measured)
		}
	}
	return math.MaxInt32
}

// A call nested in one that exits at the same time takes a permit or none, and in the end all are
// free.
func TestSimTogetherWhileTheOuterExits(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		e := newSim(s, trial.Chain())
		loadSim(s, e, nil, isolation.Rule{ID: "permits", Resource: ".*", Match: spec.MatchRegex, Together: true, Threshold: 1})
		outer, err := e.Enter(context.Background(), "a", nil)
		if err != nil {
			s.Failf("%v", err)
			return
		}
		ctx := outer.Context()
		s.Named("outer", outer.Exit)
		for range 2 {
			s.Named("nested", func() {
				in, err := e.Enter(ctx, "b", nil)
				if err != nil {
					return
				}
				deep, err := e.Enter(in.Context(), "a", nil)
				if err == nil {
					deep.Exit()
				}
				in.Exit()
			})
		}
		s.Check(func() {
			for range 2 {
				in, err := e.Enter(context.Background(), "b", nil)
				if err != nil {
					s.Failf("a permit is lost: %v", err)
					return
				}
				in.Exit()
			}
		})
	})
}
