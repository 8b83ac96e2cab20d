package rules

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
)

// Sources begin, change and end concurrently and conflict over one ID, while listeners load and read.
// At any time the last good rules of each source are in force, the contested ID is in force once, and
// a source reports nothing after its end.
// known bug 155
func TestLoaderAtOnce(t *testing.T) {
	var inForce atomic.Pointer[Set]
	inForce.Store(new(Set))
	l := NewLoader(func(set Set) error {
		shared := 0
		for _, r := range set.Flow {
			if r.ID == "shared" {
				shared++
			}
		}
		assert.LessOrEqual(t, shared, 1)
		inForce.Store(&set)
		return nil
	}, slog.New(slog.DiscardHandler))
	var closed atomic.Bool
	l.OnReload(func(r Reload) {
		assert.False(t, closed.Load(), "called after Close")
		l.Status()
		l.Revisions()
		if r.Number%7 == 0 {
			assert.NoError(t, l.Load(Set{Flow: []flow.Rule{{ID: "code", Resource: "c", Threshold: float64(r.Number)}}}))
		}
	})
	say := func(name string, n int, shared bool) news {
		set := Set{Flow: []flow.Rule{{ID: name, Resource: name, Threshold: float64(n)}}}
		if shared {
			set.Flow = append(set.Flow, flow.Rule{ID: "shared", Resource: "s"})
		}
		return news{pieceName: pieceName{name: name}, taken: time.Now(), parsed: Parsed{Set: set}, hash: hashOf(fmt.Append(nil, n, shared))}
	}
	has := func(name string, n int) bool {
		return slices.ContainsFunc(inForce.Load().Flow, func(r flow.Rule) bool { return r.ID == name && r.Threshold == float64(n) })
	}
	var running sync.WaitGroup
	for i := range 4 {
		name := fmt.Sprint("source ", i)
		r := rand.New(rand.NewPCG(uint64(i), 2))
		running.Go(func() {
			for round := range 20 {
				ctx, end := context.WithCancel(t.Context())
				m, err := l.join(ctx, []string{name})
				if !assert.NoError(t, err) {
					end()
					return
				}
				n := 100 * round
				if err := m.begin(say(name, n, false)); !assert.NoError(t, err) {
					end()
					m.leave()
					return
				}
				for step := range 10 {
					assert.True(t, has(name, n), "%s has not %d", name, n)
					next := n + step + 1
					// Rules that were refused may come into force later, when another source drops the ID.
					if shared := r.IntN(2) == 0; m.take(say(name, next, shared)) == nil {
						n = next
					} else if assert.True(t, shared, "refused without a reason"); m.take(say(name, next, false)) == nil {
						n = next
					}
				}
				end()
				assert.ErrorIs(t, m.take(say(name, -1, false)), context.Canceled)
				assert.False(t, has(name, -1))
				m.leave()
			}
		})
	}
	running.Go(func() {
		for i := range 200 {
			assert.NoError(t, l.Load(Set{Flow: []flow.Rule{{ID: "code", Resource: "c", Threshold: float64(i)}}}))
			all := l.Revisions()
			for j, r := range all {
				assert.Equal(t, all[0].Number+uint64(j), r.Number)
			}
		}
	})
	running.Wait()
	l.Close()
	closed.Store(true)
	assert.NoError(t, l.Load(Set{}))
	assert.Empty(t, inForce.Load().Flow)
}
