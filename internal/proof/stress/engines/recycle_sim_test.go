//go:build sim

package engines

import (
	"context"
	"errors"
	"testing"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/node"
)

var errOwn = errors.New("the call's own failure")

// registrar is a slot that records completed calls by their units.
type registrar struct {
	completed func(units int64, failed bool)
}

func (registrar) Name() string { return "registrar" }
func (r registrar) Completed(inv *engine.Invocation) {
	r.completed(inv.Units(), inv.Failed())
}

// known bug 53, 56, 65: the next call reuses the state of an ended call at once, while handles of
// the old call are still used: to exit again, to fail, for a context. Each call completes once, is
// failed only by its own handle, and a handle returns its own call's context or none.
func TestSimRecycling(t *testing.T) {
	// fate is the outcome of a call, and the operations that its callers requested.
	type fate struct {
		completed, failed int
		mayFail, mustFail bool
	}
	schedules.Sample(t, func(s *schedules.Schedule) {
		var fates []*fate
		e := newEngine(s, engine.NewChain(registrar{func(units int64, failed bool) {
			f := fates[units-1]
			f.completed++
			if failed {
				f.failed++
			}
		}}), node.Caps{})
		type call struct {
			engine.Entry
			*fate
		}
		misuse := func(c call, context string, how int) {
			switch how {
			case 0:
				c.Exit()
			case 1:
				c.mayFail = true
				c.Fail(errOwn)
			case 2:
				if got := engine.ContextOf(c.Context()); got != nil && got.Name() != context {
					s.Failf("the context of a call in %q is one in %q", context, got.Name())
				}
			}
		}
		for i := range 2 + s.Rand.IntN(2) {
			name := string(rune('a' + i))
			ctx := engine.WithContext(context.Background(), name)
			fails, helped := s.Rand.IntN(2) == 0, s.Rand.IntN(2) == 0
			afterwards := []int{s.Rand.IntN(3), s.Rand.IntN(3)}
			var handed call // to a helper, which ends the call at the same time
			s.Named("caller "+name, func() {
				for range 2 {
					f := new(fate)
					fates = append(fates, f)
					entry, err := e.Enter(ctx, "r", []engine.Option{engine.Units(len(fates))})
					if err != nil {
						s.Failf("a call was refused: %v", err)
						return
					}
					c := call{entry, f}
					if helped {
						handed = c
					}
					if fails {
						f.mustFail = !helped
						misuse(c, name, 1)
					}
					misuse(c, name, 2)
					c.Exit()
					for _, how := range afterwards {
						misuse(c, name, how)
					}
				}
			})
			if helped {
				s.Named("helper "+name, func() {
					s.Await(func() bool { return handed.fate != nil })
					c := handed
					misuse(c, name, afterwards[0])
					c.Exit()
					misuse(c, name, afterwards[1])
				})
			}
		}
		s.Check(func() {
			for i, f := range fates {
				if f.completed != 1 || f.failed > 0 && !f.mayFail || f.failed == 0 && f.mustFail {
					s.Failf("call %d: %+v", i+1, *f)
				}
			}
		})
	})
}
